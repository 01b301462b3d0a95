// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package nvml asks the driver's management library about GPUs and about the
// memory that processes hold on them.
//
// A call into the driver can hang for ever: every call is made by one worker,
// and a caller waits for it no longer than its deadline. While a call hangs all
// others fail at once with ErrHung; the daemon goes on without the driver's
// figures. A figure that the driver does not have is unknown, never zero.
package nvml

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrHung is returned while an earlier call into the driver has not come back.
	ErrHung = errors.New("the driver's management library does not answer")
	// ErrUnavailable is returned when the library cannot be loaded or finds no driver.
	ErrUnavailable = errors.New("no usable driver")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("management library closed")
)

// Device is a GPU.
type Device struct {
	Index int
	UUID  string // as the driver writes it, GPU-…
	Name  string
	// MemoryTotal is the device's memory in bytes, MemoryReserved what the driver
	// keeps of it for itself.
	MemoryTotal    uint64
	MemoryReserved uint64
	// Err says why the device cannot be used, nil if it can.
	Err error
}

// Simulated reports whether the driver says that the device is not hardware.
func (d Device) Simulated() bool { return strings.Contains(d.Name, "(SIMULATED)") }

// Inventory is what the driver has.
type Inventory struct {
	DriverVersion string
	Devices       []Device
}

// Process is a process that holds a GPU.
type Process struct {
	PID int // in the daemon's PID namespace
	// Bytes is the device memory that it holds; valid if Known.
	Bytes uint64
	Known bool
	// BusyMilli is the part of the last second or so in which the driver saw
	// kernels of it run, thousandths, coarsely sampled; valid if BusyKnown.
	BusyMilli uint32
	BusyKnown bool
}

// Sample is the state of one device.
type Sample struct {
	UsedBytes uint64 // on the device as a whole
	// UsedKnown is false if the driver has no such figure.
	UsedKnown bool
	Processes []Process
	// ProcessesErr says why Processes is not known, nil if it is.
	ProcessesErr error
}

// Driver is what the worker calls: the real library or a test's.
type Driver interface {
	// Inventory starts the library if need be and lists the devices.
	Inventory() (Inventory, error)
	// Sample reads the state of the device with that UUID.
	Sample(uuid string) (Sample, error)
	// Shutdown ends the library.
	Shutdown()
}

// Library makes calls into a Driver with a deadline each. It may be used by
// several goroutines.
type Library struct {
	driver Driver
	calls  chan func()
	done   chan struct{} // closed when the worker has ended
	// busySince is when the call in progress began, nanoseconds since start; 0 if
	// there is none.
	busySince atomic.Int64
	start     time.Time
	// patience is how long a call may run before others are refused at once.
	patience time.Duration

	mu     sync.Mutex
	closed bool
}

// New returns a Library that calls driver. Patience is how long a call may take
// before the library counts as hung.
func New(driver Driver, patience time.Duration) *Library {
	l := &Library{driver: driver, calls: make(chan func()), done: make(chan struct{}), start: time.Now(), patience: patience}
	go l.work()
	return l
}

func (l *Library) work() {
	defer close(l.done)
	for f := range l.calls {
		l.busySince.Store(int64(time.Since(l.start)) + 1)
		f()
		l.busySince.Store(0)
	}
}

// do runs f in the worker and waits for it.
func (l *Library) do(ctx context.Context, f func()) error {
	if since := l.busySince.Load(); since != 0 && time.Since(l.start)-time.Duration(since) > l.patience {
		return ErrHung
	}
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	finished := make(chan struct{})
	call := func() { defer close(finished); f() }
	if err := l.send(ctx, call); err != nil {
		return err
	}
	select {
	case <-finished:
		return nil
	case <-ctx.Done():
		return hung(ctx.Err())
	}
}

func (l *Library) send(ctx context.Context, call func()) error {
	for {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return ErrClosed
		}
		select {
		case l.calls <- call:
			l.mu.Unlock()
			return nil
		default:
			l.mu.Unlock()
		}
		// The worker is busy: it takes calls in no order, which is good enough.
		select {
		case <-ctx.Done():
			return hung(ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

func hung(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return ErrHung
}

// Inventory lists the GPUs.
func (l *Library) Inventory(ctx context.Context) (Inventory, error) {
	// The worker may answer after the deadline: it writes to its own variable.
	type answer struct {
		inv Inventory
		err error
	}
	got := make(chan answer, 1)
	err := l.do(ctx, func() {
		inv, err := l.driver.Inventory()
		got <- answer{inv, err}
	})
	if err != nil {
		return Inventory{}, err
	}
	a := <-got
	return a.inv, a.err
}

// Sample reads the state of one GPU.
func (l *Library) Sample(ctx context.Context, uuid string) (Sample, error) {
	type answer struct {
		sample Sample
		err    error
	}
	got := make(chan answer, 1)
	err := l.do(ctx, func() {
		s, err := l.driver.Sample(uuid)
		got <- answer{s, err}
	})
	if err != nil {
		return Sample{}, err
	}
	a := <-got
	return a.sample, a.err
}

// Close ends the library. It does not wait for a call that hangs.
func (l *Library) Close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	close(l.calls)
	l.mu.Unlock()
	select {
	case <-l.done:
		l.driver.Shutdown()
	case <-time.After(l.patience):
	}
}
