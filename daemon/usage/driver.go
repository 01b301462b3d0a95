// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"github.com/gpushare/gpushare/daemon/nvml"
	"github.com/gpushare/gpushare/limiter/region"
)

// Figure is an amount of memory by the driver's account, or the lack of one.
type Figure struct {
	Bytes uint64
	Known bool
	// BusyMilli is the part of the last second or so in which kernels ran,
	// thousandths; valid if BusyKnown.
	BusyMilli uint32
	BusyKnown bool
}

// Attribute adds up what the driver says of one GPU's processes, by container.
// owner names the container of a process, "" if it is none's. A container of
// which the driver knows a process but not its memory has an unknown figure; one
// without a process on the GPU uses none.
func Attribute(s nvml.Sample, containers []string, owner func(pid int) string) map[string]Figure {
	out := make(map[string]Figure, len(containers))
	for _, c := range containers {
		out[c] = Figure{Known: s.ProcessesErr == nil}
	}
	if s.ProcessesErr != nil {
		return out
	}
	for _, p := range s.Processes {
		c := owner(p.PID)
		f, ok := out[c]
		if c == "" || !ok {
			continue
		}
		if f.Bytes+p.Bytes >= f.Bytes {
			f.Bytes += p.Bytes
		}
		f.Known = f.Known && p.Known
		if p.BusyKnown {
			f.BusyMilli, f.BusyKnown = min(f.BusyMilli+p.BusyMilli, region.MilliGPU), true
		}
		out[c] = f
	}
	return out
}

// unseenMilli is how far the driver's figure may be off: its samples are coarse,
// and with neighbours a kernel is seen to run for longer than it is paid for.
const unseenMilli = 200

// Unseen says whether a container used far more GPU time than its ceiling allows by
// the driver's account, and its own ledger does not know of it: the ledger was
// tampered with, or the driver was reached past the library.
func (f Figure) Unseen(ceilingMilli, ledgerMilli uint32) bool {
	return f.BusyKnown && f.BusyMilli > ceilingMilli+unseenMilli && f.BusyMilli > 2*ledgerMilli+unseenMilli
}

// Larger is what the daemon acts on: the larger of the container's own account
// and the driver's, where the driver has one.
func Larger(ledger uint64, driver Figure) uint64 {
	if driver.Known {
		return max(ledger, driver.Bytes)
	}
	return ledger
}
