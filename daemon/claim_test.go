// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter"
	"github.com/gpushare/gpushare/limiter/region"
)

// A container from its claim to its end: the directory is there when the claim
// is answered, and nothing is left when the container has ended.
func TestLife(t *testing.T) {
	w := newWorld(t)
	c, claimant := w.mustClaim("a", v1.Request{Memory: "8Gi", Compute: "30%"})
	if c.MemoryBytes != 8*gib || c.ComputeMilli != 300 || c.ComputeMaxMilli != 300 || len(c.GPUs) != 1 || c.Directory != filepath.Join(w.containers(), "a") {
		t.Errorf("claim = %+v", c)
	}
	page, err := region.OpenLimits(filepath.Join(c.Directory, "limits"))
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	if g := page.GPU(0); g.MemoryLimit != 8*gib || g.ContextBytes != overhead || g.ComputeMilli != 300 || g.CeilingMilli != 300 || g.Alone != 1 || formatUUID(g.UUID) != c.GPUs[0].UUID {
		t.Errorf("page = %+v", g)
	}
	init := w.run("a", claimant)
	one, err := w.m.Container(context.Background(), "a")
	if err != nil || one.PID != init.Process.Pid || one.State != v1.StateEnforced || one.Engine != "docker" {
		t.Errorf("container = %+v, %v", one, err)
	}
	end(init)
	w.eventually("release", func() bool { return w.gone("a") })
	w.empty()
}

func TestHalfRequests(t *testing.T) {
	w := newWorld(t)
	for id, tc := range map[string]struct {
		r                v1.Request
		compute, ceiling uint32
	}{
		"a": {v1.Request{Memory: "1Gi"}, 0, 1000},
		"b": {v1.Request{Memory: "1Gi", Compute: "20%"}, 200, 200},
		"c": {v1.Request{Memory: "1Gi", Compute: "20%", ComputeMax: "none"}, 200, 1000},
		"d": {v1.Request{Memory: "1Gi", ComputeMax: "0.4"}, 0, 400},
	} {
		c, _ := w.mustClaim(id, tc.r)
		if c.ComputeMilli != tc.compute || c.ComputeMaxMilli != tc.ceiling {
			t.Errorf("%+v: %d, %d; want %d, %d", tc.r, c.ComputeMilli, c.ComputeMaxMilli, tc.compute, tc.ceiling)
		}
	}
	w.m.Close()
	w.share = limiter.Words{Memory: "2Gi", Compute: "10%"}
	w.start()
	c, _ := w.mustClaim("e", v1.Request{})
	if c.MemoryBytes != 2*gib || c.ComputeMilli != 100 {
		t.Errorf("default share: %+v", c)
	}
	c, _ = w.mustClaim("f", v1.Request{Compute: "5%"})
	if c.MemoryBytes != 2*gib || c.ComputeMilli != 50 {
		t.Errorf("half a request with a default: %+v", c)
	}
}

func TestClaimIsIdempotent(t *testing.T) {
	w := newWorld(t)
	r := v1.Request{Memory: "8Gi"}
	first, claimant := w.mustClaim("a", r)
	again, err := w.m.Claim(context.Background(), w.request("a", claimant.Process.Pid, r))
	if err != nil || again.GPUs[0] != first.GPUs[0] || again.Directory != first.Directory {
		t.Errorf("again: %+v, %v", again, err)
	}
	if _, _, err := w.claim("a", v1.Request{Memory: "9Gi"}); v1.Code(err) != v1.CodeConflict {
		t.Errorf("with other limits: %v, want a conflict", err)
	}
	// Once the first claimant has gone, the id is free: docker starts a container
	// again under its old id.
	end(claimant)
	other, _, err := w.claim("a", v1.Request{Memory: "9Gi"})
	if err != nil || other.MemoryBytes != 9*gib {
		t.Errorf("after the claimant went: %+v, %v", other, err)
	}
	if got := w.m.Daemon(context.Background()).GPUs[0].MemoryPromisedBytes; got != 9*gib {
		t.Errorf("%d bytes promised, want 9 GiB", got)
	}
}

// A claimant that ends without having started a container loses its claim within
// a second.
func TestClaimantDies(t *testing.T) {
	w := newWorld(t)
	_, claimant := w.mustClaim("a", v1.Request{Memory: "8Gi"})
	begin := time.Now()
	end(claimant)
	w.eventually("release", func() bool { return w.gone("a") })
	if d := time.Since(begin); d > time.Second {
		t.Errorf("took %v", d)
	}
	w.empty()
}

