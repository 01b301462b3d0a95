// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// A node with 200 containers: a claim, a report and a second of idling stay
// cheap. Figures are logged; the bounds are an order of magnitude away.
func TestTwoHundredContainers(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 200 containers: not with -short")
	}
	w := newWorld(t)
	w.m.Close()
	w.nvml.total = 80 * gib // 100 containers of 1 % on each of two
	w.start()
	const n = 200
	claimant := w.process()
	var longest time.Duration
	begin := time.Now()
	for i := range n {
		one := time.Now()
		if _, err := w.m.Claim(context.Background(), w.request(fmt.Sprintf("c%03d", i), claimant.Process.Pid, v1.Request{Memory: "1%"})); err != nil {
			t.Fatalf("claim %d: %v", i, err)
		}
		longest = max(longest, time.Since(one))
	}
	t.Logf("%d claims: %v each, longest %v", n, time.Since(begin)/n, longest)
	if longest > time.Second {
		t.Errorf("a claim took %v", longest)
	}
	begin = time.Now()
	list := w.m.List(context.Background())
	t.Logf("report of %d containers: %v", len(list.Containers), time.Since(begin))
	if len(list.Containers) != n || time.Since(begin) > 2*time.Second {
		t.Errorf("%d containers in %v", len(list.Containers), time.Since(begin))
	}
	// As after a start: every claim is pending, the busiest state there is.
	time.Sleep(1500 * time.Millisecond)
	before := cpu()
	time.Sleep(2 * time.Second)
	used := cpu() - before
	t.Logf("waiting for %d starts: %.2f %% of a core", n, float64(used)/float64(2*time.Second)*100)
	for i := range n {
		w.writeState(fmt.Sprintf("c%03d", i), claimant.Process.Pid)
	}
	w.eventually("all started", func() bool {
		for _, c := range w.m.List(context.Background()).Containers {
			if c.Phase != v1.PhaseRunning {
				return false
			}
		}
		return true
	})
	before = cpu()
	time.Sleep(3 * time.Second)
	used = cpu() - before
	share := float64(used) / float64(3*time.Second) * 100
	t.Logf("idle with %d containers: %.2f %% of a core", n, share)
	if share > 10 {
		t.Errorf("idle daemon uses %.1f %% of a core", share)
	}
	begin = time.Now()
	end(claimant)
	w.eventually("all released", func() bool { return len(w.m.List(context.Background()).Containers) == 0 })
	t.Logf("%d releases: %v in all", n, time.Since(begin))
	w.empty()
}

func cpu() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
