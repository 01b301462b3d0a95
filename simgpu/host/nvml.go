// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/gpushare/gpushare/simgpu/wire"
)

const queryRoom = wire.MaxMessage - replySize

// query handles one request of a management client; root says whether it may
// change what everybody sees.
func (h *Host) query(req *wire.Request, data []byte, root bool) (rep wire.Reply, out []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if int(req.GPU) >= len(h.gpus) {
		return wire.Reply{Status: nvmlNotFound}, nil
	}
	i := int(req.GPU)
	g := h.gpus[i]
	if h.lost(i) {
		return wire.Reply{Status: nvmlGPUIsLost}, nil
	}
	switch req.Op {
	case wire.OpMode, wire.OpMIGCreate, wire.OpMIGDestroy, wire.OpCICreate, wire.OpCIDestroy, wire.OpLimitSet:
		if !root {
			return wire.Reply{Status: nvmlNoPermission}, nil
		}
	}
	switch req.Op {
	case wire.OpMemInfo:
		return h.memInfo(i), nil
	case wire.OpProcesses:
		return rep, h.processes(i, -1, -1)
	case wire.OpProcessesMIG:
		return rep, h.processes(i, int64(req.A), int64(req.B)) //nolint:gosec // compared only
	case wire.OpUtilization:
		h.catchUp()
		s := h.read(g)
		rep.A, rep.B = uint64(s.Busy[0]), uint64(s.Busy[1])
	case wire.OpSamples:
		h.catchUp()
		out = h.samples(g, req.A, queryRoom)
	case wire.OpSensors:
		h.catchUp()
		s := h.read(g)
		out = encode(&s)
	case wire.OpMode:
		rep.Status = h.setMode(i, req.A, req.B, data)
	case wire.OpAccounting:
		return h.accounting(i, uint32(req.A)) //nolint:gosec // a process id
	case wire.OpLimitSet:
		rep.Status = h.setLimit(i, string(data), req.A, req.B)
	case wire.OpLimitGet:
		return h.limit(i, string(data)), nil
	default:
		return h.migQuery(i, req)
	}
	return rep, out
}

// encode writes a structure as C lays it out.
func encode(v any) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.NativeEndian, v)
	return b.Bytes()
}

// processes lists who holds memory or contexts on GPU i, by process id; gi and
// ci select a MIG instance, -1 means all.
func (h *Host) processes(i int, gi, ci int64) (out []byte) {
	used := map[uint32]wire.Process{}
	for _, c := range h.clients {
		if (c.use[i].contexts > 0 || c.use[i].used > 0) && c.inInstance(i, gi, ci) {
			p := used[c.pid]
			p.PID, p.UsedBytes = c.pid, p.UsedBytes+c.use[i].used
			if u := &c.mig[i]; u.in {
				p.Instance = (u.gi<<8 | u.ci) + 1
			}
			used[c.pid] = p
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(used)) {
		p := used[pid]
		if h.gpus[i].nvml.fixed.ProcessMemory == 0 {
			p.UsedBytes = math.MaxUint64
		}
		if out = append(out, encode(&p)...); len(out)+16 > queryRoom {
			break
		}
	}
	return out
}

// sampling is how the utilisation samples of a GPU reach its readers.
type sampling struct {
	lateNS  int64 // a period is visible so long after its end
	batchNS int64 // and then only when a multiple of this has passed; 0: at once
	missing bool  // there are none
	zero    bool  // those of processes read 0
	// deflated: of processes that share the engine in a period, only the one that
	// ran last is seen.
	deflated bool
}

// visible is the number of the newest period that can be seen at now.
func (s *sampling) visible(now int64) int64 {
	now -= s.lateNS
	if s.batchNS > 0 {
		now -= now % s.batchNS
	}
	return now/windowLength - 1
}

// samples lists the complete windows that ended after since (wall clock, us),
// newest first, until room bytes are full.
func (h *Host) samples(g *gpu, since uint64, room int) (out []byte) {
	s := &g.nvml.sampling
	if s.missing {
		return nil
	}
	e := binary.NativeEndian
	add := func(at uint64, pid, p uint32) bool {
		if len(out)+16 > room {
			return false
		}
		out = e.AppendUint64(out, at)
		out = e.AppendUint32(out, pid)
		out = e.AppendUint32(out, p)
		return true
	}
	newest := h.machine.Now()/windowLength - 1
	for i := s.visible(h.machine.Now()); i > newest-windowCount+1 && i >= 0; i-- {
		at := uint64((h.clock.epoch() + (i+1)*windowLength) / 1000) //nolint:gosec // after 1970
		if at <= since {
			break
		}
		w := g.windows.at(i)
		busy := percent(w.busy)
		if v, ok := g.nvml.pins["utilization"]; ok {
			busy = uint32(v) //nolint:gosec // checked when it was set
		}
		if !add(at, 0, busy) {
			return out
		}
		for _, pid := range slices.Sorted(maps.Keys(w.byPID)) {
			p := w.shown(pid, s.deflated)
			if s.zero {
				p = 0
			}
			if !add(at, pid, p) {
				return out
			}
		}
	}
	return out
}

// accounting lists the processes that accounting knows on GPU i: those that are
// gone, then those that run. pid 0 means all.
func (h *Host) accounting(i int, pid uint32) (wire.Reply, []byte) {
	m := &h.gpus[i].nvml
	list := slices.Clone(m.gone)
	if m.fixed.Accounting != 0 {
		for _, c := range h.clients {
			if c.use[i].high > 0 {
				list = append(list, h.account(c, i, true))
			}
		}
	}
	if pid != 0 {
		list = slices.DeleteFunc(list, func(a wire.Account) bool { return a.PID != pid })
		if len(list) == 0 {
			return wire.Reply{Status: nvmlNotFound}, nil
		}
		list = list[len(list)-1:] // the newest bearer of the number
	}
	var out []byte
	for k := range list {
		b := encode(&list[k])
		if len(out)+len(b) > queryRoom {
			break
		}
		out = append(out, b...)
	}
	return wire.Reply{}, out
}

// account is what accounting says of c on GPU i.
func (h *Host) account(c *client, i int, running bool) wire.Account {
	u := &c.use[i]
	life := max(h.machine.Now()-c.started, 1)
	a := wire.Account{
		PID: c.pid, MaxBytes: u.high, TimeMS: uint64(life / 1e6), StartUS: uint64((h.clock.epoch() + c.started) / 1000), //nolint:gosec // not negative
		GPUPercent: uint32(min(u.ran*100/life, 100)), Samples: uint64(life/windowLength) + 1, //nolint:gosec // likewise
	}
	a.MemoryPercent = a.GPUPercent / 2
	a.SumGPU, a.SumMemory = a.Samples*uint64(a.GPUPercent), a.Samples*uint64(a.MemoryPercent)
	if running {
		a.Running, a.TimeMS = 1, 0 // as NVML: known when it is over
	}
	return a
}

// accountsKept is how many ended processes accounting remembers, NVML's own number.
const accountsKept = 4000

// accountGone remembers a client that ends. The caller holds mu.
func (h *Host) accountGone(c *client) {
	for i := range c.use {
		m := &h.gpus[i].nvml
		if m.fixed.Accounting == 0 || c.use[i].high == 0 {
			continue
		}
		if len(m.gone) >= accountsKept {
			m.gone = m.gone[1:]
		}
		m.gone = append(m.gone, h.account(c, i, false))
	}
}