func TestRelease(t *testing.T) {
	w := newWorld(t)
	_, claimant := w.mustClaim("a", v1.Request{Memory: "8Gi"})
	if err := w.m.Release("a", os.Getpid()); v1.Code(err) != v1.CodeConflict {
		t.Errorf("another process released a pending claim: %v", err)
	}
	if err := w.m.Release("a", claimant.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := w.m.Release("a", claimant.Process.Pid); v1.Code(err) != v1.CodeNotFound {
		t.Errorf("twice: %v, want not found", err)
	}
	w.empty()
	_, claimant = w.mustClaim("b", v1.Request{Memory: "8Gi"})
	init := w.run("b", claimant)
	if err := w.m.Release("b", os.Getpid()); v1.Code(err) != v1.CodeConflict {
		t.Errorf("a living container was released: %v", err)
	}
	end(init)
	w.eventually("release", func() bool { return w.gone("b") })
}

// Two containers fill a GPU to the byte; the third is refused and leaves nothing.
func TestAdmission(t *testing.T) {
	w := newWorld(t)
	w.mustClaim("a", v1.Request{Memory: "50%", Compute: "60%", GPU: "0"})
	w.mustClaim("b", v1.Request{Memory: "50%", Compute: "40%", GPU: "0"})
	before := entries(t, w)
	for _, r := range []v1.Request{{Memory: "301Mi", GPU: "0"}, {Memory: "301Mi", Compute: "0.1%", GPU: gpuUUID(0)}, {Memory: "25Gi"}, {Memory: "1Gi", GPU: "7"}, {Memory: "100Mi"}} {
		if _, _, err := w.claim("c", r); err == nil {
			t.Errorf("%+v was granted", r)
		}
	}
	if after := entries(t, w); after != before {
		t.Errorf("refused claims left something: %s, before: %s", after, before)
	}
	c, _ := w.mustClaim("c", v1.Request{Memory: "100%", GPU: "1"})
	if c.MemoryBytes != 24*gib {
		t.Errorf("%+v", c)
	}
	page, err := region.OpenLimits(filepath.Join(w.containers(), "a", "limits"))
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	if page.GPU(0).Alone != 0 {
		t.Error("a neighbour's page says that it is alone")
	}
}

func entries(t *testing.T, w *world) string {
	t.Helper()
	var names []string
	for _, d := range []string{"c", "state"} {
		list, err := os.ReadDir(filepath.Join(w.base, "run", d))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			names = append(names, d+"/"+e.Name())
		}
	}
	return strings.Join(names, " ")
}

func TestSeveralGPUs(t *testing.T) {
	w := newWorld(t)
	c, _ := w.mustClaim("a", v1.Request{Memory: "25%", GPU: "1,0"})
	if len(c.GPUs) != 2 || c.GPUs[0].Index != 1 || c.GPUs[1].Index != 0 || c.GPUs[1].MemoryBytes != 6*gib {
		t.Errorf("%+v", c.GPUs)
	}
	for _, g := range w.m.Daemon(context.Background()).GPUs {
		if g.MemoryPromisedBytes != 6*gib {
			t.Errorf("GPU %d promises %d", g.Index, g.MemoryPromisedBytes)
		}
	}
}

func TestNoGPU(t *testing.T) {
	w := newWorld(t)
	w.m.Close()
	w.nvml.err = errors.New("the driver is not loaded")
	w.start()
	if d := w.m.Daemon(context.Background()); !strings.Contains(d.Reason, "not loaded") {
		t.Errorf("daemon = %+v", d)
	}
	if _, _, err := w.claim("a", v1.Request{Memory: "1Gi"}); v1.Code(err) != v1.CodeNoGPU || !strings.Contains(err.Error(), "not loaded") {
		t.Errorf("claim: %v, want no GPU and why", err)
	}
	w.nvml.mu.Lock()
	w.nvml.err = nil
	w.nvml.mu.Unlock()
	w.mustClaim("a", v1.Request{Memory: "1Gi"}) // the driver came up
}

func TestMalformedClaims(t *testing.T) {
	w := newWorld(t)
	pid := w.process().Process.Pid
	good := w.request("a", pid, v1.Request{Memory: "1Gi"})
	for name, change := range map[string]func(*v1.ClaimRequest){
		"no id":           func(r *v1.ClaimRequest) { r.ID = "" },
		"a path":          func(r *v1.ClaimRequest) { r.ID = "../../etc" },
		"a slash":         func(r *v1.ClaimRequest) { r.ID = "a/b" },
		"long id":         func(r *v1.ClaimRequest) { r.ID = strings.Repeat("a", 129) },
		"relative bundle": func(r *v1.ClaimRequest) { r.Bundle = "b" },
		"no root":         func(r *v1.ClaimRequest) { r.RuntimeRoot = "" },
		"long root":       func(r *v1.ClaimRequest) { r.RuntimeRoot = "/" + strings.Repeat("a", 5000) },
		"no pid":          func(r *v1.ClaimRequest) { r.PID = 0 },
		"negative pid":    func(r *v1.ClaimRequest) { r.PID = -1 },
		"dead pid":        func(r *v1.ClaimRequest) { r.PID = 1 << 22 },
		"no source":       func(r *v1.ClaimRequest) { r.Source = "" },
		"long label":      func(r *v1.ClaimRequest) { r.MountLabel = strings.Repeat("a", 1000) },
		"bad gpu":         func(r *v1.ClaimRequest) { r.Request.GPU = "all" },
		"no memory":       func(r *v1.ClaimRequest) { r.Request.Memory = "" },
		"max below":       func(r *v1.ClaimRequest) { r.Request.Compute, r.Request.ComputeMax = "30%", "20%" },
	} {
		req := good
		change(&req)
		_, err := w.m.Claim(context.Background(), req)
		var e *v1.Error
		if !errors.As(err, &e) || e.Status < 400 || e.Code == v1.CodeInternal || strings.ContainsAny(e.Message, "\n\r\x1b") {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.empty()
}
