// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/nvml"
	"github.com/gpushare/gpushare/limiter/region"
)

func TestResizeChangesThePage(t *testing.T) {
	w := newWorld(t)
	c, _ := w.mustClaim("a", v1.Request{Memory: "8Gi", Compute: "30%"})
	page, err := region.OpenLimits(filepath.Join(c.Directory, "limits"))
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	for _, tc := range []struct {
		req              v1.ResizeRequest
		memory           uint64
		compute, ceiling uint32
	}{
		{v1.ResizeRequest{Memory: "12Gi"}, 12 * gib, 300, 300},
		{v1.ResizeRequest{Memory: "6g", CommandLine: true}, 6 * gib, 300, 300},
		{v1.ResizeRequest{Memory: "25%", Compute: "0.4"}, 6 * gib, 400, 400}, // the ceiling was never asked for: it goes along
		{v1.ResizeRequest{ComputeMax: "none"}, 6 * gib, 400, 1000},
		{v1.ResizeRequest{Compute: "10%"}, 6 * gib, 100, 1000}, // it has been asked for: it stays
		{v1.ResizeRequest{Compute: "55.5%", ComputeMax: "60%"}, 6 * gib, 555, 600},
	} {
		begin := time.Now()
		r, err := w.m.Resize(context.Background(), "a", tc.req)
		if err != nil {
			t.Fatalf("%+v: %v", tc.req, err)
		}
		if d := time.Since(begin); d > time.Second {
			t.Errorf("%+v took %v", tc.req, d)
		}
		g := page.GPU(0)
		if g.MemoryLimit != tc.memory || g.ComputeMilli != tc.compute || g.CeilingMilli != tc.ceiling {
			t.Errorf("%+v: page %+v", tc.req, g)
		}
		if n := r.New[0]; n.MemoryBytes != tc.memory || n.ComputeMilli != tc.compute || n.ComputeMaxMilli != tc.ceiling {
			t.Errorf("%+v: answer %+v", tc.req, n)
		}
	}
	w.restart()
	if g := page.GPU(0); g.MemoryLimit != 6*gib || g.ComputeMilli != 555 || g.CeilingMilli != 600 {
		t.Errorf("after a restart: %+v", g)
	}
}

func TestResizeRefuses(t *testing.T) {
	w := newWorld(t)
	c, _ := w.mustClaim("aa1", v1.Request{Memory: "8Gi", Compute: "30%", ComputeMax: "50%", GPU: "0"})
	w.mustClaim("aa2", v1.Request{Memory: "10Gi", Compute: "50%", GPU: "0"})
	use(t, c.Directory, 7*gib)
	for _, tc := range []struct {
		ref  string
		req  v1.ResizeRequest
		code string
	}{
		{"aa1", v1.ResizeRequest{}, v1.CodeRequest},
		{"aa1", v1.ResizeRequest{Memory: "15Gi"}, v1.CodeNoFit},
		{"aa1", v1.ResizeRequest{Compute: "51%", ComputeMax: "none"}, v1.CodeNoFit},
		{"aa1", v1.ResizeRequest{Compute: "50.1%"}, v1.CodeUnit}, // above the ceiling that was asked for
		{"aa1", v1.ResizeRequest{ComputeMax: "20%"}, v1.CodeUnit},
		{"aa1", v1.ResizeRequest{Memory: "6Gi"}, v1.CodeMemInUse},
		{"aa1", v1.ResizeRequest{Memory: "100Mi", Soft: true}, v1.CodeMemTooSmall},
		{"aa1", v1.ResizeRequest{Memory: "6g"}, v1.CodeUnit},
		{"aa", v1.ResizeRequest{Memory: "9Gi"}, v1.CodeAmbiguous},
		{"x", v1.ResizeRequest{Memory: "9Gi"}, v1.CodeNotFound},
		{"", v1.ResizeRequest{Memory: "9Gi"}, v1.CodeNotFound},
	} {
		_, err := w.m.Resize(context.Background(), tc.ref, tc.req)
		if v1.Code(err) != tc.code || strings.ContainsAny(err.Error(), "\n") {
			t.Errorf("%s %+v: %v, want %s", tc.ref, tc.req, err, tc.code)
		}
	}
	got, err := w.m.Container(context.Background(), "aa1")
	if err != nil || got.GPUs[0].MemoryLimitBytes != 8*gib || got.GPUs[0].ComputeMilli != 300 || got.Request.Memory != "8Gi" {
		t.Errorf("a refused change changed something: %+v, %v", got, err)
	}
	if _, err := w.m.Resize(context.Background(), "aa1", v1.ResizeRequest{Memory: "6Gi", Soft: true}); err != nil {
		t.Errorf("softly: %v", err)
	}
	// 7 GiB are in use, 6 allowed: raising to less than what is in use is fine.
	if _, err := w.m.Resize(context.Background(), "aa1", v1.ResizeRequest{Memory: "6.5Gi"}); err != nil {
		t.Errorf("raised: %v", err)
	}
}

