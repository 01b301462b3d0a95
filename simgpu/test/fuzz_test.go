// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestRandomCalls makes random calls of every function of both libraries, a
// million with SIMGPU_CALLS=1000000: none may crash or hang, the accounts must
// agree all the time, and nothing may be left. SIMGPU_SEED picks another start.
func TestRandomCalls(t *testing.T) {
	calls, seed := setting(t, "SIMGPU_CALLS", 200_000), setting(t, "SIMGPU_SEED", 1)
	const share = 50_000 // calls of one process: a random program wears out
	for _, l := range []string{"libcuda.so.1", "libnvidia-ml.so.1"} {
		t.Run(l, func(t *testing.T) {
			if sanitizer == "tsan" && l == "libcuda.so.1" {
				t.Skip("random calls give the memory of one that is still at work to the next: such races are the program's")
			}
			n := up(t, "--gpus", "2", "--memory", "4GiB")
			for left := calls; left > 0; left -= share {
				n.random(l, seed, min(left, share))
				seed++
			}
			if u := n.used(); u != 0 {
				t.Errorf("%d bytes in use after all programs ended", u)
			}
		})
	}
}

func setting(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	v := os.Getenv(variable)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: want a positive number", variable, v)
	}
	return n
}

// random runs one process of random calls and compares accounts as it goes.
func (n *node) random(library string, seed, calls int) {
	n.t.Helper()
	cmd := n.command("fuzz", strconv.Itoa(seed), strconv.Itoa(calls), filepath.Join(n.dir, "lib", library))
	in, err := cmd.StdinPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	patience := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	last := ""
	for sc := bufio.NewScanner(out); sc.Scan(); {
		if last = sc.Text(); strings.HasPrefix(last, "check") {
			n.accounts(fmt.Sprintf("seed %d, %s", seed, last))
			_, _ = fmt.Fprintln(in)
		}
	}
	err = cmd.Wait()
	if !patience.Stop() {
		err = fmt.Errorf("no end within 5 minutes: %w", err)
	}
	if err != nil || last != "end" {
		n.t.Errorf("fuzz %d %d %s: %v after %q\n%s", seed, calls, library, err, last, stderr.String())
	}
	eventually(n.t, func() error {
		if st := n.status(); len(st.Processes) > 0 {
			return fmt.Errorf("%d processes are still known", len(st.Processes))
		}
		return nil
	})
}

// accounts compares what the simulator says of a GPU with the sum of what it
// says of its processes.
func (n *node) accounts(when string) {
	n.t.Helper()
	st := n.status()
	for i, g := range st.GPUs {
		var sum uint64
		contexts := 0
		for _, p := range st.Processes {
			sum += p.GPUs[i].UsedBytes
			contexts += p.GPUs[i].Contexts
		}
		if sum != g.UsedBytes || contexts != g.Contexts || g.UsedBytes > g.MemoryBytes {
			n.t.Errorf("%s: GPU %d has %d of %d bytes in use and %d contexts; its processes have %d and %d",
				when, i, g.UsedBytes, g.MemoryBytes, g.Contexts, sum, contexts)
		}
	}
}
