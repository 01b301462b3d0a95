// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package wire holds the Go side of simgpu/lib/wire.h: message numbers, sizes
// and the layout of the memory that a client shares with the host process.
// TestHeader compares every value with the C header.
package wire

// Numbers of the protocol; see wire.h for what each request means.
const (
	Version    = 2
	Magic      = 0x31554753
	MaxMessage = 8192
	MaxGPUs    = 16
	MaxName    = 64
	Attributes = 162

	PeerNone   = 0
	PeerPCIe   = 1
	PeerNVLink = 2

	OpHello         = 1
	OpCtxCreate     = 2
	OpCtxDestroy    = 3
	OpStreamCreate  = 4
	OpStreamDestroy = 5
	OpFunction      = 6
	OpAlloc         = 7
	OpFree          = 8
	OpMemInfo       = 9
	OpGraphDefine   = 10
	OpGraphAppend   = 11
	OpGraphFree     = 12
	OpHostDone      = 13
	OpProcesses     = 14
	OpUtilization   = 15
	OpSamples       = 16

	OpStreamPriority = 128

	OpEventShare  = 144
	OpEventRecord = 145
	OpEventDrop   = 146

	OpCondition = 48
	// OpCheckpoint locks, saves, restores or unlocks a process.
	OpCheckpoint = 160

	PartKernel   = 0
	PartCopy     = 1
	PartFill     = 2
	PartJoin     = 3
	PartBranches = 16

	KindCUDA  = 1
	KindNVML  = 2
	KindClock = 3

	StreamBlocking    = 0
	StreamNonBlocking = 1
	StreamLegacy      = 2

	EntryKernel = 1
	EntryGraph  = 2
	EntryEvent  = 3
	EntryWait   = 4
	EntryHost   = 5
	EventShared = 0x80000000
	EntryCopy   = 16
	EntryFill   = 17

	CopyHtoD        = 1
	CopyDtoH        = 2
	CopyDtoD        = 3
	CopyPeer        = 4
	CopyHost        = 5
	CopyWay         = 0xff
	CopyPinned      = 0x100
	CopyPiecesShift = 16

	RingEntries = 1024
	StreamSlots = 1024
	EventSlots  = 65536
	HostSlots   = 1024

	ContextSlots = 4096

	Waiters        = 1024
	WaiterFree     = 0
	WaiterClaimed  = 1
	WaiterWaiting  = 2
	WaiterReady    = 3
	WaiterGranted  = 4
	WaiterPrepared = 5
	WaiterPoked    = 6
	WaitTurn       = 0
	WaitStream     = 1
	WaitSpace      = 2
	WaitHost       = 3
	WaitTime       = 4
	WaitAddress    = 5
	WaitPoll       = 6
	WaitEvent      = 7
	WaitBits       = 0x53474754
)

// CUresult and nvmlReturn_t values that the host process answers with.
const (
	CUDASuccess        = 0
	CUDAInvalidValue   = 1
	CUDAOutOfMemory    = 2
	CUDAInvalidDevice  = 101
	CUDAInvalidContext = 201
	CUDAInvalidHandle  = 400
	CUDAIllegalState   = 401
	CUDANotReady       = 600
	CUDAIllegalAddress = 700
	CUDANotSupported   = 801
	CUDALaunchTimeout  = 702
	CUDALaunchFailed   = 719
)

// Request is struct sg_request without the bytes that follow it.
type Request struct {
	Op, ID, GPU, Ctx uint32
	A, B             uint64
	Len, Reserved    uint32
}

// Reply is struct sg_reply without the bytes that follow it.
type Reply struct {
	Op, ID  uint32
	Status  int32
	Len     uint32
	A, B, C uint64
}

// GPUInfo is struct sg_gpu_info.
type GPUInfo struct {
	Name             [96]byte
	UUID             [48]byte
	Serial           [32]byte
	UUIDBytes        [16]byte
	MemoryBytes      uint64
	ContextBytes     uint64
	Multiprocessors  uint32
	Minor            uint32
	PCIDomain        uint32
	PCIBus           uint32
	PCIDevice        uint32
	PCIDeviceID      uint32
	PCISubsystemID   uint32
	Capability       uint32
	ReservedBytes    uint64
	Attribute        [Attributes]int32
	StreamPriorities uint32
	TimedCopies      uint32
	PeerAccess       uint32
	_                uint32
}

// GPUState is struct sg_gpu_state. Its fields are written with atomic stores.
type GPUState struct{ Lost, Reserved uint32 }

// GPU is struct sg_gpu.
type GPU struct {
	Info   GPUInfo
	Memory MemoryRules
	State  GPUState
	Card   Card
}

// Node is struct sg_node. Clients map it read-only.
type Node struct {
	Magic, Version uint32
	GPUs           uint32
	CUDAVersion    uint32
	DriverVersion  [24]byte
	Faults         uint32
	ClockVirtual   uint32
	NowNS          uint64
	EpochNS        uint64
	CallCostNS     uint32
	QueryCostNS    uint32
	ReadCostNS     uint32
	Attributes     uint32
	Mismatch       uint32
	_              uint32
	GPU            [MaxGPUs]GPU
}

// GraphPart is struct sg_graph_part.
type GraphPart struct {
	Kind, Function, Count, Branch, Other, Reserved uint32
	Shape, Bytes, Reserved2                        uint64
}

// Process is struct sg_process.
type Process struct {
	PID, Instance uint32
	UsedBytes     uint64
}

// Sample is struct sg_sample.
type Sample struct {
	TimeUS       uint64
	PID, Percent uint32
}

// Entry is struct sg_entry.
type Entry struct {
	TimeNS                      uint64
	Stream, Kind, Arg, Reserved uint32
	Arg64                       uint64
}

// StreamSlot is struct sg_stream_slot.
type StreamSlot struct{ Done, Wanted uint64 }

// EventSlot is struct sg_event_slot. TimeNS of a shared event is the number of
// its newest record.
type EventSlot struct{ Generation, TimeNS uint64 }

// Kicks is struct sg_kicks.
type Kicks struct{ Word, Scan uint32 }

// Waiter is struct sg_waiter.
type Waiter struct {
	State, Kind, Thread, Slot  uint32
	Position, UntilNS, Address uint64
	By, TID                    uint32
	_                          [4]uint32
}

// Waits is struct sg_waits.
type Waits struct {
	High   uint32
	_      uint32
	Calls  uint64
	_      [48]byte
	Waiter [Waiters]Waiter
}

// Shared is struct sg_shared. Fields that the client writes are read with
// atomic loads and never trusted.
type Shared struct {
	Magic, Version uint32
	_              [56]byte
	Head           uint64
	_              [56]byte
	Tail           uint64
	TailFutex      uint32
	_              [52]byte
	Awake          uint32
	DoneFutex      uint32
	_              [56]byte
	SpaceWaiters   uint32
	_              [60]byte
	HostHead       uint32
	_              [60]byte
	HostDue        [HostSlots]uint64
	_              [3712]byte
	Ring           [RingEntries]Entry
	Stream         [StreamSlots]StreamSlot
	Event          [EventSlots]EventSlot
	Waits          Waits
	Dead           uint32
	EventWaiters   uint32
	Locked         uint32
	ContextFault   [ContextSlots]uint32
}

// What OpCheckpoint does to a process, and the states that it is in.
const (
	CheckpointState   = 0
	CheckpointLock    = 1
	CheckpointSave    = 2
	CheckpointRestore = 3
	CheckpointUnlock  = 4

	ProcessRunning      = 0
	ProcessLocked       = 1
	ProcessCheckpointed = 2
)
