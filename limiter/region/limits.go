// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrLayout is returned when a file is not a limits page or ledger of this
// layout version, or has been tampered with.
var ErrLayout = errors.New("not a region of this layout")

// ErrVersion is the ErrLayout of a page that another version of gpushare made.
var ErrVersion = fmt.Errorf("made by another version: %w", ErrLayout)

// Limits is the daemon's writable mapping of one container's limits page. Its
// methods may be called from several goroutines; two writers of the same field
// must agree between themselves.
type Limits struct {
	page *LimitsPage
	data []byte
}

// CreateLimits makes the limits page at path, mode 0444, for a container that
// holds the given GPUs, and maps it. The page is complete before the file has
// its name's mode; nothing must read it before CreateLimits returns.
func CreateLimits(path string, gpus []GPULimit) (*Limits, error) {
	if len(gpus) == 0 || len(gpus) > MaxGPUs {
		return nil, fmt.Errorf("create limits page %s: %d GPUs, want 1 to %d", path, len(gpus), MaxGPUs)
	}
	l, err := mapLimits(path, unix.O_CREAT|unix.O_EXCL, LimitsSize)
	if err != nil {
		return nil, fmt.Errorf("create limits page %s: %w", path, err)
	}
	copy(l.page.GPU[:], gpus)
	l.page.Header = LimitsHeader{
		Magic: LimitsMagic, Version: Version, Size: LimitsSize,
		GPUCount: uint32(len(gpus)), Generation: 1,
		SlotCount: SlotCount, LedgerSize: uint64(LedgerSize(len(gpus))),
	}
	if err := os.Chmod(path, 0o444); err != nil {
		l.Close()
		return nil, fmt.Errorf("create limits page: %w", err)
	}
	return l, nil
}

// OpenLimits maps the limits page at path, which an earlier daemon made. It
// returns ErrLayout if the page is of another layout.
func OpenLimits(path string) (*Limits, error) {
	l, err := mapLimits(path, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("open limits page %s: %w", path, err)
	}
	h := &l.page.Header
	if version := h.Version; h.Magic == LimitsMagic && version != Version {
		l.Close()
		return nil, fmt.Errorf("open limits page %s: layout version %d, this is %d: %w", path, version, uint32(Version), ErrVersion)
	}
	if h.Magic != LimitsMagic || h.Version != Version || h.Size != LimitsSize ||
		h.GPUCount == 0 || h.GPUCount > MaxGPUs || h.LedgerSize != uint64(LedgerSize(int(h.GPUCount))) {
		l.Close()
		return nil, fmt.Errorf("open limits page %s: %w", path, ErrLayout)
	}
	return l, nil
}

