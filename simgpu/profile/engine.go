// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gpushare/gpushare/simgpu/kernel"
)

// Engine is how a card spends its time. The zero value of each field but Slice
// is the simplest card: kernels of 10 us one after another, free copies.
type Engine struct {
	// Slice is the turn of a context while others have work. The default of
	// NVIDIA's open kernel modules is 1024 us; nvidia-smi compute-policy sets
	// it by class.
	Slice time.Duration `yaml:"slice" min:"10us" max:"10s"`
	// SwitchCost is lost when contexts change: 10 to 100 us by published
	// measurements.
	SwitchCost time.Duration `yaml:"switch_cost" min:"0s" max:"1s"`
	// Preemption tells where a kernel can be stopped: at any instruction
	// (Pascal and newer), or only at its end ("kernel").
	Preemption string `yaml:"preemption" oneof:",instruction,kernel"`
	// Sharing is by time slices, or as under MPS: kernels of all processes at
	// once, with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, and one fault domain.
	Sharing string `yaml:"sharing" oneof:",time-slice,mps"`
	// Concurrent bounds the kernels of one context that run at once (the CUDA
	// programming guide's "resident grids": 128); 0: one after another.
	Concurrent int `yaml:"concurrent_kernels" min:"0" max:"128"`
	// Priorities is the number of stream priorities, 0 the least; 0: 6, as
	// recent cards have.
	Priorities int `yaml:"stream_priorities" min:"0" max:"16"`
	// KernelTime is the length of kernels that no rule names, in the form that
	// package kernel reads; empty: 10us.
	KernelTime string `yaml:"kernel_time" max:"200"`
	// Seed makes lengths vary that are to vary; the same seed, the same lengths.
	Seed uint64 `yaml:"seed"`
	// Watchdog ends a kernel that hangs, as on a card with a display; 0: never.
	Watchdog time.Duration `yaml:"watchdog" min:"0s" max:"24h"`
	// Utilization is what NVML says of a process beside others that use the
	// engine in the same sampling period: what it used ("exact"), or nothing
	// unless it ran last ("deflated", reported of hardware by several users).
	Utilization string `yaml:"utilization" oneof:",exact,deflated"`
	Copy        Copy   `yaml:"copy"`
}

// Copy is what copies and fills take.
type Copy struct {
	HostToDevice Link `yaml:"host_to_device"`
	DeviceToHost Link `yaml:"device_to_host"`
	Device       Link `yaml:"device"` // within the card; fills likewise
	Peer         Link `yaml:"peer"`   // to another card
	// Slice is the turn of a context on a copy engine; 0: Engine.Slice.
	Slice time.Duration `yaml:"slice" min:"0s" max:"10s"`
}

// Link is one way that bytes take. Without a rate they take none.
type Link struct {
	PinnedMBps   int           `yaml:"pinned_mbps" min:"0" max:"100000000"`
	PageableMBps int           `yaml:"pageable_mbps" min:"0" max:"100000000"` // 0: as pinned
	Latency      time.Duration `yaml:"latency" min:"0s" max:"1s"`             // of each piece
}

// Timed reports whether any copy takes time.
func (c Copy) Timed() bool {
	for _, l := range []Link{c.HostToDevice, c.DeviceToHost, c.Device, c.Peer} {
		if l != (Link{}) {
			return true
		}
	}
	return false
}

// Length returns how long a copy of n bytes in so many pieces takes, in
// nanoseconds, at most a day.
func (l Link) Length(n uint64, pieces uint32, pinned bool) int64 {
	rate := uint64(max(l.PinnedMBps, 0)) //nolint:gosec // not negative
	if !pinned && l.PageableMBps > 0 {
		rate = uint64(l.PageableMBps)
	}
	const most = int64(24 * time.Hour)
	var ns int64
	if rate > 0 {
		// 1 MB/s is 1000 ns a byte.
		if n > uint64(most)/1000*rate {
			return most
		}
		ns = int64(float64(n) * 1000 / float64(rate))
	}
	return min(most, ns+int64(max(pieces, 1))*min(l.Latency.Nanoseconds(), int64(time.Second)))
}

// Kernel returns the spec of kernels that no rule names.
func (e Engine) Kernel() (kernel.Spec, error) {
	if e.KernelTime == "" {
		return kernel.Spec{Fixed: 10 * time.Microsecond}, nil
	}
	s, err := kernel.ParseSpec(e.KernelTime)
	if err != nil {
		return s, fmt.Errorf("engine.kernel_time: %w", err)
	}
	return s, nil
}

var errTurns = errors.New("sharing mps: kernels take no turns, so preemption must be left out")

// Validate reports the first field that makes no sense.
func (e Engine) Validate() error {
	switch {
	case e.Slice < 10*time.Microsecond:
		return fmt.Errorf("slice %v: must be at least 10us", e.Slice)
	case e.SwitchCost < 0:
		return fmt.Errorf("switch cost %v: must not be negative", e.SwitchCost)
	case !slices.Contains([]string{"", "time-slice", "mps"}, e.Sharing):
		return fmt.Errorf("sharing %q: want time-slice or mps", e.Sharing)
	case !slices.Contains([]string{"", "instruction", "kernel"}, e.Preemption):
		return fmt.Errorf("preemption %q: want instruction or kernel", e.Preemption)
	case !slices.Contains([]string{"", "exact", "deflated"}, e.Utilization):
		return fmt.Errorf("utilization %q: want exact or deflated", e.Utilization)
	case e.Sharing == "mps" && e.Preemption == "kernel":
		return errTurns
	}
	_, err := e.Kernel()
	return err
}
