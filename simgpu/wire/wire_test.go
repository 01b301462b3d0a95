// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// TestHeader compiles lib/wire.h and compares sizes, offsets and constants.
func TestHeader(t *testing.T) {
	var s Shared
	want := map[string]uint64{
		"sizeof(struct sg_request)":                           uint64(unsafe.Sizeof(Request{})),
		"sizeof(struct sg_reply)":                             uint64(unsafe.Sizeof(Reply{})),
		"sizeof(struct sg_gpu_info)":                          uint64(unsafe.Sizeof(GPUInfo{})),
		"sizeof(struct sg_node)":                              uint64(unsafe.Sizeof(Node{})),
		"sizeof(struct sg_gpu_state)":                         uint64(unsafe.Sizeof(GPUState{})),
		"__builtin_offsetof(struct sg_node, faults)":          uint64(unsafe.Offsetof(Node{}.Faults)),
		"__builtin_offsetof(struct sg_node, now_ns)":          uint64(unsafe.Offsetof(Node{}.NowNS)),
		"__builtin_offsetof(struct sg_node, gpu)":             uint64(unsafe.Offsetof(Node{}.GPU)),
		"__builtin_offsetof(struct sg_gpu, state)":            uint64(unsafe.Offsetof(GPU{}.State)),
		"sizeof(struct sg_graph_part)":                        uint64(unsafe.Sizeof(GraphPart{})),
		"sizeof(struct sg_process)":                           uint64(unsafe.Sizeof(Process{})),
		"sizeof(struct sg_sample)":                            uint64(unsafe.Sizeof(Sample{})),
		"sizeof(struct sg_entry)":                             uint64(unsafe.Sizeof(Entry{})),
		"sizeof(struct sg_kicks)":                             uint64(unsafe.Sizeof(Kicks{})),
		"__builtin_offsetof(struct sg_kicks, scan)":           uint64(unsafe.Offsetof(Kicks{}.Scan)),
		"sizeof(struct sg_shared)":                            uint64(unsafe.Sizeof(s)),
		"__builtin_offsetof(struct sg_request, len)":          uint64(unsafe.Offsetof(Request{}.Len)),
		"__builtin_offsetof(struct sg_reply, c)":              uint64(unsafe.Offsetof(Reply{}.C)),
		"__builtin_offsetof(struct sg_gpu_info, minor)":       uint64(unsafe.Offsetof(GPUInfo{}.Minor)),
		"__builtin_offsetof(struct sg_entry, arg64)":          uint64(unsafe.Offsetof(Entry{}.Arg64)),
		"__builtin_offsetof(struct sg_shared, head)":          uint64(unsafe.Offsetof(s.Head)),
		"__builtin_offsetof(struct sg_shared, tail)":          uint64(unsafe.Offsetof(s.Tail)),
		"__builtin_offsetof(struct sg_shared, tail_futex)":    uint64(unsafe.Offsetof(s.TailFutex)),
		"__builtin_offsetof(struct sg_shared, awake)":         uint64(unsafe.Offsetof(s.Awake)),
		"__builtin_offsetof(struct sg_shared, done_futex)":    uint64(unsafe.Offsetof(s.DoneFutex)),
		"__builtin_offsetof(struct sg_shared, space_waiters)": uint64(unsafe.Offsetof(s.SpaceWaiters)),
		"__builtin_offsetof(struct sg_shared, host_head)":     uint64(unsafe.Offsetof(s.HostHead)),
		"__builtin_offsetof(struct sg_shared, host_due)":      uint64(unsafe.Offsetof(s.HostDue)),
		"__builtin_offsetof(struct sg_shared, ring)":          uint64(unsafe.Offsetof(s.Ring)),
		"__builtin_offsetof(struct sg_shared, stream)":        uint64(unsafe.Offsetof(s.Stream)),
		"__builtin_offsetof(struct sg_shared, event)":         uint64(unsafe.Offsetof(s.Event)),
		"__builtin_offsetof(struct sg_shared, waits)":         uint64(unsafe.Offsetof(s.Waits)),
		"__builtin_offsetof(struct sg_waits, calls)":          uint64(unsafe.Offsetof(s.Waits.Calls)),
		"__builtin_offsetof(struct sg_waits, waiter)":         uint64(unsafe.Offsetof(s.Waits.Waiter)),
		"__builtin_offsetof(struct sg_waiter, position)":      uint64(unsafe.Offsetof(Waiter{}.Position)),
		"__builtin_offsetof(struct sg_waiter, until_ns)":      uint64(unsafe.Offsetof(Waiter{}.UntilNS)),
		"__builtin_offsetof(struct sg_waiter, by)":            uint64(unsafe.Offsetof(Waiter{}.By)),
		"__builtin_offsetof(struct sg_node, epoch_ns)":        uint64(unsafe.Offsetof(Node{}.EpochNS)),
		"__builtin_offsetof(struct sg_node, read_cost_ns)":    uint64(unsafe.Offsetof(Node{}.ReadCostNS)),
		"__builtin_offsetof(struct sg_waiter, tid)":           uint64(unsafe.Offsetof(Waiter{}.TID)),
		"SG_KIND_CLOCK":      KindClock,
		"SG_WAITERS":         Waiters,
		"SG_WAITER_CLAIMED":  WaiterClaimed,
		"SG_WAITER_WAITING":  WaiterWaiting,
		"SG_WAITER_READY":    WaiterReady,
		"SG_WAITER_GRANTED":  WaiterGranted,
		"SG_WAITER_PREPARED": WaiterPrepared,
		"SG_WAITER_POKED":    WaiterPoked,
		"SG_WAIT_STREAM":     WaitStream,
		"SG_WAIT_SPACE":      WaitSpace,
		"SG_WAIT_HOST":       WaitHost,
		"SG_WAIT_TIME":       WaitTime,
		"SG_WAIT_ADDRESS":    WaitAddress,
		"SG_WAIT_POLL":       WaitPoll,
		"SG_WAIT_BITS":       WaitBits,
		"SG_WIRE_VERSION":    Version,
		"SG_WIRE_MAGIC":      Magic,
		"SG_MAX_MESSAGE":     MaxMessage,
		"SG_NAME":            MaxName,
		"SG_MAX_GPUS":        MaxGPUs,
		"SG_ATTRIBUTES":      Attributes,
		"SG_PEER_NONE":       PeerNone,
		"SG_PEER_PCIE":       PeerPCIe,
		"SG_PEER_NVLINK":     PeerNVLink,
		"__builtin_offsetof(struct sg_gpu_info, peer_access)": uint64(unsafe.Offsetof(GPUInfo{}.PeerAccess)),
		"__builtin_offsetof(struct sg_node, attributes)":      uint64(unsafe.Offsetof(Node{}.Attributes)),
		"__builtin_offsetof(struct sg_gpu_info, attribute)":   uint64(unsafe.Offsetof(GPUInfo{}.Attribute)),
		"SG_OP_CONDITION": OpCondition, "SG_PART_KERNEL": PartKernel, "SG_PART_COPY": PartCopy, "SG_PART_FILL": PartFill,
		"SG_PART_JOIN": PartJoin, "SG_PART_BRANCHES": PartBranches,
		"__builtin_offsetof(struct sg_graph_part, bytes)": uint64(unsafe.Offsetof(GraphPart{}.Bytes)),
		"SG_OP_HELLO":           OpHello,
		"SG_OP_CTX_CREATE":      OpCtxCreate,
		"SG_OP_CTX_DESTROY":     OpCtxDestroy,
		"SG_OP_STREAM_CREATE":   OpStreamCreate,
		"SG_OP_STREAM_DESTROY":  OpStreamDestroy,
		"SG_OP_FUNCTION":        OpFunction,
		"SG_OP_ALLOC":           OpAlloc,
		"SG_OP_FREE":            OpFree,
		"SG_OP_MEM_INFO":        OpMemInfo,
		"SG_OP_GRAPH_DEFINE":    OpGraphDefine,
		"SG_OP_GRAPH_APPEND":    OpGraphAppend,
		"SG_OP_GRAPH_FREE":      OpGraphFree,
		"SG_OP_HOST_DONE":       OpHostDone,
		"SG_OP_PROCESSES":       OpProcesses,
		"SG_OP_UTILIZATION":     OpUtilization,
		"SG_OP_SAMPLES":         OpSamples,
		"SG_OP_STREAM_PRIORITY": OpStreamPriority,
		"SG_OP_EVENT_SHARE":     OpEventShare,
		"SG_OP_EVENT_RECORD":    OpEventRecord,
		"SG_OP_EVENT_DROP":      OpEventDrop,
		"SG_EVENT_SHARED":       EventShared,
		"SG_WAIT_EVENT":         WaitEvent,
		"__builtin_offsetof(struct sg_shared, event_waiters)": uint64(unsafe.Offsetof(s.EventWaiters)),
		"SG_OP_CHECKPOINT":     OpCheckpoint,
		"SG_CHECKPOINT_UNLOCK": CheckpointUnlock, "SG_CHECKPOINT_SAVE": CheckpointSave,
		"SG_KIND_CUDA":          KindCUDA,
		"SG_KIND_NVML":          KindNVML,
		"SG_STREAM_BLOCKING":    StreamBlocking,
		"SG_STREAM_NONBLOCKING": StreamNonBlocking,
		"SG_STREAM_LEGACY":      StreamLegacy,
		"SG_ENTRY_KERNEL":       EntryKernel,
		"SG_ENTRY_GRAPH":        EntryGraph,
		"SG_ENTRY_EVENT":        EntryEvent,
		"SG_ENTRY_WAIT":         EntryWait,
		"SG_ENTRY_HOST":         EntryHost,
		"SG_ENTRY_COPY":         EntryCopy,
		"SG_ENTRY_FILL":         EntryFill,
		"SG_COPY_HTOD":          CopyHtoD,
		"SG_COPY_DTOH":          CopyDtoH,
		"SG_COPY_DTOD":          CopyDtoD,
		"SG_COPY_PEER":          CopyPeer,
		"SG_COPY_HOST":          CopyHost,
		"SG_COPY_WAY":           CopyWay,
		"SG_COPY_PINNED":        CopyPinned,
		"SG_COPY_PIECES_SHIFT":  CopyPiecesShift,
		"SG_CONTEXT_SLOTS":      ContextSlots,
		"__builtin_offsetof(struct sg_shared, locked)":         uint64(unsafe.Offsetof(s.Locked)),
		"__builtin_offsetof(struct sg_shared, dead)":           uint64(unsafe.Offsetof(s.Dead)),
		"__builtin_offsetof(struct sg_shared, ctx_fault)":      uint64(unsafe.Offsetof(s.ContextFault)),
		"__builtin_offsetof(struct sg_gpu_info, timed_copies)": uint64(unsafe.Offsetof(GPUInfo{}.TimedCopies)),
		"SG_RING_ENTRIES": RingEntries,
		"SG_STREAM_SLOTS": StreamSlots,
		"SG_EVENT_SLOTS":  EventSlots,
		"SG_HOST_SLOTS":   HostSlots,
	}
	maps.Copy(want, faultNumbers)
	maps.Copy(want, headerNVML)
	maps.Copy(want, memoryNumbers)
	var src strings.Builder
	src.WriteString("#include <stdio.h>\n#include \"wire.h\"\nint main(void) {\n")
	for k := range want {
		fmt.Fprintf(&src, "printf(\"%%s=%%llu\\n\", %q, (unsigned long long)(%s));\n", k, k)
	}
	src.WriteString("return 0; }\n")
	dir := t.TempDir()
	c, bin := filepath.Join(dir, "t.c"), filepath.Join(dir, "t")
	if err := os.WriteFile(c, []byte(src.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-I../lib", "-o", bin, c).CombinedOutput(); err != nil {
		t.Fatalf("compile wire.h: %v\n%s", err, out)
	}
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, l := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		i := strings.LastIndex(l, "=")
		if got := fmt.Sprint(want[l[:i]]); got != l[i+1:] {
			t.Errorf("%s: Go %s, C %s", l[:i], got, l[i+1:])
		}
		seen++
	}
	if seen != len(want) {
		t.Errorf("compared %d of %d values", seen, len(want))
	}
}
