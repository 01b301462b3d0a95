// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package proc says which processes live and which container they belong to, by
// what the kernel says: start times, pidfds, control groups and mounts. A bare
// PID is never trusted, since it can be taken again.
package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrGone is returned for a process that has ended or has been replaced by
// another of the same PID.
var ErrGone = errors.New("process has ended")

// ID names one process for as long as the machine is up.
type ID struct {
	PID int `json:"pid"`
	// Start is the start time in clock ticks since boot, /proc/PID/stat field 22.
	Start uint64 `json:"start"`
}

// IsZero reports whether id names no process.
func (id ID) IsZero() bool { return id.PID == 0 }

// Lookup returns the ID of the process that has that PID now, or ErrGone.
func Lookup(pid int) (ID, error) {
	s, err := stat(pid)
	if err != nil {
		return ID{}, err
	}
	// The first thread of a process can end before the others, and does so for a
	// moment when another thread calls execve, as Go's runtime may: only with its
	// last thread has a process ended.
	if s.state == 'X' || s.state == 'Z' && s.threads <= 1 {
		return ID{}, fmt.Errorf("look up process %d: %w", pid, ErrGone)
	}
	return ID{PID: pid, Start: s.start}, nil
}

// Alive reports whether the process still runs. A zombie does not.
func (id ID) Alive() bool {
	if id.IsZero() {
		return false
	}
	now, err := Lookup(id.PID)
	return err == nil && now.Start == id.Start
}

// Ending reports whether the process has one thread left and that one is on its way
// out: it runs no code of its own any more. It need not be a zombie yet. The first
// process of a PID namespace waits until the others have been reaped, and those that
// were exec'd into it have parents outside, which may be dead or slow.
func (id ID) Ending() bool {
	if id.IsZero() {
		return false
	}
	const exiting = 0x4 // PF_EXITING
	s, err := stat(id.PID)
	return err == nil && s.start == id.Start && s.threads <= 1 && s.flags&exiting != 0
}

// status is what is read of /proc/PID/stat.
type status struct {
	start, threads, flags uint64
	state                 byte
}

func stat(pid int) (status, error) {
	if pid <= 0 {
		return status{}, fmt.Errorf("look up process %d: %w", pid, ErrGone)
	}
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			err = ErrGone
		}
		return status{}, fmt.Errorf("look up process %d: %w", pid, err)
	}
	return parseStat(raw)
}

// parseStat reads a line of /proc/PID/stat. The command name is the tenant's
// and may hold blanks and brackets: what counts is after the last one.
func parseStat(raw []byte) (s status, err error) {
	_, tail, ok := bytesCutLast(raw, ')')
	fields := strings.Fields(string(tail))
	if !ok || len(fields) < 20 || len(fields[0]) != 1 {
		return status{}, errors.New("read process state: malformed line")
	}
	s.state = fields[0][0]
	for _, f := range []struct {
		to   *uint64
		text string
	}{{&s.start, fields[19]}, {&s.threads, fields[17]}, {&s.flags, fields[6]}} {
		if *f.to, err = strconv.ParseUint(f.text, 10, 64); err != nil {
			return status{}, fmt.Errorf("read process state: %w", err)
		}
	}
	return s, nil
}

func bytesCutLast(b []byte, sep byte) (before, after []byte, ok bool) {
	i := bytes.LastIndexByte(b, sep)
	if i < 0 {
		return nil, nil, false
	}
	return b[:i], b[i+1:], true
}

// Handle waits for the end of one process without polling and without holding
// an OS thread.
type Handle struct{ f *os.File }

// Open returns a handle on the process, or ErrGone.
func Open(id ID) (*Handle, error) {
	fd, err := unix.PidfdOpen(id.PID, unix.PIDFD_NONBLOCK)
	if err != nil {
		if errors.Is(err, unix.ESRCH) {
			err = ErrGone
		}
		return nil, fmt.Errorf("open process %d: %w", id.PID, err)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	// Checked after the descriptor is open: from here on it cannot be another's.
	if !id.Alive() {
		f.Close()
		return nil, fmt.Errorf("open process %d: %w", id.PID, ErrGone)
	}
	return &Handle{f: f}, nil
}

// Wait returns nil when the process has ended, or ctx's error.
func (h *Handle) Wait(ctx context.Context) error {
	raw, err := h.f.SyscallConn()
	if err != nil {
		return fmt.Errorf("wait for process: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { h.f.Close() })
	defer stop()
	err = raw.Read(func(fd uintptr) bool { return readable(fd) })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("wait for process: %w", err)
	}
	return nil
}

// Close releases the handle.
func (h *Handle) Close() { h.f.Close() }

func readable(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(p, 0)
		if !errors.Is(err, unix.EINTR) {
			return err != nil || n > 0
		}
	}
}

// BootID is the kernel's name for this boot.
func BootID() (string, error) {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}
