// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ledger is the daemon's view of one container's ledger. It reads with bounded
// reads and never maps the file, because the tenant can truncate it. A Ledger
// must be used by one goroutine at a time.
type Ledger struct {
	f    *os.File
	gpus int
}

// Usage is what a ledger says, all of it the tenant's own word.
type Usage struct {
	GPU       []GPUUsage
	Processes int // slots whose holder lives
	// HostBytes is the host memory that device allocations have spilled to.
	HostBytes uint64
	// ExportTables is LedgerHeader.ExportTables.
	ExportTables uint64
}

// GPUUsage is the usage of one GPU.
type GPUUsage struct {
	Bytes uint64 // device memory in use by living holders, and in shares
	// Guess is what living holders have charged in advance of the driver's figure.
	// GuessMark is the highest of their marks: once GPULimit.SettleDone has reached it
	// the guesses count no more.
	Guess     uint64
	GuessMark uint32
	// Dead is what is still charged for holders that have ended.
	Dead uint64
	GPUAccount
}

// CreateLedger makes an empty ledger at path, mode 0666, for that many GPUs.
func CreateLedger(path string, gpus int) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("create ledger: %w", err)
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, LedgerSize(gpus)); err != nil {
		return fmt.Errorf("create ledger %s: %w", path, err)
	}
	h := make([]byte, 20)
	for i, v := range []uint32{LedgerMagic, Version, uint32(LedgerSize(gpus)), uint32(gpus), SlotCount} {
		binary.NativeEndian.PutUint32(h[4*i:], v)
	}
	if _, err := f.WriteAt(h, 0); err != nil {
		return fmt.Errorf("create ledger: %w", err)
	}
	if err := f.Chmod(0o666); err != nil {
		return fmt.Errorf("create ledger: %w", err)
	}
	return nil
}

// OpenLedger opens the ledger at path of a container that holds that many GPUs.
func OpenLedger(path string, gpus int) (*Ledger, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	return &Ledger{f: f, gpus: gpus}, nil
}

// Close closes the ledger. The file stays.
func (l *Ledger) Close() error { return l.f.Close() }

// Read sums the ledger. It returns ErrLayout if the tenant has damaged it.
func (l *Ledger) Read() (Usage, error) { return l.read(false) }

// Sweep is Read that also gives the slots of dead processes back, ReapGrace
// after the first sweep, by whomever, that found them dead.
func (l *Ledger) Sweep() (Usage, error) { return l.read(true) }

func (l *Ledger) read(reclaim bool) (Usage, error) {
	head := make([]byte, LedgerHeaderSize)
	if err := l.readAt(head, 0); err != nil {
		return Usage{}, err
	}
	word := func(i int) uint32 { return binary.NativeEndian.Uint32(head[4*i:]) }
	if word(0) != LedgerMagic || word(1) != Version || int64(word(2)) != LedgerSize(l.gpus) ||
		int(word(3)) != l.gpus || word(4) != SlotCount {
		return Usage{}, fmt.Errorf("read ledger %s: header: %w", l.f.Name(), ErrLayout)
	}
	high := int(min(word(5), SlotCount))
	u := Usage{GPU: make([]GPUUsage, l.gpus)}
	u.ExportTables = binary.NativeEndian.Uint64(head[unsafe.Offsetof(LedgerHeader{}.ExportTables):])
	for g := range u.GPU {
		u.GPU[g].GPUAccount = decodeAccount(head[64+128*g:])
	}
	slots := make([]byte, high*SlotSize)
	if err := l.readAt(slots, LedgerHeaderSize); err != nil {
		return Usage{}, err
	}
	columns := make([][]byte, 2*l.gpus) // used, then guesses
	for g := range columns {
		columns[g] = make([]byte, 8*high)
		if err := l.readAt(columns[g], UsedOffset(g, 0)); err != nil {
			return Usage{}, err
		}
	}
	living := make([]bool, high)
	for s := range high {
		shares := binary.NativeEndian.Uint32(slots[s*SlotSize+int(unsafe.Offsetof(Slot{}.Shares)):]) != 0
		if binary.NativeEndian.Uint32(slots[s*SlotSize:]) == SlotFree && !shares && !anyBytes(columns, s) {
			continue
		}
		held, err := l.held(s)
		if err != nil {
			return Usage{}, err
		}
		if !held {
			for g := range u.GPU {
				u.GPU[g].Dead = addSaturating(u.GPU[g].Dead, binary.NativeEndian.Uint64(columns[g][8*s:]))
			}
			if reclaim {
				l.reclaim(s, anyBytes(columns, s), shares)
			}
			continue
		}
		living[s] = true
		u.Processes++
		u.HostBytes = addSaturating(u.HostBytes, binary.NativeEndian.Uint64(slots[s*SlotSize+int(unsafe.Offsetof(Slot{}.HostBytes)):]))
		mark := binary.NativeEndian.Uint32(slots[s*SlotSize+int(unsafe.Offsetof(Slot{}.GuessMark)):])
		for g := range u.GPU {
			to := &u.GPU[g]
			to.Bytes = addSaturating(to.Bytes, binary.NativeEndian.Uint64(columns[g][8*s:]))
			if guess := binary.NativeEndian.Uint64(columns[l.gpus+g][8*s:]); guess != 0 {
				to.Guess = addSaturating(to.Guess, guess)
				to.GuessMark = max(to.GuessMark, mark)
			}
		}
	}
	return u, l.addShares(&u, head, living, reclaim)
}

