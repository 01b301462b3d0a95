// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"strings"
	"testing"
)

// However a process comes to be, it is charged for what it takes and for nothing else,
// and its parent's account stays as it was: cuda-intercept/test/births.c. Also the cases
// PROC-05 (loaded) and PROC-06 (fork).
func TestBirths(t *testing.T) {
	program := compile(t, "births.c")
	n := simulate(t)
	for _, way := range []string{"plain", "fork", "clone", "vfork", "spawn", "shared", "pidns", "user", "user-changes", "chroot", "loaded", "fork-exec", "own-slot"} {
		t.Run(way, func(t *testing.T) {
			if sanitized() && (way == "shared" || way == "clone") {
				t.Skip("the sanitizers do not stand clone")
			}
			if counting() && strings.HasPrefix(way, "user") {
				t.Skip("another user cannot write the counts, and gcov says so")
			}
			c := n.container(512 * mib)
			c.t = t
			// Who cannot reach the simulator's directory; and the simulator does not let
			// a forked child start, as the real driver does not.
			if way == "user" || way == "own-slot" {
				c = newContainer(t, standInLimit())
				c.driver = standIn(t)
			}
			if out, err := c.run(program, way); err != nil || out != "" {
				t.Errorf("%v\n%s", err, out)
			}
			waitFor(t, "all bytes to come back", func() bool { return n.gpu().Used == 0 })
			waitFor(t, "the ledger to be empty", func() bool { return c.swept() == 0 })
		})
	}
}

// A process of 32 busy threads forks again and again; each child asks for CUDA and
// ends, none hangs, and nothing is counted twice.
func TestManyForksOfManyThreads(t *testing.T) {
	n := simulate(t)
	c := n.container(512 * mib)
	if out, err := c.run(compile(t, "births.c"), "forks", fmt.Sprint(often(100, 1000))); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
	waitFor(t, "all bytes to come back", func() bool { return n.gpu().Used == 0 })
	waitFor(t, "the ledger to be empty", func() bool { return c.swept() == 0 })
}

// Every slot is in use: the next process is told that the system is not ready, like
// those after it, and can start when one of the others has ended. None crashes.
func TestMoreProcessesThanSlots(t *testing.T) {
	long(t)
	if sanitized() {
		t.Skip("a sanitized process takes 30 times the memory")
	}
	c := newContainer(t, standInLimit())
	c.driver = standIn(t)
	tenant := compile(t, "tenant.c")
	out, err := c.run(tenant, "spawn=4120", "init", "info")
	if want := "spawn 4096\ninfo 0 968884224 1073741824\n"; err != nil || out != want {
		t.Errorf("%v, output %q, want %q", err, out, want)
	}
}

// Processes that live for a moment, one after the other and several at once, leave
// nothing: no slot, no byte, and no descriptor or memory in one that stays.
func TestShortLives(t *testing.T) {
	n := simulate(t)
	c := n.container(1024 * mib)
	tenant := compile(t, "tenant.c")
	lives := often(200, 10000)
	h := c.start(true, tenant, "init", "hold")
	one := fmt.Sprintf("%s init alloc=%d", tenant, 32*mib)
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do %s; i=$((i+4)); done", lives, strings.Repeat(one+" & ", 3)+one+"; wait")
	out, err := c.runLong("sh", "-c", script)
	if got := strings.Count(out, "alloc 0\n"); err != nil || got != lives {
		t.Errorf("%v, %d of %d processes got their memory\n%.500s", err, got, lives, strings.ReplaceAll(out, "alloc 0\n", ""))
	}
	waitFor(t, "their bytes to come back", func() bool { return n.gpu().Used == contextBytes })
	waitFor(t, "the ledger to have one context", func() bool { return c.swept() == contextBytes })
	if high := c.slotHigh(); high > 64 {
		t.Errorf("%d processes, four at a time, took %d slots", lives, high)
	}
	h.in.Close()
}

// Two processes of 600 MiB in a container of 1000: case PROC-01.
func TestOneBudgetPROC01(t *testing.T) {
	n := simulate(t)
	c := n.container(1000 * mib)
	tenant := compile(t, "tenant.c")
	c.start(true, tenant, "init", fmt.Sprintf("alloc=%d", 600*mib), "hold")
	if out, err := c.run(tenant, "init", fmt.Sprintf("alloc=%d", 600*mib), fmt.Sprintf("alloc=%d", 300*mib)); err != nil || out != "alloc 2\nalloc 0\n" {
		t.Errorf("%v, output %q", err, out)
	}
}

// Eight processes of eight sizes, some of them refused more all the time: each is
// known with its own bytes. Case PROC-03.
func TestEachItsOwnPROC03(t *testing.T) {
	n := simulate(t)
	c := n.container(1024 * mib)
	tenant := compile(t, "tenant.c")
	want := map[uint32]uint64{}
	for i := range 8 {
		size := uint64(i+1) * 10 * mib
		h := c.start(true, tenant, "init", fmt.Sprintf("alloc=%d", size), "pid", "hold")
		var pid uint32
		if _, err := fmt.Sscanf(h.lines[len(h.lines)-1], "pid %d", &pid); err != nil {
			t.Fatalf("%q: %v", h.lines, err)
		}
		want[pid] = size + contextBytes
	}
	for range 4 {
		c.start(false, tenant, "init", fmt.Sprintf("within=600000,%d", 2048*mib))
	}
	for range 50 {
		got := c.bySlot()
		for pid, bytes := range want {
			if got[pid] != bytes {
				t.Fatalf("process %d has %d bytes, want %d: %v", pid, got[pid], bytes, got)
			}
		}
	}
}
