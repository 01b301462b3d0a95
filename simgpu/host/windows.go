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

func (w *windows) add(pid uint32, from, to int64) {
	for from < to {
		i := from / windowLength
		end := min(to, (i+1)*windowLength)
		x := w.at(i)
		x.busy += end - from
		x.byPID[pid] += end - from
		from = end
	}
}

// percent rounds to the nearest integer, as NVML shows it.
func percent(busy int64) uint32 {
	return uint32((busy*100 + windowLength/2) / windowLength)
}

// latest returns the last complete window before now.
func (w *windows) latest(now int64) *window { return w.at(now/windowLength - 1) }
