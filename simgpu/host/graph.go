// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"maps"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// Bounds of what one client can make the host remember of graphs.
const (
	maxGraphs        = 1 << 16
	maxGraphParts    = 1 << 18 // over all graphs of a client: 12 MiB
	maxGraphRepeats  = 1 << 20 // how often one submission may run a graph
	maxConditionKeys = 1 << 12
	graphPartSize    = 48
)

// graph is device work that is submitted as one entry: kernels, copies and
// fills, in branches. The parts are in an order in which they may run.
type graph struct {
	parts   []wire.GraphPart
	kernels uint64
	waited  map[point]bool // that joins name
	plans   map[planKey]*plan
}

// repeated returns how long times runs of length d take, at most maxKernelTime.
func repeated(d int64, times uint64) int64 {
	if d > 0 && times > uint64(maxKernelTime.Nanoseconds()/d) {
		return maxKernelTime.Nanoseconds()
	}
	return d * int64(times)
}

// graphTimes reads how often an entry runs its graph: at least once.
func graphTimes(e *wire.Entry) uint64 { return min(max(e.Arg64, 1), maxGraphRepeats) }

// defineGraph makes a graph of parts, or appends them to one.
func (h *Host) defineGraph(c *client, req *wire.Request, data []byte) (wire.Reply, []byte, bool) {
	refuse := func(code int32) (wire.Reply, []byte, bool) { return wire.Reply{Status: code}, nil, true }
	g, id := c.graphs[uint32(req.A)], uint32(req.A)
	if req.Op == wire.OpGraphDefine {
		g = &graph{}
		if len(c.graphs) >= maxGraphs {
			return refuse(wire.CUDAOutOfMemory)
		}
	}
	n := len(data) / graphPartSize
	if g == nil || len(data)%graphPartSize != 0 {
		return refuse(wire.CUDAInvalidValue)
	}
	if c.graphParts+n > maxGraphParts {
		return refuse(wire.CUDAOutOfMemory)
	}
	parts := make([]wire.GraphPart, 0, n)
	kernels := uint64(0)
	for e := binary.NativeEndian; len(data) > 0; data = data[graphPartSize:] {
		p := wire.GraphPart{
			Kind: e.Uint32(data), Function: e.Uint32(data[4:]), Count: e.Uint32(data[8:]),
			Branch: e.Uint32(data[12:]), Other: e.Uint32(data[16:]),
			Shape: e.Uint64(data[24:]), Bytes: e.Uint64(data[32:]),
		}
		if p.Kind > wire.PartJoin || p.Branch >= wire.PartBranches || p.Other >= wire.PartBranches {
			return refuse(wire.CUDAInvalidValue)
		}
		if p.Kind == wire.PartKernel {
			kernels += uint64(p.Count)
		}
		parts = append(parts, p)
		if p.Kind == wire.PartJoin {
			if g.waited == nil {
				g.waited = map[point]bool{}
			}
			g.waited[point{p.Other, p.Bytes}] = true
		}
	}
	if req.Op == wire.OpGraphDefine {
		for c.nextGr++; c.nextGr == 0 || c.graphs[c.nextGr] != nil; c.nextGr++ {
		}
		id = c.nextGr
		c.graphs[id] = g
	}
	g.parts, g.plans = append(g.parts, parts...), nil
	g.kernels += kernels
	c.graphParts += n
	return wire.Reply{A: uint64(id)}, nil, true
}

// freeGraph forgets a graph; what was submitted of it runs on.
func (h *Host) freeGraph(c *client, id uint32) {
	if g := c.graphs[id]; g != nil {
		h.catchUpOne(c)
		c.graphParts -= len(g.parts)
		delete(c.graphs, id)
	}
}

// MaxCondition is the largest value of a condition: how often a while may run.
const MaxCondition = 1_000_000

// conditions are the values that kernels would set of conditional nodes, by
// the kernels' names: given by the operator, as kernels compute nothing.
type conditions struct {
	byFunction map[uint32]uint64
	byName     map[string]uint64
}

func (x *conditions) set(t *nameTable, values map[string]uint64) {
	if x.byFunction == nil {
		x.byFunction, x.byName = map[uint32]uint64{}, map[string]uint64{}
	}
	for name, v := range values {
		if n := t.intern(name); n != 0 && len(x.byName) < maxConditionKeys {
			x.byFunction[n], x.byName[name] = v, v
		}
	}
}

// answer returns the value for the first of the functions that has one.
func (x *conditions) answer(data []byte) (rep wire.Reply) {
	for ; len(data) >= 4; data = data[4:] {
		if v, ok := x.byFunction[binary.NativeEndian.Uint32(data)]; ok {
			return wire.Reply{A: v, B: 1}
		}
	}
	return rep
}

// SetConditions sets what conditional nodes of graphs get that depend on
// kernels of these names: 0 or 1 for an if, the number of runs for a while, the
// branch for a switch.
func (h *Host) SetConditions(values map[string]uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conditions.set(h.names, values)
}

// Conditions returns what was set.
func (h *Host) Conditions() map[string]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.conditions.byName)
}
