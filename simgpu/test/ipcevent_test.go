// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"testing"

	"github.com/gpushare/gpushare/simgpu/host"
)

var (
	ipcEventParts   = []string{"rules", "order", "killed", "broken"}
	ipcEventKernels = []string{"--kernel-time", "ten_ms=10ms", "--kernel-time", "stuck=hang", "--kernel-time", "bad=1ms+trap"}
)

// Two processes use the same event.
func TestEventsBetweenProcesses(t *testing.T) {
	n := up(t, ipcEventKernels...)
	for _, what := range ipcEventParts {
		t.Run(what, func(t *testing.T) {
			n := *n
			n.t = t
			n.run("ipcevent", what)
			eventually(t, n.empty)
		})
	}
}

// The same by a virtual clock, which passes only if it is known who waits for whom.
func TestEventsBetweenProcessesByTheVirtualClock(t *testing.T) {
	n, _ := upVirtual(t, ipcEventKernels...)
	for _, what := range ipcEventParts {
		t.Run(what, func(t *testing.T) {
			n := *n
			n.t = t
			cmd := n.begin(what, "ipcevent", what)
			n.move(host.ClockMove{ByNS: 1e9})
			ended(t, cmd)
			eventually(t, n.empty)
		})
	}
}