// readAt fills b from the file; a file that the tenant cut short is ErrLayout.
func (l *Ledger) readAt(b []byte, off int64) error {
	_, err := l.f.ReadAt(b, off)
	if errors.Is(err, io.EOF) {
		err = ErrLayout
	}
	if err != nil {
		return fmt.Errorf("read ledger %s: %w", l.f.Name(), err)
	}
	return nil
}

// held reports whether a process holds the slot's lock.
func (l *Ledger) held(slot int) (bool, error) {
	lk := unix.Flock_t{Type: unix.F_WRLCK, Start: LockBase + int64(slot), Len: 1}
	if err := unix.FcntlFlock(l.f.Fd(), unix.F_OFD_GETLK, &lk); err != nil {
		return false, fmt.Errorf("test slot %d of ledger %s: %w", slot, l.f.Name(), err)
	}
	return lk.Type != unix.F_UNLCK, nil
}

// reclaim clears the slot of a dead process under its lock, so that a process
// that takes the slot at this moment keeps what it writes. One that holds bytes
// is only marked at first: the driver may not have freed its memory yet.
func (l *Ledger) reclaim(slot int, holds, shares bool) {
	lk := unix.Flock_t{Type: unix.F_WRLCK, Start: LockBase + int64(slot), Len: 1}
	if unix.FcntlFlock(l.f.Fd(), unix.F_OFD_SETLK, &lk) != nil {
		return // taken again meanwhile
	}
	if !holds && !shares || l.mourned(slot) {
		if shares {
			l.forgetHolder(slot)
		}
		zero := make([]byte, SlotSize)
		for g := range 2 * l.gpus {
			_, _ = l.f.WriteAt(zero[:8], UsedOffset(g, slot))
		}
		_, _ = l.f.WriteAt(zero, LedgerHeaderSize+int64(slot)*SlotSize)
	}
	lk.Type = unix.F_UNLCK
	_ = unix.FcntlFlock(l.f.Fd(), unix.F_OFD_SETLK, &lk)
}

// mourned reports whether the slot has been marked dead for ReapGrace, and marks
// it if it is not marked. The caller holds the slot's lock.
func (l *Ledger) mourned(slot int) bool {
	return l.past(LedgerHeaderSize+int64(slot)*SlotSize+int64(unsafe.Offsetof(Slot{}.DiedNs)), ReapGrace)
}

// past reports whether the time at off, CLOCK_MONOTONIC, is grace nanoseconds ago,
// and sets it if it is not set.
func (l *Ledger) past(off int64, grace uint64) bool {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return false
	}
	now := uint64(ts.Nano())
	mark := make([]byte, 8)
	if _, err := l.f.ReadAt(mark, off); err != nil {
		return false
	}
	// A mark from the future is the tenant's doing; start again.
	if died := binary.NativeEndian.Uint64(mark); died != 0 && died <= now {
		return now-died >= grace
	}
	binary.NativeEndian.PutUint64(mark, now)
	_, _ = l.f.WriteAt(mark, off)
	_, _ = l.f.WriteAt(mark, int64(unsafe.Offsetof(LedgerHeader{}.DyingNs)))
	return false
}

func anyBytes(columns [][]byte, slot int) bool {
	for _, c := range columns {
		if binary.NativeEndian.Uint64(c[8*slot:]) != 0 {
			return true
		}
	}
	return false
}

func addSaturating(a, b uint64) uint64 {
	if a+b < a {
		return 1<<64 - 1
	}
	return a + b
}

func decodeAccount(b []byte) GPUAccount {
	v := func(i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }
	return GPUAccount{
		PaidNs: v(0), ChargedNs: v(1), ThrottledNs: v(2), Throttles: v(3), Launches: v(4),
		Denied: v(5), DeniedBytes: v(6), Unpriced: v(7), Peak: v(8),
	}
}
