// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// sharedFile makes a memory file of size bytes that nobody can shrink or grow,
// so that a client cannot make this process fault, and maps it for writing;
// then it adds seals.
func sharedFile(name string, size int, seals int) (fd int, mem []byte, err error) {
	fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, nil, fmt.Errorf("create memory file %s: %w", name, err)
	}
	if err = unix.Ftruncate(fd, int64(size)); err == nil {
		mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
			unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL|seals)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, nil, fmt.Errorf("set up memory file %s of %d bytes: %w", name, size, err)
	}
	return fd, mem, nil
}

func asShared(mem []byte) *wire.Shared {
	return (*wire.Shared)(unsafe.Pointer(&mem[0])) //nolint:gosec // layout pinned by wire.TestHeader
}

const (
	futexWait       = 0
	futexWake       = 1
	futexWaitBitset = 9
	futexAll        = 0xffffffff
)

// wakeFutex wakes every thread, of any process, that waits on word.
func wakeFutex(word *uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1<<30, 0, 0, 0)
}

// waitFutex blocks while word holds value, until a wake or the moment until
// (CLOCK_MONOTONIC nanoseconds).
func waitFutex(word *uint32, value uint32, until int64) {
	ts := unix.NsecToTimespec(until)
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitBitset,
		uintptr(value), uintptr(unsafe.Pointer(&ts)), 0, futexAll)
}

// load64 and store64 touch memory that a client also writes.
func load64(p *uint64) uint64     { return atomic.LoadUint64(p) }
func store64(p *uint64, v uint64) { atomic.StoreUint64(p, v) }
