// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package region is the shared-memory contract between the daemon and the
// interception library: the limits page, which only the daemon writes, and the
// ledger, which the container's own processes write.
//
// The Go types in this file are the one source of the layout. `go generate`
// writes them as C to cuda-intercept/include/region.h, where static assertions
// pin every offset; a test compiles that header and compares it with Go.
//
// # Rules
//
// The limits page is read-only inside the container and carries no lock. Each
// field that changes while the container runs is one naturally aligned word
// that is stored and loaded atomically, so no reader ever sees half a value.
//
// The ledger is the tenant's own word. Nobody outside the container maps it or
// trusts it: the daemon reads it with bounded reads. Inside, a process owns one
// slot for as long as it holds a write lock (F_OFD_SETLK) on byte
// LockBase+slot; the kernel drops the lock with the last descriptor that shares
// the open file description, which is also when the driver frees the process's
// device memory. No count is shared between processes: the bytes in use on a GPU
// are the sum of that GPU's column over all slots.
package region

//go:generate go run ./gen -out ../../cuda-intercept/include/region.h

// Version of both layouts. A reader refuses any other.
const Version = 2

const (
	// LimitsMagic starts a limits page ("GSLM", little endian).
	LimitsMagic = 0x4d4c5347
	// LedgerMagic starts a ledger ("GSLG", little endian).
	LedgerMagic = 0x474c5347
	// DoorbellMagic starts a datagram on control.sock ("GSDB", little endian).
	DoorbellMagic = 0x42445347

	// MaxGPUs is the most GPUs that one container can hold.
	MaxGPUs = 16
	// LimitsSize is the size of a limits page in bytes.
	LimitsSize = 4096
	// LedgerHeaderSize is the size in bytes of what precedes the slots.
	LedgerHeaderSize = 4096
	// SlotSize is the size of one slot's record in bytes.
	SlotSize = 64
	// SlotCount is the number of slots: one for each process that has called
	// cuInit and not ended.
	SlotCount = 4096
	// LockBase is the file offset of slot 0's lock byte. It lies far beyond the
	// end of the ledger: a lock needs no byte behind it.
	LockBase = 1 << 30
	// ShareCount is the number of records for memory that several processes hold.
	ShareCount = 1024
	// ShareSize is the size of one such record in bytes.
	ShareSize = 64
	// ShareLockBase is the file offset of share 0's lock byte. Whoever changes or frees
	// the record holds a write lock on it.
	ShareLockBase = LockBase + SlotCount
	// HolderCount is the number of words that tell which slot holds which share.
	HolderCount = 8192
	// TagGrace is the least time in nanoseconds between finding that the last
	// descriptor which held a share is closed and counting its bytes as free: as
	// ReapGrace, for the driver learns of it after the kernel has dropped its locks.
	TagGrace = ReapGrace
	// MilliGPU is the whole of one GPU's time.
	MilliGPU = 1000
	// ChargeGranule is the unit in bytes to which a linear allocation is rounded
	// up before it is charged.
	ChargeGranule = 512
	// SweepInterval is the least time between two sweeps for dead slots by the
	// processes of one container, in nanoseconds.
	SweepInterval = 100_000_000
	// SweepMax is the most slots that one such sweep tests.
	SweepMax = 64
	// ReapGrace is the least time in nanoseconds between finding a slot's lock
	// gone and counting its bytes as free. The lock and the driver's own
	// descriptors are closed one after the other, in an order that no one
	// promises, and a driver frees a dead process's memory in its own time.
	ReapGrace = 200_000_000
	// HoldMax is how long a process obeys one value of a hold word, in
	// nanoseconds: a daemon that died while holding cannot stop a tenant.
	HoldMax = 250_000_000
	// BurstNs is how much wall time a container may be ahead of its share, in
	// nanoseconds.
	BurstNs = 20_000_000
	// DebtMax bounds the debt of a container in nanoseconds of wall time.
	DebtMax = 10_000_000_000
)

// Slot states.
const (
	SlotFree = 0
	SlotUsed = 1
)

// Share states.
const (
	ShareFree = 0
	ShareUsed = 1
	// ShareMoving counts as ShareUsed. The bytes are in its maker's word, too, for the
	// few instructions that it takes to move them.
	ShareMoving = 2
	// ShareStandby does not count: the bytes are in the word of the slot Key[1]-1, which
	// keeps them there (a pool's). It becomes ShareUsed when that one ends or lets go.
	ShareStandby = 3
)

// Flags of a share.
const (
	// ShareTagged says that descriptors were made of the memory: each has a lock at
	// offset Tag, and as long as one of those locks stands the memory is held.
	ShareTagged = 1
	// ShareAnyFile says that the descriptors' files are more than Share.File can name:
	// a lock at offset Tag counts on any file.
	ShareAnyFile = 2
	// ShareObject says that it is no memory but an object through which memory is
	// reached, of no bytes of its own.
	ShareObject = 4
)

