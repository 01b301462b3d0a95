// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"testing"
)

// A process that stands still, or is killed, between any two instructions loses
// nothing, leaves nothing, and blocks nobody: see cuda-intercept/test/stepkill.c. Also
// case HANG-01. In a soak the points are random, and more.
func TestKillAtEveryInstruction(t *testing.T) {
	long(t)
	if sanitized() {
		t.Skip("the sanitizers' own instructions are not ours to test")
	}
	program := compile(t, "stepkill.c")
	driver := standIn(t)
	kills := 0
	for _, act := range []struct {
		name   string
		stride int
	}{
		{"alloc", 13}, {"free", 11}, {"context", 29}, {"start", 43}, {"reset", 331}, {"ordered", 61}, {"ordered-free", 19},
		{"own-pool", 127}, {"create", 29}, {"map", 67}, {"array", 13}, {"contexts", 271}, {"refused", 311}, {"view", 23},
	} {
		t.Run(act.name, func(t *testing.T) {
			limit := standInLimit()
			limit.ContextBytes = mib / 16
			c := newContainer(t, limit)
			c.driver = driver
			out, err := c.runLong(program, act.name, fmt.Sprint(often(act.stride, -360)))
			var n, length, blocked int
			if _, serr := fmt.Sscanf(out, "%d kills in %d instructions, bystander blocked %d ns\n", &n, &length, &blocked); err != nil || serr != nil {
				t.Errorf("%v\n%s", err, out)
			}
			kills += n
			t.Log(out)
		})
	}
	t.Logf("%d kills", kills)
}

// The same of what several processes hold, over the simulator, which lets them: a
// process stands still while it exports memory, or while it imports what another one
// has exported and the bystander imports, too.
func TestKillWhileSharing(t *testing.T) {
	long(t)
	if sanitized() {
		t.Skip("the sanitizers' own instructions are not ours to test")
	}
	program := compile(t, "stepkill.c")
	n := simulate(t)
	for _, act := range []struct {
		name   string
		stride int
	}{{"export", 97}, {"import", 131}} {
		t.Run(act.name, func(t *testing.T) {
			c := n.container(4096 * mib)
			c.t = t
			out, err := c.runLong(program, act.name, fmt.Sprint(often(act.stride, -360)))
			var kills, length, blocked int
			if _, serr := fmt.Sscanf(out, "%d kills in %d instructions, bystander blocked %d ns\n", &kills, &length, &blocked); err != nil || serr != nil {
				t.Errorf("%v\n%s", err, out)
			}
			waitFor(t, "all bytes to come back", func() bool { return n.gpu().Used == 0 })
			waitFor(t, "the ledger to be empty", func() bool { return c.swept() == 0 })
			t.Log(out)
		})
	}
}
