// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// accounts are the two ways in which memory is taken: to the byte, and as a
// card's driver does.
var accounts = map[string][]string{"exact": {"--gpus", "1"}, "card": {"--profile", "l40s"}}

// adds checks that the account adds up: what a process uses is the sum of what it
// was taken for, and a GPU's the sum of the processes' and of what descriptors hold.
func (n *node) adds() {
	n.t.Helper()
	st := n.status()
	for i, g := range st.GPUs {
		sum := g.OrphanBytes
		for _, p := range st.Processes {
			var parts uint64
			for _, v := range p.GPUs[i].Memory {
				parts += v
			}
			if parts != p.GPUs[i].UsedBytes {
				n.t.Errorf("process %d: %d bytes used, %v make %d", p.PID, p.GPUs[i].UsedBytes, p.GPUs[i].Memory, parts)
			}
			sum += p.GPUs[i].UsedBytes
		}
		if sum != g.UsedBytes {
			n.t.Errorf("GPU %d: %d bytes used, its processes and descriptors have %d", i, g.UsedBytes, sum)
		}
	}
}

// Two processes have the same bytes by every way there is, and nothing is left.
func TestSharedMemory(t *testing.T) {
	for name, args := range accounts {
		t.Run(name, func(t *testing.T) {
			n := up(t, args...)
			for _, what := range []string{"ipc", "vmm", "pool", "external"} {
				t.Run(what, func(t *testing.T) {
					n := *n
					n.t = t
					n.run("sharing", what)
					eventually(t, func() error { return n.empty() })
				})
			}
		})
	}
}

// empty reports what is left on the GPUs.
func (n *node) empty() error {
	for _, g := range n.status().GPUs {
		if g.UsedBytes != 0 || g.OrphanBytes != 0 {
			return fmt.Errorf("%d bytes in use, %d of them nobody's", g.UsedBytes, g.OrphanBytes)
		}
	}
	return nil
}

// A card's driver takes blocks, keeps what pools had, and takes by itself what
// code, threads and limits need.
func TestTakenAsOnACard(t *testing.T) {
	n := up(t, "--profile", "l40s", "--kernel-time", "second5=5ms")
	n.run("taken")
	if err := n.empty(); err != nil {
		t.Error(err)
	}
}

// What programs ask of memory beside its bytes.
func TestMemoryFeatures(t *testing.T) {
	n := up(t, "--profile", "h100")
	n.run("features")
	if err := n.empty(); err != nil {
		t.Error(err)
	}
}

// Pairs of processes that share memory in every way are killed at any moment: the
// exporter first, the importer first, or both at once. Nothing is left.
func TestKilledAtAnyMoment(t *testing.T) {
	rounds, pairs := 25, 8 // 200 pairs
	if sanitizer != "" || raceDetector || testing.Short() {
		rounds = 4
	}
	n := up(t, "--profile", "l40s")
	r := rand.New(rand.NewPCG(1, 2))
	for round := range rounds {
		var running []*pair
		for i := range pairs {
			p := n.beginPair("churn", fmt.Sprint(round*pairs+i+1))
			running = append(running, p)
		}
		for _, p := range running {
			time.Sleep(time.Duration(r.IntN(8000)) * time.Microsecond) // any moment
			parent, child := p.cmd.Process.Pid, p.child
			switch r.IntN(3) {
			case 0:
				_ = syscall.Kill(parent, syscall.SIGKILL)
				time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond)
				_ = syscall.Kill(child, syscall.SIGKILL)
			case 1:
				_ = syscall.Kill(child, syscall.SIGKILL)
				time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond)
				_ = syscall.Kill(parent, syscall.SIGKILL)
			default:
				_ = syscall.Kill(parent, syscall.SIGKILL)
				_ = syscall.Kill(child, syscall.SIGKILL)
			}
		}
		n.adds()
		for _, p := range running {
			if err := p.cmd.Wait(); err != nil && !strings.Contains(err.Error(), "killed") {
				t.Fatalf("round %d: %v: %s", round, err, p.errs.String())
			}
		}
		eventually(t, n.empty)
	}
}

// The same without a kill: programs that end, abort in a callback, or execute
// another, with all their memory.
func TestEndings(t *testing.T) {
	for _, end := range []string{"exit", "abort", "exec"} {
		t.Run(end, func(t *testing.T) {
			n := up(t, "--profile", "l40s")
			out, err := n.command("churn", "77", end).CombinedOutput()
			if (err != nil) != (end == "abort") {
				t.Errorf("%v: %s", err, out)
			}
			eventually(t, n.empty)
			if st := n.status(); st.GPUs[0].HighBytes == 0 {
				t.Error("nothing was ever taken")
			}
		})
	}
}

// beginPair starts a pair and waits until it runs.
func (n *node) beginPair(name string, args ...string) *pair {
	n.t.Helper()
	p := &pair{cmd: n.command(name, args...)}
	p.cmd.Stderr = &p.errs
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	for sc := bufio.NewScanner(out); sc.Scan() && sc.Text() != "ready"; {
		_, _ = fmt.Sscanf(sc.Text(), "child %d", &p.child)
	}
	if p.child == 0 {
		n.t.Fatalf("%s: %s", name, p.errs.String())
	}
	return p
}

// pair is a program with a child of its own.
type pair struct {
	cmd   *exec.Cmd
	child int
	errs  bytes.Buffer
}
