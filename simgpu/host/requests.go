// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"github.com/gpushare/gpushare/simgpu/sim"
	"github.com/gpushare/gpushare/simgpu/trace"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// answer handles one request of a CUDA client; wanted is false for a request
// that has no reply.
func (h *Host) answer(c *client, req *wire.Request, data []byte) (rep wire.Reply, out []byte, wanted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fail := func(code int32) (wire.Reply, []byte, bool) { return wire.Reply{Status: code}, nil, true }
	switch req.Op {
	case wire.OpCtxCreate:
		if int(req.GPU) >= len(h.gpus) {
			return fail(wire.CUDAInvalidDevice)
		}
		if h.lost(int(req.GPU)) || !h.mayCompute(c, int(req.GPU)) {
			return fail(deviceUnavailable)
		}
		cost := h.contextCost(c, int(req.GPU))
		if len(c.contexts) >= maxContexts || !h.reserve(c, int(req.GPU), cost, wire.UseContext) {
			return fail(wire.CUDAOutOfMemory)
		}
		cc := h.addContext(c, int(req.GPU), req.B)
		cc.bytes = cost
		c.use[cc.gpu].contexts++
		h.trace.client(c, h.clock.now(), trace.ContextCreate, cc.gpu, int(cc.id))
		rep.A = uint64(cc.id)
	case wire.OpCtxDestroy:
		if c.contexts[req.Ctx] == nil {
			return fail(wire.CUDAInvalidContext)
		}
		h.catchUpOne(c)
		h.dropContext(c, req.Ctx)
		c.publish()
		h.kick()
	case wire.OpStreamCreate:
		cc := c.contexts[req.Ctx]
		if cc == nil || req.A > wire.StreamLegacy {
			return fail(wire.CUDAInvalidContext)
		}
		slot, err := h.addStream(c, cc, sim.StreamKind(req.A), int(int8(req.B))) //nolint:gosec // whatever it says is a priority
		if err != nil {
			return fail(wire.CUDAOutOfMemory)
		}
		c.streams[slot].sms = uint32(req.B >> 8 & 0xffff) //nolint:gosec // masked
		rep.A, rep.B = uint64(slot), c.streams[slot].base
	case wire.OpStreamDestroy:
		if req.A >= wire.StreamSlots || c.streams[req.A] == nil {
			return fail(wire.CUDAInvalidHandle)
		}
		h.catchUpOne(c)
		if s := c.streams[req.A]; s != nil {
			if s.closing = true; s.sim.Len() == 0 {
				c.freeStream(s)
			}
		}
	case wire.OpStreamPriority:
		if req.A < wire.StreamSlots && c.streams[req.A] != nil {
			h.catchUpOne(c)
			if s := c.streams[req.A]; s != nil {
				h.machine.SetPriority(s.sim, int(int8(req.B))) //nolint:gosec // whatever it says is a priority
			}
		}
		return rep, nil, false
	case wire.OpFunction:
		rep.A = uint64(h.names.intern(string(data)))
	case wire.OpAlloc:
		return h.alloc(c, req)
	case wire.OpFree:
		if c.allocs[req.A] == nil {
			return fail(wire.CUDAInvalidValue)
		}
		h.dropHandle(c, req.A)
	case wire.OpResize:
		rep = h.resize(c, req)
	case wire.OpShare, wire.OpExport, wire.OpKey, wire.OpImport:
		rep, out = h.shareRequest(c, req, data)
	case wire.OpEventShare, wire.OpEventRecord, wire.OpEventDrop:
		rep, out = h.eventRequest(c, req, data)
	case wire.OpCheckpoint:
		rep = h.checkpointOf(c, req)
	case wire.OpMemInfo:
		if int(req.GPU) >= len(h.gpus) {
			return fail(wire.CUDAInvalidDevice)
		}
		rep = h.memInfo(int(req.GPU))
	case wire.OpGraphDefine, wire.OpGraphAppend:
		return h.defineGraph(c, req, data)
	case wire.OpGraphFree:
		h.freeGraph(c, uint32(req.A))
	case wire.OpCondition:
		rep = h.conditions.answer(data)
	case wire.OpHostDone:
		if req.A < wire.StreamSlots && c.streams[req.A] != nil {
			h.catchUpOne(c)
			if s := c.streams[req.A]; s != nil {
				h.machine.Release(s.sim, req.B-s.base)
			}
			c.publish()
			h.kick()
		}
		return rep, nil, false
	default:
		return fail(wire.CUDAInvalidValue)
	}
	return rep, out, true
}
