// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/nvml"
	"github.com/gpushare/gpushare/daemon/usage"
	"github.com/gpushare/gpushare/limiter/region"
)

// settledWorld is a container of 8 GiB on GPU 0 whose ledger says 2 GiB, and a
// function that sets what the driver says of it.
func settledWorld(t *testing.T) (w *world, pid int, driver func(err error, p ...nvml.Process)) {
	t.Helper()
	w = newWorld(t)
	c, claimant := w.mustClaim("a", v1.Request{Memory: "8Gi", GPU: "0"})
	init := w.mounted("a")
	w.writeState("a", init.Process.Pid)
	end(claimant)
	w.eventually("start", func() bool { return w.get("a").PID != 0 })
	ledger := use(t, c.Directory, 2*gib)
	t.Cleanup(func() { ledger.Close() })
	return w, init.Process.Pid, func(err error, p ...nvml.Process) {
		w.nvml.mu.Lock()
		w.nvml.processes[0], w.nvml.listErr = p, err
		w.nvml.mu.Unlock()
		w.m.wantLook("a")
	}
}

func (w *world) get(id string) v1.Container {
	w.t.Helper()
	one, err := w.m.Container(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return one
}

// pageOf is the container's page as its processes see it.
func (w *world) pageOf(id string) region.GPULimit {
	w.m.mu.Lock()
	c := w.m.containers[id]
	w.m.mu.Unlock()
	p, _ := c.page(0)
	return p
}

func TestSettling(t *testing.T) {
	w, pid, driver := settledWorld(t)
	growth := func(what string, want uint64) {
		t.Helper()
		w.eventually(what, func() bool { return w.pageOf("a").Growth == want })
	}
	driver(nil, nvml.Process{PID: pid, Bytes: 3 * gib, Known: true})
	growth("rise", 1*gib)
	if p := w.pageOf("a"); p.SettleDone == 0 || p.SettleDone >= p.SettleBegin {
		t.Errorf("settled %d of %d", p.SettleDone, p.SettleBegin)
	}
	if one := w.get("a"); one.State != v1.StateEnforced || one.GPUs[0].MemoryGrowthBytes != 1*gib {
		t.Errorf("%+v", one)
	}
	driver(nil, nvml.Process{PID: pid, Bytes: 2*gib + 5, Known: true})
	growth("fall", 5)

	// Beyond the limit, and back.
	driver(nil, nvml.Process{PID: pid, Bytes: 9 * gib, Known: true})
	growth("overrun", 7*gib)
	reasons := func() (out []string) {
		events, _, _, _ := w.m.events.After(0)
		for _, e := range events {
			out = append(out, e.Reason)
		}
		return out
	}
	w.eventually("event", func() bool { return slices.Contains(reasons(), v1.EventOverrun) })
	w.eventually("overrun shown", func() bool {
		g := w.get("a").GPUs[0]
		return g.OverrunBytes == 1*gib && g.MemoryUsedBytes == 8*gib
	})
	driver(nil, nvml.Process{PID: pid, Bytes: 4 * gib, Known: true})
	growth("back", 2*gib)
	w.eventually("event", func() bool { return slices.Contains(reasons(), v1.EventOverrunEnded) })

	// A daemon that starts goes on from what stands.
	w.nvml.mu.Lock()
	w.nvml.listErr = errors.New("not supported")
	w.nvml.mu.Unlock()
	w.restart()
	if p := w.pageOf("a"); p.Growth != 2*gib {
		t.Errorf("growth %d after a restart", p.Growth)
	}
	w.eventually("unknown", func() bool { one := w.get("a"); return one.Reason == "no driver figure" })
	done := w.pageOf("a").SettleDone
	time.Sleep(20 * time.Millisecond)
	if p := w.pageOf("a"); p.Growth != 2*gib || p.SettleDone != done {
		t.Errorf("without a figure: growth %d, settled %d after %d", p.Growth, p.SettleDone, done)
	}
	driver(nil, nvml.Process{PID: pid, Bytes: 2 * gib, Known: true})
	growth("known again", 0)
}

// The driver numbers processes in a way that is not ours: none of the container's is
// found, though it holds memory. That is no figure, and not a figure of zero.
func TestSettlingBlind(t *testing.T) {
	w, pid, driver := settledWorld(t)
	driver(nil, nvml.Process{PID: pid, Bytes: 3 * gib, Known: true})
	w.eventually("rise", func() bool { return w.pageOf("a").Growth == 1*gib })
	driver(nil, nvml.Process{PID: 1, Bytes: 3 * gib, Known: true})
	w.eventually("degraded", func() bool {
		one := w.get("a")
		return one.State == v1.StateDegraded && strings.Contains(one.Reason, "no driver figure") && one.GPUs[0].MemoryDriverBytes == nil
	})
	if p := w.pageOf("a"); p.Growth != 1*gib {
		t.Errorf("growth %d", p.Growth)
	}
	driver(nil, nvml.Process{PID: pid, Bytes: 3 * gib, Known: true}, nvml.Process{PID: 1, Bytes: 3 * gib, Known: true})
	w.eventually("enforced", func() bool { return w.get("a").State == v1.StateEnforced })
}

// A tenant that asks for looks as often as it can gets so many a second.
func TestSettlingFlood(t *testing.T) {
	w, pid, driver := settledWorld(t)
	driver(nil, nvml.Process{PID: pid, Bytes: 3 * gib, Known: true})
	w.eventually("rise", func() bool { return w.pageOf("a").Growth == 1*gib })
	before, begin := w.pageOf("a").SettleBegin, time.Now()
	for time.Since(begin) < time.Second {
		w.m.wantLook("a")
	}
	looks := w.pageOf("a").SettleBegin - before
	if most := looksBurst + uint32(time.Since(begin).Seconds()*looksPerSecond) + 2; looks > most || looks < 2 {
		t.Errorf("%d looks in %v, want at most %d", looks, time.Since(begin), most)
	}
}

// Who is over a limit that was lowered below what it has is not told that the driver
// took it, and the event of its refusals counts all that is charged.
func TestOverrunOfALoweredLimit(t *testing.T) {
	w, pid, driver := settledWorld(t)
	driver(nil, nvml.Process{PID: pid, Bytes: 3 * gib, Known: true})
	w.eventually("growth", func() bool { return w.pageOf("a").Growth == gib })
	m, c := w.m, w.m.containers["a"]
	a := region.GPUUsage{Bytes: 2 * gib, GPUAccount: region.GPUAccount{Denied: 1, DeniedBytes: gib}}
	m.countDenied(c, region.Usage{GPU: []region.GPUUsage{a}})
	if text := m.recent("a", 1)[0].Message; !strings.Contains(text, "3 GiB in use now") {
		t.Error(text)
	}

	a.Guess, a.GuessMark = 5, 1<<31
	row, _ := m.describeGPU(c, 0, c.rec.GPUs[0], region.Usage{GPU: []region.GPUUsage{a}}, usage.Figure{Known: true})
	if row.MemoryGuessedBytes != 5 || row.MemoryUsedBytes != 3*gib+5 {
		t.Errorf("a guess that no look has covered: %+v", row)
	}

	if _, err := m.Resize(context.Background(), "a", v1.ResizeRequest{Memory: "1Gi", Soft: true}); err != nil {
		t.Fatal(err)
	}
	m.wantLook("a")
	w.eventually("event", func() bool {
		return slices.ContainsFunc(m.recent("a", 9), func(e v1.Event) bool {
			return e.Reason == v1.EventOverrun && strings.Contains(e.Message, "2 GiB beyond the limit of 1 GiB on GPU 0 are in use since gpushare set lowered it")
		})
	})
}