// mapLimits opens path with extra open flags, gives it size bytes unless that is
// 0, and maps one page of it.
func mapLimits(path string, flags int, size int64) (*Limits, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|flags, 0o600)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if size != 0 {
		if err := unix.Fallocate(fd, 0, 0, size); err != nil {
			return nil, err
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != LimitsSize {
		return nil, ErrLayout
	}
	data, err := unix.Mmap(fd, 0, LimitsSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &Limits{page: (*LimitsPage)(unsafe.Pointer(&data[0])), data: data}, nil
}

// Close unmaps the page. The file stays.
func (l *Limits) Close() error { return unix.Munmap(l.data) }

// GPUs returns how many GPUs the container holds.
func (l *Limits) GPUs() int { return int(l.page.Header.GPUCount) }

// GPU returns the limits on one GPU as they are now.
func (l *Limits) GPU(i int) GPULimit {
	g := &l.page.GPU[i]
	return GPULimit{
		UUID:         g.UUID,
		MemoryLimit:  atomic.LoadUint64(&g.MemoryLimit),
		ContextBytes: atomic.LoadUint64(&g.ContextBytes),
		ComputeMilli: atomic.LoadUint32(&g.ComputeMilli),
		CeilingMilli: atomic.LoadUint32(&g.CeilingMilli),
		Hold:         atomic.LoadUint32(&g.Hold),
		Window:       atomic.LoadUint32(&g.Window),
		Alone:        atomic.LoadUint32(&g.Alone),
		InflightUs:   atomic.LoadUint32(&g.InflightUs),

		BlockBytes:       atomic.LoadUint64(&g.BlockBytes),
		NextContextBytes: atomic.LoadUint64(&g.NextContextBytes),
		ModuleBytes:      atomic.LoadUint64(&g.ModuleBytes),
		StackThreads:     atomic.LoadUint64(&g.StackThreads),
		Growth:           atomic.LoadUint64(&g.Growth),
		SettleBegin:      atomic.LoadUint32(&g.SettleBegin),
		SettleDone:       atomic.LoadUint32(&g.SettleDone),
		BusyMilli:        atomic.LoadUint32(&g.BusyMilli),
		GraphNodeBytes:   atomic.LoadUint32(&g.GraphNodeBytes),
	}
}

// BeginSettle starts a look at the driver's figure, on all of the container's GPUs,
// and returns its number. One goroutine at a time settles a container.
func (l *Limits) BeginSettle() uint32 {
	look := uint32(0)
	for i := range l.GPUs() {
		look = max(look, atomic.LoadUint32(&l.page.GPU[i].SettleBegin))
	}
	// The highest number is the mark of a guess under way.
	if look++; look == GuessPending {
		look = 1
	}
	for i := range l.GPUs() {
		atomic.StoreUint32(&l.page.GPU[i].SettleBegin, look)
	}
	return look
}

// EndSettle says what the look with that number has found: the bytes that the
// driver took beyond what the ledger announces. Looks end in the order in which
// they began.
func (l *Limits) EndSettle(gpu int, look uint32, growth uint64) {
	// The result before its number: who sees the number sees the result.
	atomic.StoreUint64(&l.page.GPU[gpu].Growth, growth)
	atomic.StoreUint32(&l.page.GPU[gpu].SettleDone, look)
}

// HostMemory returns the bytes of host memory that allocations may spill to.
func (l *Limits) HostMemory() uint64 { return atomic.LoadUint64(&l.page.Header.HostMemory) }

// SetHostMemory changes them.
func (l *Limits) SetHostMemory(bytes uint64) {
	atomic.StoreUint64(&l.page.Header.HostMemory, bytes)
	l.bump()
}

// SetBusy tells the container how much GPU time it used, in milli-GPU.
func (l *Limits) SetBusy(gpu int, milli uint32) {
	atomic.StoreUint32(&l.page.GPU[gpu].BusyMilli, milli)
}

// SetMemory changes the memory limit, in bytes.
func (l *Limits) SetMemory(gpu int, bytes uint64) {
	atomic.StoreUint64(&l.page.GPU[gpu].MemoryLimit, bytes)
	l.bump()
}

// SetContextBytes changes what a context is charged in advance, in bytes.
func (l *Limits) SetContextBytes(gpu int, bytes uint64) {
	atomic.StoreUint64(&l.page.GPU[gpu].ContextBytes, bytes)
	l.bump()
}

// SetShare changes the guarantee and the ceiling, in milli-GPU, and wakes
// launches that wait.
func (l *Limits) SetShare(gpu int, compute, ceiling uint32) {
	atomic.StoreUint32(&l.page.GPU[gpu].ComputeMilli, compute)
	atomic.StoreUint32(&l.page.GPU[gpu].CeilingMilli, ceiling)
	l.bump()
}

// SetHold keeps the container off a GPU while v is not 0, and wakes it when v
// becomes 0.
func (l *Limits) SetHold(gpu int, v uint32) {
	atomic.StoreUint32(&l.page.GPU[gpu].Hold, v)
	wake(&l.page.GPU[gpu].Hold)
	l.bump()
}

// SetWindow tells the container that it has a GPU to itself, while v is not 0.
func (l *Limits) SetWindow(gpu int, v uint32) {
	atomic.StoreUint32(&l.page.GPU[gpu].Window, v)
	l.bump()
}

// SetAlone tells the container whether it is the only one on a GPU.
func (l *Limits) SetAlone(gpu int, alone bool) {
	v := uint32(0)
	if alone {
		v = 1
	}
	atomic.StoreUint32(&l.page.GPU[gpu].Alone, v)
	l.bump()
}

func (l *Limits) bump() {
	atomic.AddUint32(&l.page.Header.Generation, 1)
	wake(&l.page.Header.Generation)
}

// wake wakes every waiter on a futex word that other processes map.
func wake(word *uint32) {
	const futexWake = 1
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, math.MaxInt32, 0, 0, 0)
}
