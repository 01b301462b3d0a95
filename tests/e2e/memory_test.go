// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

const (
	gib = uint64(1) << 30
	mib = uint64(1) << 20
)

// share asks for memory and no compute.
func share(memory string) []string { return []string{"GPUSHARE_MEMORY=" + memory} }

// high is the simulator's own high-water mark of a container over all its processes.
func high(t *testing.T, n *node.Node, c container) uint64 {
	t.Helper()
	return account(t, n, c).HighWaterBytes
}

func account(t *testing.T, n *node.Node, c container) node.Account {
	t.Helper()
	a, err := n.Account(within(t), c.id)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// limitCase is a program that fills its share.
type limitCase struct {
	name, memory string
	limit        uint64
	// slack is what the kind of allocation may leave unused, in bytes.
	slack uint64
	args  []string
}

// byLookup are the ways in which a program finds the driver's calls; the limit is
// met to the byte by each.
var byLookup = []limitCase{
	{"linked", "3Gi", 3 * gib, 0, []string{"alloc-link", "--fill"}},
	{"dlsym", "3Gi", 3 * gib, 0, []string{"alloc", "--fill"}},
	{"cuGetProcAddress", "3Gi", 3 * gib, 0, []string{"alloc", "--via", "proc", "--fill"}},
	{"cuGetProcAddress_v2", "3Gi", 3 * gib, 0, []string{"alloc", "--via", "proc2", "--fill"}},
	{"odd number of bytes", "3000000001B", 3000000001, 511, []string{"alloc", "--fill"}},
}

var byAmountAndKind = []limitCase{
	{"a quarter", "25%", 20 * gib, 0, []string{"alloc", "--fill"}},
	{"large", "79Gi", 79 * gib, 0, []string{"alloc", "--fill"}},
	{"pitch", "1Gi", gib, 2 * mib, []string{"alloc", "--fill", "--entry", "pitch"}},
	{"managed", "1Gi", gib, 2 * mib, []string{"alloc", "--fill", "--entry", "managed"}},
	{"async", "1Gi", gib, 32 * mib, []string{"alloc", "--fill", "--entry", "async"}},
}

// A program gets its limit to the byte and then the driver's out-of-memory error,
// whichever way it reaches the driver and whichever call it allocates with.
func TestMemoryLimit(t *testing.T) {
	each(t, node.Options{}, func(t *testing.T, n *node.Node, e engine) {
		for _, c := range slices.Concat(byLookup, byAmountAndKind) {
			t.Run(c.name, func(t *testing.T) { c.check(t, n, e) })
		}
	})
	if *everyEngine {
		t.Run("current docker", func(t *testing.T) {
			n := up(t, withCurrent(t, node.Options{}))
			for _, c := range byLookup {
				t.Run(c.name, func(t *testing.T) { c.check(t, n, docker{n}) })
			}
		})
	}
}

// check runs the program in a container of its own.
func (c limitCase) check(t *testing.T, n *node.Node, e engine) {
	t.Helper()
	row := recordedRow{engine: called(e), kind: c.name, failed: true}
	defer func() {
		row.failed = row.failed || t.Failed()
		recorded = append(recorded, row)
	}()
	k, r := e.run(t, share(c.memory), c.args...)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	defer k.remove()
	row.got, row.failed = high(t, n, k), false
	c.judge(t, r.Stdout, row.got)
}

// judge compares what the program printed, and the most that it had in use, with
// its limit.
func (c limitCase) judge(t *testing.T, printed string, got uint64) {
	t.Helper()
	if !strings.Contains(printed, "next: CUDA_ERROR_OUT_OF_MEMORY (2)") {
		t.Errorf("not the driver's out-of-memory error: %s", printed)
	}
	if strings.Contains(printed, "changed the output") {
		t.Error("a refused call changed its output")
	}
	if got > c.limit || got+c.slack < c.limit {
		t.Errorf("limit %d, by the simulator's account at most %d in use (%+d)", c.limit, got, int64(got)-int64(c.limit))
	}
	if want := fmt.Sprintf(" total %d device %d", c.limit, c.limit); !strings.Contains(printed, want) {
		t.Errorf("the program was told %q, want it to end %q", printed, want)
	}
}

// Within one container no way of making a process adds a byte, and every byte is
// back a second after its last holder is gone, also when the daemon is dead.
func TestProcessesOfOneContainer(t *testing.T) {
	each(t, node.Options{}, func(t *testing.T, n *node.Node, e engine) {
		c := e.background(t, share("2Gi")...)
		for _, daemon := range []string{"daemon alive", "daemon dead"} {
			if daemon == "daemon dead" {
				if err := n.Daemon().Kill(); err != nil {
					t.Fatal(err)
				}
			}
			t.Run(daemon, func(t *testing.T) { processes(t, n, c) })
		}
		if got := high(t, n, c); got != 2*gib {
			t.Errorf("in all, at most %d bytes in use, limit %d", got, 2*gib)
		}
		restarted := n.StartDaemon(within(t))
		if restarted != nil {
			t.Fatal(restarted)
		}
		if r := n.CLI(within(t), "ps", "-q", "--no-trunc"); r.Err != nil || !strings.Contains(r.Stdout, c.id) {
			t.Errorf("a restarted daemon does not know the container: %s %v", r.Stdout, r.Err)
		}
	})
}

func processes(t *testing.T, n *node.Node, c container) {
	free := func(after string) {
		t.Helper()
		took := soon(t, time.Second, "bytes back after "+after, func() bool { return account(t, n, c).MemoryBytes == 0 })
		// The simulator has them; now the container must be able to use them again at once.
		var last string
		took += soon(t, time.Second, "limit usable again after "+after, func() bool {
			r := c.exec(within(t), "alloc", "--take", "1GiB")
			last = r.Stdout + r.Stderr
			return strings.Contains(r.Stdout, "took 1073741824 bytes")
		})
		t.Logf("after %s: all bytes back in %v", after, took.Round(time.Millisecond))
		if t.Failed() {
			t.Fatalf("last try: %s", last)
		}
	}
	fills := func(what string, args ...string) {
		t.Helper()
		r := c.exec(within(t), args...)
		if r.Err != nil {
			t.Fatalf("%s: %v", what, r.Err)
		}
		if !strings.Contains(r.Stdout, "OUT_OF_MEMORY (2)") {
			t.Errorf("%s: %s", what, r.Stdout)
		}
		if got := high(t, n, c); got > 2*gib {
			t.Errorf("%s: %d bytes over the limit", what, got-2*gib)
		}
		free(what)
	}
	fills("exec", "alloc", "--fill")
	fills("env -i", "env", "-i", "/usr/bin/alloc", "--fill")
	fills("su", "su", "tenant", "-c", "alloc --fill")
	fills("library path", "env", "LD_LIBRARY_PATH=/tmp", "LD_PRELOAD=", "GPUSHARE_MEMORY=64Gi", "alloc", "--fill")
	fills("children at once", "alloc", "--fill", "--procs", "5", "--step", "64MiB")

	// A full process; a second one gets nothing; then the first is killed.
	holder := c.enter(t, "alloc", "--fill", "--hold", "stdin")
	pid := strings.TrimPrefix(expect(t, holder, "holding pid "), "holding pid ")
	if r := c.exec(within(t), "alloc", "--take", "512B"); strings.Contains(r.Stdout, "took 512") {
		t.Errorf("a second process got memory beside a full one: %s", r.Stdout)
	}
	c.exec(within(t), "kill", "-9", pid)
	_ = holder.Wait()
	free("kill -9")

	// The parent dies, its child keeps the memory: it stays counted until the child ends.
	forked := c.enter(t, "sh", "-c", "alloc --take 1GiB --fork-hold --hold signal </dev/null & wait; cat")
	line := expect(t, forked, "holding pid ")
	if got := account(t, n, c).MemoryBytes; got < gib {
		t.Errorf("the fork does not keep the memory in the simulator: %d bytes", got)
	}
	if r := c.exec(within(t), "alloc", "--take", "1GiB"); strings.Contains(r.Stdout, "took 1073741824") {
		t.Errorf("memory that a fork keeps was given out again: %s", r.Stdout)
	}
	c.exec(within(t), "kill", strings.TrimPrefix(line, "holding pid "))
	free("the fork's end")
	_ = forked.Wait()
	if got := high(t, n, c); got > 2*gib {
		t.Errorf("%d bytes over the limit", got-2*gib)
	}
}

// A program that starts when another has just ended has the whole share again.
func TestOneAfterAnother(t *testing.T) {
	each(t, node.Options{}, func(t *testing.T, n *node.Node, e engine) {
		const script = "for i in 1 2 3 4 5; do alloc --fill || exit 1; done"
		c, r := e.run(t, share("1Gi"), "sh", "-c", script)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if got := strings.Count(r.Stdout, fmt.Sprintf("filled %d bytes", gib-300*mib)); got != 5 {
			t.Errorf("%d of 5 programs got all of the share:\n%s", got, r.Stdout)
		}
		if got := high(t, n, c); got != gib {
			t.Errorf("at most %d bytes in use, limit %d", got, gib)
		}
	})
}

// What a container held is free for others as soon as it is gone.
func TestContainerGone(t *testing.T) {
	each(t, node.Options{}, func(t *testing.T, n *node.Node, e engine) {
		for i := range 3 {
			c, s := e.talk(t, share("60Gi"), "alloc", "--fill", "--hold", "stdin")
			expect(t, s, "holding")
			if r := n.CLI(within(t), "ps", "-q"); strings.TrimSpace(r.Stdout) == "" {
				t.Errorf("ps -q shows nothing: %v", r.Err)
			}
			if i == 1 {
				c.remove() // by force, while it holds
			}
			_ = s.Wait()
			c.remove()
			soon(t, time.Second, "share released", func() bool {
				return strings.TrimSpace(n.CLI(within(t), "ps", "-q").Stdout) == ""
			})
			if got := account(t, n, c); got.MemoryBytes != 0 || got.HighWaterBytes != 60*gib {
				t.Errorf("simulator's account after the end: %+v", got)
			}
		}
		if m := n.Mounts("/run/c/"); m != 0 {
			t.Errorf("%d mounts of ended containers are left", m)
		}
		if left, err := os.ReadDir(n.RunDir() + "/c"); err != nil || len(left) != 0 {
			t.Errorf("directories of ended containers are left: %v %v", left, err)
		}
	})
}