// SettleRing is the least time in nanoseconds between two DoorbellSettle of a process.
const SettleRing = 10_000_000

// GuessPending is the mark of a guess whose driver call has not returned.
const GuessPending = 0xffffffff

// Doorbell kinds.
const (
	// DoorbellPrice asks for an exclusive window on a GPU to price a kernel.
	DoorbellPrice = 1
	// DoorbellDone says that the window is no longer needed.
	DoorbellDone = 2
	// DoorbellSettle asks for a look at the driver's figure: device memory was taken
	// or given back in amounts that no call tells.
	DoorbellSettle = 3
)

// LimitsHeader starts the limits page.
type LimitsHeader struct {
	Magic    uint32
	Version  uint32
	Size     uint32 // bytes of the page, LimitsSize
	GPUCount uint32 // entries in use
	// Generation is bumped after every change of the page; it is a futex word.
	Generation uint32
	SlotCount  uint32 // slots of this container's ledger
	LedgerSize uint64 // bytes of this container's ledger
	// HostMemory is how many bytes of host memory the container's device
	// allocations may spill to, all GPUs together; 0 is none.
	HostMemory uint64
	_          [24]byte
}

// GPULimit is one GPU of the container, keyed by UUID.
type GPULimit struct {
	UUID         [16]byte // as cuDeviceGetUuid gives it
	MemoryLimit  uint64   // bytes
	ContextBytes uint64   // bytes charged in advance for a context
	ComputeMilli uint32   // guaranteed share of GPU time, milli-GPU
	CeilingMilli uint32   // most GPU time that the container may use, milli-GPU
	// Hold is a futex word: nonzero while the daemon keeps this container off
	// the GPU so that another may measure a kernel alone.
	Hold uint32
	// Window is nonzero while this container has the GPU to itself.
	Window uint32
	// Alone is 1 while no other container is placed on this GPU.
	Alone uint32
	// InflightUs bounds the GPU time that may be queued and not yet finished,
	// in microseconds; 0 is the library's default: 5000 with neighbours on the GPU,
	// 20000 alone under a ceiling, else no bound.
	InflightUs uint32
	// BlockBytes is the unit in which the driver takes device memory, in bytes; 0 is
	// ChargeGranule.
	BlockBytes uint64
	// NextContextBytes is ContextBytes of a process's second context and later ones;
	// 0 is ContextBytes.
	NextContextBytes uint64
	// ModuleBytes is charged in advance for a module whose code is used for the first
	// time, in bytes; 0 where that costs nothing or is not known.
	ModuleBytes uint64
	// StackThreads is how many bytes of device memory one byte more of a context's stack limit
	// costs: the threads that the GPU can hold; 0 where not known.
	StackThreads uint64
	// Growth is what the driver was seen to have taken for the container beyond what
	// its ledger announces, in bytes. It is charged beside the ledger.
	Growth uint64
	// SettleBegin is the number of the newest look at the driver's figure that was
	// begun, SettleDone of the newest whose result stands in Growth, which is
	// stored first. A guess made before a look began is part of its result. A look is
	// at all of the container's GPUs: its number is the same on each.
	SettleBegin uint32
	SettleDone  uint32
	// BusyMilli is the GPU time that the container used over the last second,
	// milli-GPU.
	BusyMilli uint32
	// GraphNodeBytes is charged in advance for each node of an executable graph.
	GraphNodeBytes uint32
	_              [16]byte
}

// LimitsPage is the whole limits page.
type LimitsPage struct {
	Header LimitsHeader
	GPU    [MaxGPUs]GPULimit
	_      [LimitsSize - 64 - MaxGPUs*128]byte
}

// GPUAccount is the container's running account on one GPU. Every field is
// advisory: it feeds reports and pacing inside the container, never the memory
// limit.
type GPUAccount struct {
	// PaidNs is the CLOCK_MONOTONIC time in nanoseconds up to which the
	// container has used up its ceiling. A launch that costs c moves it on by
	// c*1000/ceiling; it may be ahead of now by BurstNs, beyond that a launch
	// waits.
	PaidNs      uint64
	ChargedNs   uint64 // GPU time charged, nanoseconds
	ThrottledNs uint64 // time that launches waited, nanoseconds, summed over threads
	Throttles   uint64 // launches that waited
	Launches    uint64 // kernel and graph launches
	Denied      uint64 // allocations refused at the limit
	DeniedBytes uint64 // bytes of those
	Unpriced    uint64 // launches charged by wall time for want of a price
	Peak        uint64 // most bytes in use, as seen by allocating processes
	// PaidMilli is the ceiling under which what PaidNs is ahead of now was
	// charged. Whoever finds it differ from the page converts PaidNs first.
	PaidMilli uint64
	// Measurer is the one process that runs in a pricing window, the others wait:
	// the low 32 bits of the window's id, and in the high ones its slot plus 1.
	Measurer uint64
	// MeasureNs is the end of a window that a container alone on its GPU gave
	// itself, CLOCK_MONOTONIC nanoseconds; its id is the low 32 bits of that.
	MeasureNs uint64
	_         [32]byte
}

