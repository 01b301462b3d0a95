// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"strconv"
	"strings"
	"testing"
)

// Threads that share blocks at the limit of a card: what they count on may be given to
// another of them, and then the driver opens a block before it can be undone. That is a
// block or two for a moment, not one for each thread.
func TestPartsOfManyThreads(t *testing.T) {
	const limit, blocks = 200 * mib, 4
	n := simulateGPUs(t, 1, "--driver", "newest", "--profile", "h100")
	c := n.container(limit)
	out, err := c.run(compile(t, "partstorm.c"), "8", "10000")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if refused, err := strconv.Atoi(strings.TrimSpace(out)); err != nil || refused == 0 {
		t.Errorf("not at the limit: %q", out)
	}
	g := n.gpu()
	if g.High > limit+blocks*cardBlock {
		t.Errorf("the simulator held %d blocks more than the limit", (g.High-limit)/cardBlock)
	}
	if used, ledger := g.Used, sweepLedger(t, c)[0]; used != 0 || ledger != 0 {
		t.Errorf("at the end: ledger %d, simulator %d", ledger, used)
	}
	t.Logf("SIMULATED: at most %d bytes of %d", g.High, uint64(limit))
}
