// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/gpushare/gpushare/simgpu/fault"
)

// Kill says how a GPU is lost.
type Kill struct {
	GPU int        `json:"gpu"`
	XID uint32     `json:"xid,omitempty"` // 0: 79, fallen off the bus
	RC  fault.Text `json:"rc,omitempty"`  // what CUDA says from then on; "": as the XID has it
}

// fallenOff is the XID of a GPU that the bus has lost.
const fallenOff = 79

// resultOf is what CUDA calls return once an XID has broken a process's work.
// Of 79 users report "unknown error"; uncorrectable memory errors (48, 63, 64,
// 94, 95), NVLink errors (74), exceptions of a kernel (13) and its illegal
// addresses (31) have results of their own by the documentation of CUresult.
func resultOf(xid uint32) int32 {
	switch xid {
	case 48, 63, 64, 94, 95:
		return 214
	case 74:
		return 220
	case 13:
		return 719
	case 31:
		return 700
	}
	return 999
}

// KillGPU loses a GPU: every process that has a context there is told so by
// each of its calls for the rest of its life, its waiting threads at once; new
// processes do not see the GPU.
func (h *Host) KillGPU(k Kill) error {
	if k.XID == 0 {
		k.XID = fallenOff
	}
	code := resultOf(k.XID)
	if k.RC != "" {
		var err error
		if code, err = fault.Code(string(k.RC), false); err != nil {
			return err //nolint:wrapcheck // says everything
		}
		if code == 0 {
			return fmt.Errorf("kill GPU %d: its calls must fail", k.GPU)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if k.GPU < 0 || k.GPU >= len(h.gpus) {
		return fmt.Errorf("kill GPU %d: the node has %d", k.GPU, len(h.gpus))
	}
	lost := &h.node.GPU[k.GPU].State.Lost
	if atomic.LoadUint32(lost) != 0 {
		return fmt.Errorf("kill GPU %d: it is lost already", k.GPU)
	}
	h.catchUp()
	atomic.StoreUint32(lost, k.XID)
	h.xid(k.GPU, k.XID)
	for _, c := range h.clientsOn(k.GPU) {
		c.dead = true
		atomic.StoreUint32(&c.shm.Dead, uint32(code))
		for _, cc := range c.contexts {
			if cc.gpu == k.GPU {
				h.breakContext(cc, code)
			}
		}
	}
	h.publishDead()
	h.kick()
	return nil
}

// ReviveGPU ends the loss, as a reset does: not while processes hold the GPU.
func (h *Host) ReviveGPU(gpu int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if gpu < 0 || gpu >= len(h.gpus) {
		return fmt.Errorf("revive GPU %d: the node has %d", gpu, len(h.gpus))
	}
	lost := &h.node.GPU[gpu].State.Lost
	if atomic.LoadUint32(lost) == 0 {
		return fmt.Errorf("revive GPU %d: it is not lost", gpu)
	}
	if on := h.clientsOn(gpu); len(on) > 0 {
		var pids []uint32
		for _, c := range on {
			pids = append(pids, c.pid)
		}
		slices.Sort(pids)
		return fmt.Errorf("revive GPU %d: processes hold it: end %v first", gpu, slices.Compact(pids))
	}
	atomic.StoreUint32(lost, 0)
	h.gpus[gpu].nvml.reset()
	h.publishDead()
	return nil
}

// clientsOn returns the clients with contexts or memory on a GPU. The caller
// holds mu.
func (h *Host) clientsOn(gpu int) (out []*client) {
	for _, c := range h.clients {
		if c.use[gpu].contexts > 0 || c.use[gpu].used > 0 {
			out = append(out, c)
		}
	}
	return out
}

// publishDead lets clients look, or not, whether they have lost a GPU or are locked. The
// caller holds mu.
func (h *Host) publishDead() {
	dead := false
	for _, c := range h.clients {
		dead = dead || c.dead || c.saved.locking
	}
	f := &h.faults
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.dead != dead {
		f.dead = dead
		f.publish()
	}
}

// lost tells whether a GPU is gone.
func (h *Host) lost(gpu int) bool {
	return atomic.LoadUint32(&h.node.GPU[gpu].State.Lost) != 0
}

// deviceUnavailable is what a new context on a lost GPU is answered with.
const deviceUnavailable = 46

// adminKill adds POST /kill-gpu and /revive-gpu.
func (h *Host) adminKill(mux *http.ServeMux) {
	add := func(path string, do func(Kill) error) {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			var k Kill
			err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&k)
			if err == nil {
				err = do(k)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		})
	}
	add("/kill-gpu", h.KillGPU)
	add("/revive-gpu", func(k Kill) error { return h.ReviveGPU(k.GPU) })
}

// KillGPU loses a GPU.
func (a *AdminClient) KillGPU(ctx context.Context, k Kill) error {
	return a.call(ctx, http.MethodPost, "/kill-gpu", k, nil)
}

// ReviveGPU ends the loss.
func (a *AdminClient) ReviveGPU(ctx context.Context, gpu int) error {
	return a.call(ctx, http.MethodPost, "/revive-gpu", Kill{GPU: gpu}, nil)
}
