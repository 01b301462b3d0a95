// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter"
)

// N shares of 1ofN start on an empty GPU, and the next is refused.
func TestProfilesFillAGPU(t *testing.T) {
	for _, n := range []int{2, 4, 6} {
		w := newWorld(t)
		w.nvml.total = 24*gib - 1 // no multiple of anything
		w.m.Close()
		w.start()
		r := v1.Request{Profile: fmt.Sprintf("1of%d", n), GPU: "0"}
		for i := range n {
			c, _ := w.mustClaim(fmt.Sprint("c", i), r)
			if c.MemoryBytes != (24*gib-1)/uint64(n) || c.ComputeMilli != uint32(1000/n) || c.ComputeMaxMilli != c.ComputeMilli {
				t.Errorf("%+v: %+v", r, c)
			}
		}
		_, _, err := w.claim("more", r)
		if v1.Code(err) != v1.CodeNoFit || !strings.Contains(err.Error(), "profile "+r.Profile) {
			t.Errorf("share %d of %s: %v", n+1, r.Profile, err)
		}
		list := w.m.List(context.Background())
		if len(list.Containers) != n || list.Containers[0].Request != r {
			t.Errorf("%+v", list.Containers)
		}
	}
}

func TestProfileRefusals(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		r          v1.Request
		code, want string
	}{
		{v1.Request{Profile: "1of0"}, v1.CodeUnit, `GPUSHARE_PROFILE: "1of0" is no profile: write 1of2, 1of4, 1of6`},
		{v1.Request{Profile: "1of2\n"}, v1.CodeUnit, "is no profile"},
		{v1.Request{Profile: "1of2", Memory: "1Gi"}, v1.CodeUnit, "leave out the other words"},
		{v1.Request{Profile: "1of2", ComputeMax: "none"}, v1.CodeUnit, "leave out the other words"},
	} {
		_, _, err := w.claim("a", tc.r)
		if v1.Code(err) != tc.code || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want %s with %q", tc.r, err, tc.code, tc.want)
		}
	}
	w.empty()
}

func TestProfileAsDefaultAndInSet(t *testing.T) {
	w := newWorld(t)
	w.m.Close()
	w.share = limiter.Words{Profile: "1of4"}
	w.start()
	c, _ := w.mustClaim("a", v1.Request{})
	if c.MemoryBytes != 6*gib || c.ComputeMilli != 250 {
		t.Errorf("default share: %+v", c)
	}
	if _, _, err := w.claim("b", v1.Request{Compute: "10%"}); v1.Code(err) != v1.CodeNoMemory {
		t.Errorf("half a request beside a profile: %v", err)
	}
	got, err := w.m.Resize(context.Background(), "a", v1.ResizeRequest{Profile: "1of2", CommandLine: true})
	if err != nil || got.New[0].MemoryBytes != 12*gib || got.New[0].ComputeMilli != 500 || got.New[0].ComputeMaxMilli != 500 {
		t.Errorf("to the half: %+v, %v", got, err)
	}
	one, _ := w.m.Container(context.Background(), "a")
	if one.Request != (v1.Request{Profile: "1of2"}) {
		t.Errorf("request %+v", one.Request)
	}
	for _, tc := range []struct {
		r    v1.ResizeRequest
		want string
	}{
		{v1.ResizeRequest{Profile: "1of2", Memory: "1Gi", CommandLine: true}, "--gpu-profile: "},
		{v1.ResizeRequest{Profile: "half", CommandLine: true}, `"half" is no profile`},
		{v1.ResizeRequest{Profile: "1of64"}, `memory`},
	} {
		if _, err := w.m.Resize(context.Background(), "a", tc.r); err == nil && tc.r.Profile != "1of64" || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.r, err, tc.want)
		}
	}
}

