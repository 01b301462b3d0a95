// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import "testing"

// TestGraphBranchesOverlap replays graphs on a card with copy engines that runs
// several kernels of a context at once.
func TestGraphBranchesOverlap(t *testing.T) {
	n := upTimed(t, "--profile", "h100", "--kernel-time", "ms=1ms", "--kernel-time", "ten_ms=10ms", "--kernel-time", "cover=250ms")
	n.timed("graphoverlap")
	if u := n.used(); u != 0 {
		t.Errorf("%d bytes in use after the program ended", u)
	}
}
