// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

// NVML samples the engine about six times a second and keeps a short history.
const (
	windowLength = int64(1_000_000_000) / 6
	windowCount  = 100
)

type window struct {
	index int64
	busy  int64
	byPID map[uint32]int64
	last  uint32 // process that ran last
}

// windows holds how busy a GPU was in each sampling period.
type windows [windowCount]window

func (w *windows) at(index int64) *window {
	x := &w[index%windowCount]
	if x.index != index || x.byPID == nil {
		*x = window{index: index, byPID: map[uint32]int64{}}
	}
	return x
}

// add charges pid with ns of the time from one moment to another.
func (w *windows) add(pid uint32, from, to, ns int64) {
	for from < to {
		i := from / windowLength
		end := min(to, (i+1)*windowLength)
		part := ns
		if end < to {
			part = int64(float64(ns) * float64(end-from) / float64(to-from))
		}
		x := w.at(i)
		x.busy += part
		x.byPID[pid] += part
		x.last = pid
		from, ns = end, ns-part
	}
}

// shown returns what NVML says that a process used in a window: with deflate,
// beside others only the one that ran last is seen.
func (x *window) shown(pid uint32, deflate bool) uint32 {
	if deflate && len(x.byPID) > 1 && x.last != pid {
		return 0
	}
	return percent(x.byPID[pid])
}

// percent rounds to the nearest integer, as NVML shows it.
func percent(busy int64) uint32 {
	return uint32((busy*100 + windowLength/2) / windowLength)
}

// latest returns the last complete window before now.
func (w *windows) latest(now int64) *window { return w.at(now/windowLength - 1) }
