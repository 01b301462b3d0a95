// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// die runs deaths.c and returns the longest time that a call of its bystanders was
// blocked, and the program, which holds two contexts.
func (c *container) die(program string, kills int) (longest time.Duration, h *held) {
	c.t.Helper()
	began := time.Now()
	h = c.start(true, program, fmt.Sprint(kills), "1000")
	took := time.Since(began)
	var calls int
	if _, err := fmt.Sscan(h.lines[len(h.lines)-1], &longest, &calls); err != nil || len(h.lines) != 1 {
		c.t.Fatalf("%q: %v", h.lines, err)
	}
	c.t.Logf("%d kills in %v, %d calls of the bystanders, the longest blocked %v", kills, took.Round(time.Millisecond), calls, longest)
	return longest, h
}

func (h *held) end(t *testing.T) {
	t.Helper()
	h.in.Close()
	if err := h.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Processes are killed at random moments and replaced, some leave a forked child, and
// there is no daemon. Over a driver without a process of its own, which cannot be what
// others wait for, no call of those who live on is blocked for 50 ms.
func TestDeathsBlockNobody(t *testing.T) {
	if sanitized() {
		t.Skip("the sanitizers take locks of their own")
	}
	c := newContainer(t, standInLimit())
	c.limits.SetMemory(0, 64*1024*mib)
	c.driver = standIn(t)
	longest, h := c.die(compile(t, "deaths.c"), often(300, 6000))
	h.end(t)
	if longest > 50*time.Millisecond {
		t.Errorf("a call of a bystander was blocked for %v", longest)
	}
}

// The same over the simulator: a second after the last death ledger and simulator agree
// on what is left, and all that the dead had can be had again. What a bystander waited
// for is the simulator, as it is for one without us: both figures are in the log.
func TestDeathsLeaveNothing(t *testing.T) {
	const limit, second = 4096 * mib, time.Second
	kills := often(300, 6000)
	if sanitized() {
		kills = 60
	}
	n := simulate(t)
	c := n.container(limit)
	program := compile(t, "deaths.c")
	_, h := c.die(program, kills)
	if out, err := c.run(compile(t, "tenant.c"), "init", fmt.Sprintf("within=1000,%d", limit-3*contextBytes)); err != nil || out != "within 0\n" {
		t.Errorf("after %d kills: %v, output %q", kills, err, out)
	}
	var charged, used uint64
	for end := time.Now().Add(second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		charged, used = c.swept(), n.gpu().Used
		if charged == used && used == 2*contextBytes {
			break
		}
	}
	if charged != used || used != 2*contextBytes {
		t.Errorf("after %d kills the ledger has %d bytes, the simulator %d, two contexts %d", kills, charged, used, 2*contextBytes)
	}
	if high := n.gpu().High; high > limit {
		t.Errorf("the simulator held %d bytes over the limit", high-limit)
	}
	h.end(t)
	waitFor(t, "an empty GPU", func() bool { return n.gpu().Used == 0 })
	if !sanitized() {
		bare := *c
		bare.env = append(slices.Clone(c.env), "LD_LIBRARY_PATH="+filepath.Join(n.dir, "lib"))
		t.Log("SIMULATED: the same without us:")
		_, h = bare.die(program, kills)
		h.end(t)
	}
}
