// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// checkpoint is what became of a client that another process, or itself, has
// locked: its calls wait, and once it is checkpointed it has no device memory.
type checkpoint struct {
	state    uint64             // wire.Process…
	locking  bool               // no new calls; what it has submitted is waited for
	objects  map[*object]uint64 // bytes that were given back
	contexts map[*clientContext]uint64
}

// checkpointOf answers wire.OpCheckpoint: A is the process as the caller
// numbers it, B what to do.
func (h *Host) checkpointOf(c *client, req *wire.Request) (rep wire.Reply) {
	var all []*client
	for _, o := range h.clients {
		if sees(c.pid, o.pid, req.A) {
			all = append(all, o)
		}
	}
	if len(all) == 0 {
		return wire.Reply{Status: wire.CUDAInvalidValue}
	}
	h.catchUp()
	for _, o := range all {
		if o.saved.state != all[0].saved.state {
			return wire.Reply{Status: wire.CUDAIllegalState} // one of its connections is new
		}
	}
	state := all[0].saved.state
	switch req.B {
	case wire.CheckpointState:
		rep.A = state
	case wire.CheckpointLock:
		rep = h.lockClients(all, state)
	case wire.CheckpointSave:
		rep = h.saveClients(all, state)
	case wire.CheckpointRestore:
		rep = h.restoreClients(all, state)
	case wire.CheckpointUnlock:
		if state != wire.ProcessLocked && (state != wire.ProcessRunning || !all[0].saved.locking) {
			return wire.Reply{Status: wire.CUDAIllegalState}
		}
		for _, o := range all {
			o.saved = checkpoint{}
			atomic.StoreUint32(&o.shm.Locked, 0)
			wakeFutex(&o.shm.Locked)
		}
		h.publishDead()
	default:
		rep.Status = wire.CUDAInvalidValue
	}
	return rep
}

// lockClients stops new calls, and says NOT_READY until all that was submitted
// is done: the caller asks again.
func (h *Host) lockClients(all []*client, state uint64) (rep wire.Reply) {
	if state != wire.ProcessRunning {
		return wire.Reply{Status: wire.CUDAIllegalState}
	}
	busy := false
	for _, o := range all {
		o.saved.locking = true
		atomic.StoreUint32(&o.shm.Locked, 1)
		busy = busy || o.pending > 0 || o.future > 0 || load64(&o.shm.Head) != o.tail
	}
	h.publishDead()
	if busy {
		h.kick()
		return wire.Reply{Status: wire.CUDANotReady}
	}
	for _, o := range all {
		o.saved.state = wire.ProcessLocked
	}
	return rep
}

// saveClients gives back all device memory of a locked process. Its bytes are in
// its own memory all the time.
func (h *Host) saveClients(all []*client, state uint64) (rep wire.Reply) {
	if state != wire.ProcessLocked {
		return wire.Reply{Status: wire.CUDAIllegalState}
	}
	for _, o := range all {
		for _, m := range o.allocs {
			if m.shared != nil {
				return wire.Reply{Status: wire.CUDANotSupported} // others use it
			}
		}
	}
	for _, o := range all {
		o.saved.objects, o.saved.contexts = map[*object]uint64{}, map[*clientContext]uint64{}
		for _, m := range o.allocs {
			if m.charged == o && m.bytes > 0 {
				o.saved.objects[m] = m.bytes
				h.shrink(m, m.bytes)
			}
		}
		for _, cc := range o.contexts {
			o.saved.contexts[cc] = cc.bytes
			h.release(o, cc.gpu, cc.bytes, wire.UseContext)
			o.use[cc.gpu].contexts--
			cc.bytes = 0
		}
		o.saved.state = wire.ProcessCheckpointed
	}
	return rep
}

// restoreClients takes all of it again, or nothing if there is not enough.
func (h *Host) restoreClients(all []*client, state uint64) (rep wire.Reply) {
	if state != wire.ProcessCheckpointed {
		return wire.Reply{Status: wire.CUDAIllegalState}
	}
	sum := make([]uint64, len(h.gpus))
	for _, o := range all { // what it still holds: a hostile one does not wait
		for m, b := range o.saved.objects {
			if m.charged != o || m.holders[o] == 0 {
				delete(o.saved.objects, m)
			} else {
				sum[m.gpu] += b
			}
		}
		for cc, b := range o.saved.contexts {
			if o.contexts[cc.id] != cc {
				delete(o.saved.contexts, cc)
			} else {
				sum[cc.gpu] += b
			}
		}
	}
	for i, n := range sum {
		if n > 0 && (h.lost(i) || !h.withinLimits(all[0].group, i, n) || !h.makeRoom(i, n, nil)) {
			return wire.Reply{Status: wire.CUDAOutOfMemory}
		}
	}
	for _, o := range all {
		for m, b := range o.saved.objects {
			h.grow(m, b)
		}
		for cc, b := range o.saved.contexts {
			cc.bytes = b
			o.use[cc.gpu].contexts++
			h.reserve(o, cc.gpu, b, wire.UseContext)
		}
		o.saved = checkpoint{state: wire.ProcessLocked, locking: true}
	}
	return rep
}

// sees reports whether process pid is what process by calls number: it must be
// in by's own process namespace, or in one below that of the host process if by
// lives there, and by must be root or of the same user. Numbers of pid and by
// are those of the host process.
func sees(by, pid uint32, number uint64) bool {
	if by == pid {
		return number == ownNumber(pid)
	}
	uid, target := userOf(by), userOf(pid)
	if uid < 0 || target < 0 || (uid != 0 && uid != target) {
		return false
	}
	own, theirs := namespaceOf(by), namespaceOf(pid)
	switch own {
	case "":
		return false
	case namespaceOf(uint32(os.Getpid())): //nolint:gosec // a process id
		return uint64(pid) == number
	case theirs:
		return number == ownNumber(pid)
	}
	return false
}

func namespaceOf(pid uint32) string {
	s, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return s
}

// statusWords returns the words of a line of a process's status.
func statusWords(pid uint32, name string) [][]byte {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			return bytes.Fields(rest)
		}
	}
	return nil
}

// ownNumber is the number of a process in its own namespace; 0: unknown.
func ownNumber(pid uint32) uint64 {
	w := statusWords(pid, "NSpid")
	if len(w) == 0 {
		return 0
	}
	n, _ := strconv.ParseUint(string(w[len(w)-1]), 10, 32)
	return n
}

// userOf is the effective user of a process; -1: unknown.
func userOf(pid uint32) int {
	w := statusWords(pid, "Uid")
	if len(w) < 2 {
		return -1
	}
	n, err := strconv.Atoi(string(w[1]))
	if err != nil {
		return -1
	}
	return n
}
