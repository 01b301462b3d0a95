// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"testing"
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
					eventually(t, 5e9, func() error { return n.empty() })
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