// use makes this process a living holder of bytes in the ledger of a directory,
// until the test ends.
func use(t *testing.T, dir string, bytes uint64) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "ledger"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	const slot = 3
	lk := unix.Flock_t{Type: unix.F_WRLCK, Start: region.LockBase + slot, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk); err != nil {
		t.Fatal(err)
	}
	word := func(off int64, v uint64, n int) {
		b := make([]byte, 8)
		binary.NativeEndian.PutUint64(b, v)
		if _, err := f.WriteAt(b[:n], off); err != nil {
			t.Fatal(err)
		}
	}
	word(20, slot+1, 4) // SlotHigh
	word(region.LedgerHeaderSize+slot*region.SlotSize, region.SlotUsed, 4)
	word(region.UsedOffset(0, slot), bytes, 8)
	return f
}

func TestFigures(t *testing.T) {
	w := newWorld(t)
	c, claimant := w.mustClaim("a", v1.Request{Memory: "8Gi", GPU: "0"})
	init := w.mounted("a")
	w.writeState("a", init.Process.Pid)
	end(claimant)
	get := func() v1.Container {
		t.Helper()
		time.Sleep(sampleAge + 10*time.Millisecond) // figures are kept that long
		one, err := w.m.Container(context.Background(), "a")
		if err != nil {
			t.Fatal(err)
		}
		return one
	}
	w.eventually("start", func() bool { return get().PID != 0 })
	ledger := use(t, c.Directory, 2*gib)
	one := get()
	if g := one.GPUs[0]; one.State != v1.StateEnforced || one.Processes != 1 || g.MemoryUsedBytes != 2*gib || g.MemoryDriverBytes == nil || *g.MemoryDriverBytes != 0 {
		t.Errorf("by the ledger: %+v", one)
	}
	driver := func(p ...nvml.Process) {
		w.nvml.mu.Lock()
		w.nvml.processes[0] = p
		w.nvml.mu.Unlock()
	}
	// The driver's figure is the larger one; the process is known by its mount
	// namespace here.
	driver(nvml.Process{PID: init.Process.Pid, Bytes: 3 * gib, Known: true}, nvml.Process{PID: 1, Bytes: 20 * gib, Known: true})
	if g := get().GPUs[0]; g.MemoryUsedBytes != 3*gib || g.MemoryLedgerBytes != 2*gib || g.OverrunBytes != 0 {
		t.Errorf("by the driver: %+v", g)
	}
	driver(nvml.Process{PID: init.Process.Pid, Bytes: 9 * gib, Known: true})
	if one := get(); one.State != v1.StateDegraded || !strings.Contains(one.Reason, "1 GiB over its limit") || one.GPUs[0].MemoryUsedBytes != 8*gib || one.GPUs[0].OverrunBytes < gib {
		t.Errorf("over the limit: %+v", one)
	}
	driver(nvml.Process{PID: init.Process.Pid})
	if one := get(); one.State != v1.StateDegraded || one.Reason != "no driver figure" || one.GPUs[0].MemoryDriverBytes != nil {
		t.Errorf("an unknown figure: %+v", one)
	}
	driver()
	ledger.Close() // the holder has gone: so have its bytes
	// What was taken for growth meanwhile goes with the next two looks.
	w.eventually("the bytes of a holder that has gone", func() bool {
		g := get().GPUs[0]
		return g.MemoryUsedBytes == 0 && g.MemoryPeakBytes >= 2*gib
	})
	os.Truncate(filepath.Join(c.Directory, "ledger"), 100)
	if one := get(); one.State != v1.StateDegraded || !strings.Contains(one.Reason, "ledger is damaged") {
		t.Errorf("a ledger cut short: %+v", one)
	}
}

func TestGPULost(t *testing.T) {
	w := newWorld(t)
	w.mustClaim("a", v1.Request{Memory: "8Gi", GPU: "1"})
	w.nvml.mu.Lock()
	w.nvml.lost = true
	w.nvml.mu.Unlock()
	w.m.node.refresh(context.Background())
	if c, err := w.m.Container(context.Background(), "a"); err != nil || c.State != v1.StateDegraded || !strings.Contains(c.Reason, "GPU 1") {
		t.Errorf("container of a lost GPU: %+v, %v", c, err)
	}
	if _, _, err := w.claim("b", v1.Request{Memory: "8Gi", GPU: "1"}); v1.Code(err) != v1.CodeNoGPU {
		t.Errorf("claim of a lost GPU: %v", err)
	}
	w.mustClaim("c", v1.Request{Memory: "8Gi"}) // the other one works
}