// LedgerHeader starts the ledger.
type LedgerHeader struct {
	Magic     uint32
	Version   uint32
	Size      uint32 // bytes of the ledger
	GPUCount  uint32
	SlotCount uint32
	// SlotHigh is one more than the highest slot ever taken.
	SlotHigh uint32
	// SlotHint is where the search for a free slot starts.
	SlotHint uint32
	// SweepNext is the slot at which the next sweep starts.
	SweepNext uint32
	// SweptNs is the CLOCK_MONOTONIC time of the last sweep, nanoseconds.
	SweptNs uint64
	// ExportTables counts the function tables that the driver handed out by
	// cuGetExportTable and that the library does not know. Calls through them are
	// seen by nobody.
	ExportTables uint64
	// ShareHigh is one more than the highest share ever taken.
	ShareHigh uint32
	// GuessMark is the highest mark that a slot ever had: while SettleDone has
	// reached it there is no guess to add.
	GuessMark uint32
	// Guessing counts the processes that are in a driver call with a guess. One that
	// is killed there may leave it too high, which costs readers time and nothing else.
	Guessing uint32
	// HolderHigh is one more than the highest holder's word ever taken.
	HolderHigh uint32
	GPU        [MaxGPUs]GPUAccount
	// DyingNs is the CLOCK_MONOTONIC time at which a slot was last found dead with
	// bytes in it, in nanoseconds; 0 once all such slots have been given back.
	DyingNs uint64
	_       [LedgerHeaderSize - 64 - MaxGPUs*128 - 8]byte
}

// Slot is one process of the container.
type Slot struct {
	State uint32 // SlotFree or SlotUsed
	PID   uint32 // as the process itself sees it
	// Library is the layout version that the process was built with.
	Library  uint32
	Contexts uint32 // contexts charged
	// DiedNs is the CLOCK_MONOTONIC time at which somebody found this slot's
	// lock gone while it still held bytes, in nanoseconds; 0 otherwise. It is
	// written only under the slot's lock.
	DiedNs uint64
	// HostBytes is the host memory that device allocations have spilled to.
	HostBytes uint64
	// GuessMark tells which look at the driver's figure will have seen the slot's
	// guesses: they count no more once GPULimit.SettleDone has reached it.
	GuessMark uint32
	// Shares is nonzero once words of holders may name the slot.
	Shares uint32
	_      [24]byte
}

// Share is device memory that more than one process may hold, once for all of them.
// It is not in any slot's word. It lives while a living slot holds it or a tag of it
// stands (docs/design/0009-memory-held-by-several.md).
type Share struct {
	// Tag is the offset of the lock that marks descriptors of the memory, 62 random
	// bits: whoever is given one finds the record by it.
	Tag   uint64
	Bytes uint64
	// DiedNs is the CLOCK_MONOTONIC time at which somebody found the last tag gone of a
	// share that no slot holds, in nanoseconds; 0 otherwise.
	DiedNs uint64
	// Key are hashes of the bytes by which importers know the memory where no
	// descriptor travels; 0 is none.
	Key [2]uint64
	// File names the descriptors' files as /proc/locks does; 0 is none.
	File  [2]uint64
	State uint32 // ShareFree or another of them
	GPU   uint16
	Flags uint16
}

// Doorbell is a datagram from a process to the daemon on control.sock.
type Doorbell struct {
	Magic  uint32
	Kind   uint32
	GPU    uint32 // index into LimitsPage.GPU
	Slot   uint32
	WallNs uint64 // last wall time of the kernel to price, nanoseconds
	_      uint64
}

// LedgerSize is the size in bytes of a ledger for that many GPUs: the header, the
// slots, two columns of one word a slot for each GPU, used and guessed, the shares
// and who holds them.
func LedgerSize(gpus int) int64 { return HolderOffset(gpus, HolderCount) }

const columnsOffset = LedgerHeaderSize + SlotCount*SlotSize

// UsedOffset is the file offset of the word that holds the bytes in use by slot
// on gpu.
func UsedOffset(gpu, slot int) int64 {
	return columnsOffset + int64(gpu)*SlotCount*8 + int64(slot)*8
}

// GuessOffset is the file offset, in a ledger for that many GPUs, of the word that
// holds the bytes that slot has charged on gpu in advance of the driver's figure.
func GuessOffset(gpus, gpu, slot int) int64 { return UsedOffset(gpus+gpu, slot) }

// ShareOffset is the file offset of a share in a ledger for that many GPUs.
func ShareOffset(gpus, share int) int64 { return UsedOffset(2*gpus, 0) + int64(share)*ShareSize }

// HolderOffset is the file offset of a word that says who holds a share: the share's
// number plus 1 in the high 32 bits, the slot's plus 1 in the low ones; 0 is free.
func HolderOffset(gpus, holder int) int64 { return ShareOffset(gpus, ShareCount) + int64(holder)*8 }
