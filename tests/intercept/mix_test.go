// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// purposes is what the node's first GPU has its memory used for.
func (n *node) purposes() (used uint64, by map[string]uint64) {
	n.t.Helper()
	out, err := exec.Command(n.bin, "status", "--dir", n.dir, "-o", "json").Output()
	if err != nil {
		n.t.Fatalf("simgpu status: %v", err)
	}
	var s struct {
		GPUs []struct {
			Used   uint64            `json:"used_bytes"`
			Memory map[string]uint64 `json:"memory"`
		} `json:"gpus"`
	}
	if err := json.Unmarshal(out, &s); err != nil || len(s.GPUs) == 0 {
		n.t.Fatalf("simgpu status: %v, %s", err, out)
	}
	return s.GPUs[0].Used, s.GPUs[0].Memory
}

// Thousands of allocations and frees of every kind and size, in several contexts that
// come and go and from several threads, near the limit: the ledger is the simulator's
// account to the byte on a card that counts so. On others it is never below, and above
// only by managed memory that is not on the device and by at most a block for each
// array that is smaller than one.
func TestMixOfAllKinds(t *testing.T) {
	program := compile(t, "mix.c")
	for _, profile := range []string{"exact", "h100", "a100", "t4", "b200"} {
		for _, threads := range []int{1, 8} {
			t.Run(fmt.Sprintf("%s/%d", profile, threads), func(t *testing.T) {
				n := simulateGPUs(t, 1, "--profile", profile)
				mix(t, n, program, threads)
			})
		}
	}
}

func mix(t *testing.T, n *node, program string, threads int) {
	t.Helper()
	const rounds, operations = 20, 20000
	limit := uint64(300 * mib)
	if threads > 1 {
		limit = 640 * mib
	}
	c := n.container(limit)
	cmd := c.command(context.Background(), program, "1", fmt.Sprint(rounds), fmt.Sprint(operations/rounds/threads), fmt.Sprint(threads))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var worst, least float64
	checks, counts, last := 0, "", uint64(1)
	for scan := bufio.NewScanner(out); scan.Scan(); {
		var contexts, small, managed uint64
		if strings.HasPrefix(scan.Text(), "counts") {
			counts = scan.Text()
			continue
		}
		if got, err := fmt.Sscanf(scan.Text(), "check %d %d %d", &contexts, &managed, &small); err != nil || got != 3 {
			t.Error(scan.Text())
			continue
		}
		checks++
		used, by := n.purposes()
		ledger, want := c.ledger()[0], used
		slack := uint64(0)
		if n.card {
			want, slack = used-by["managed"]+managed, small*2*mib
		}
		if ledger < want || ledger > want+slack {
			t.Errorf("check %d: ledger %d, want %d to %d; the simulator's %v", checks, ledger, want, want+slack, by)
		}
		over := float64(ledger-want) / float64(want+1)
		worst, least = max(worst, over), max(least, float64(ledger)/float64(limit))
		last = ledger
		if _, err := io.WriteString(in, "go\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the program: %v", err)
	}
	if last != 0 || checks < rounds {
		t.Errorf("%d checks, %d bytes left in the end", checks, last)
	}
	if high := n.gpu().High; high > limit || high < limit*8/10 {
		t.Errorf("the simulator has held %d with a limit of %d", high, limit)
	}
	t.Logf("SIMULATED: %s; %d checks, at most %.1f %% over, up to %.0f %% of the limit in use", counts, checks, 100*worst, 100*least)
}