func mustCap(t *testing.T, name string, words limiter.Words) limiter.Cap {
	t.Helper()
	c, err := limiter.ParseCap(name, words)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A cap holds for its source, for half of a mixed request too, and for nobody else.
func TestCaps(t *testing.T) {
	w := newWorld(t)
	w.m.Close()
	w.share = limiter.Words{Memory: "5Gi"}
	w.policy.EnvCap = mustCap(t, "cap.env", limiter.Words{Memory: "4Gi", Compute: "20%", ComputeMax: "50%"})
	w.policy.AnnotationCap = mustCap(t, "cap.annotation", limiter.Words{Memory: "50%"})
	w.start()
	claim := func(id, source string, r v1.Request) (v1.Claim, error) {
		req := w.request(id, w.process().Process.Pid, r)
		req.Source = source
		return w.m.Claim(context.Background(), req)
	}
	for i, tc := range []struct {
		source string
		r      v1.Request
		want   string // "" is granted
	}{
		{v1.SourceEnv, v1.Request{Memory: "4Gi", Compute: "20%"}, ""},
		{v1.SourceEnv, v1.Request{Memory: "4294967297B"}, `memory of GPU 0: 4294967297 bytes asked, 4294967296 bytes allowed (cap.env.memory = "4Gi"), set by this node's administrator`},
		{v1.SourceEnv, v1.Request{Memory: "1Gi", Compute: "20.1%"}, `20.1% asked, 20% allowed (cap.env.compute = "20%")`},
		{v1.SourceEnv, v1.Request{Memory: "1Gi", ComputeMax: "none"}, `100% asked, 50% allowed (cap.env.compute_max = "50%")`},
		{v1.SourceEnv, v1.Request{Profile: "1of4"}, `6 GiB asked, 4 GiB allowed`},
		{v1.SourceEnv, v1.Request{Profile: "1of6"}, ""},
		{v1.SourceEnv, v1.Request{Compute: "1%"}, `5 GiB asked, 4 GiB allowed`}, // the default's memory
		{v1.SourceAnnotation, v1.Request{Memory: "12Gi", GPU: "1"}, ""},
		{v1.SourceAnnotation, v1.Request{Memory: "12884901889B"}, `(cap.annotation.memory = "50%")`},
		{v1.SourceBoth, v1.Request{Memory: "5Gi"}, "cap.env.memory"},
		{v1.SourceBoth, v1.Request{Memory: "13Gi"}, "cap."},
		{v1.SourceDefault, v1.Request{Memory: "5Gi"}, ""},
	} {
		id := fmt.Sprint("c", i)
		_, err := claim(id, tc.source, tc.r)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s %+v: %v", tc.source, tc.r, err)
		case tc.want != "" && (v1.Code(err) != v1.CodeCap || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s %+v: %v, want %s with %q", tc.source, tc.r, err, v1.CodeCap, tc.want)
		}
	}
	// Who asks for no ceiling has the cap for one, and it is shown.
	c, err := claim("open", v1.SourceEnv, v1.Request{Memory: "1Gi", GPU: "1"})
	if err != nil || c.ComputeMaxMilli != 500 {
		t.Errorf("no ceiling asked for: %+v, %v", c, err)
	}
	// The administrator's own changes are not capped.
	r, err := w.m.Resize(context.Background(), "open", v1.ResizeRequest{Memory: "5Gi", ComputeMax: "none"})
	if err != nil || r.New[0].MemoryBytes != 5*gib || r.New[0].ComputeMaxMilli != 1000 {
		t.Errorf("set: %+v, %v", r, err)
	}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// What could undo its limits is refused, or allowed and shown for its whole life.
func TestOverrides(t *testing.T) {
	w := newWorld(t)
	claim := func(id string, exposed ...string) error {
		claimant := w.process()
		req := w.request(id, claimant.Process.Pid, v1.Request{Memory: "1Gi"})
		req.Exposed = exposed
		_, err := w.m.Claim(context.Background(), req)
		if err == nil {
			w.run(id, claimant)
		}
		return err
	}
	for _, e := range exposures {
		if err := claim("a", e); v1.Code(err) != v1.CodePolicy || !strings.Contains(err.Error(), "override.") {
			t.Errorf("%s without leave: %v", e, err)
		}
	}
	w.m.Close()
	log := &safeBuffer{}
	w.log, w.policy.HostNamespaces = log, true
	w.start()
	if err := claim("a", v1.ExposedPID, v1.ExposedPrivileged); v1.Code(err) != v1.CodePolicy || !strings.Contains(err.Error(), "override.privileged") {
		t.Errorf("half allowed: %v", err)
	}
	w.m.Close()
	w.policy.Privileged = true
	w.start()
	if err := claim("a", v1.ExposedPrivileged, v1.ExposedPID); err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]string{{"root"}, {v1.ExposedPID, v1.ExposedPID}, {""}} {
		if err := claim("b", bad...); v1.Code(err) != v1.CodeRequest {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if !strings.Contains(log.String(), "level=WARN msg=\"container can undo its limits") {
		t.Errorf("no warning in %s", log)
	}
	shown := func(when string) {
		t.Helper()
		one, err := w.m.Container(context.Background(), "a")
		want := "privileged by node policy; host PID namespace by node policy"
		if err != nil || one.State != v1.StateDegraded || !strings.HasPrefix(one.Reason, want) || len(one.Exposed) != 2 {
			t.Errorf("%s: %+v, %v", when, one, err)
		}
	}
	shown("at first")
	w.policy = Policy{} // what runs is not forgotten when the leave is taken back
	w.restart()
	shown("after a restart")
}
