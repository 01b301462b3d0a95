// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checked runs a program that prints "check WHAT" and waits for a line each time the
// ledger is to be compared with the simulator's account.
func (c *container) checked(n *node, least int, program string, args ...string) {
	c.t.Helper()
	cmd := c.command(context.Background(), program, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	checks := 0
	for scan := bufio.NewScanner(out); scan.Scan(); {
		what, ok := strings.CutPrefix(scan.Text(), "check ")
		if !ok {
			c.t.Error(scan.Text())
			continue
		}
		checks++
		if used, ledger := n.gpu().Used, c.ledger()[0]; used != ledger {
			c.t.Errorf("%s: ledger %d, simulator %d", what, ledger, used)
		}
		if _, err := io.WriteString(in, "go\n"); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil || checks < least {
		c.t.Errorf("%s: %v, %d checks", program, err, checks)
	}
}

// Allocations smaller than a block on a card, at the limit: cuda-intercept/test/parts.c.
func TestPartsOfBlocks(t *testing.T) {
	program := compile(t, "parts.c")
	for _, card := range [][2]string{{"h100", "580"}, {"t4", "580"}, {"t4", "470"}} { // 470 does not tell arrays' sizes
		n := simulateGPUs(t, 1, "--profile", card[0], "--driver", card[1])
		limit := uint64(contextBytes + 2*2*mib)
		n.container(limit).checked(n, 12, program)
		if high := n.gpu().High; high != limit {
			t.Errorf("%s: the simulator has held %d, the limit is %d", card, high, limit)
		}
	}
}

// The first context of a process costs more than the others; the primary one is charged
// once, whoever holds it and however it ends: cuda-intercept/test/contexts.c.
func TestMEM09ContextsOfAProcess(t *testing.T) {
	const next = 4 * mib
	program := compile(t, "contexts.c")
	card := filepath.Join(t.TempDir(), "card.yaml")
	text := fmt.Sprintf("base: exact\ndevice_defaults:\n  memory: {allocation: {context_next_bytes: %d}}\n", next)
	if err := os.WriteFile(card, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n := simulateGPUs(t, 1, "--profile", card)
	limit := n.limit(0, 1024*mib)
	limit.BlockBytes, limit.NextContextBytes = 0, next
	n.containerOn(limit).checked(n, 13, program)
	// And where all cost the same.
	n = simulate(t)
	n.container(1024*mib).checked(n, 13, program)
}

// The bound of the blocks that small arrays occupy, against allocators that choose
// their holes by different rules: cuda-intercept/test/crowd.c.
func TestCrowd(t *testing.T) {
	src := filepath.Join(root(t), "cuda-intercept/src")
	program := compile(t, "crowd.c", "-I", src, filepath.Join(src, "crowd.c"))
	if out, err := exec.Command(program).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// Green contexts hold the primary context of their device, charge nothing else, and
// their work goes through the gate of their GPU: cuda-intercept/test/green.c.
func TestGreenContexts(t *testing.T) {
	n := simulateGPUs(t, 2)
	program := compile(t, "green.c")
	for dev := range 2 {
		c := n.containerOn(n.limit(1, 1024*mib), n.limit(0, 1024*mib)) // the page's order is not the driver's
		out, err := c.run(program, fmt.Sprint(contextBytes), fmt.Sprint(dev), fmt.Sprint(1-dev))
		if err != nil {
			t.Errorf("device %d: %v\n%s", dev, err, out)
		}
	}
}
