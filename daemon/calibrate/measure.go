// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gpushare/gpushare/daemon/nvml"
)

// Figures are what things cost on a GPU in device memory. A figure that could not be
// measured is 0.
type Figures struct {
	// ContextBytes is a process's first context, NextContextBytes a further one.
	ContextBytes     uint64 `json:"context_bytes"`
	NextContextBytes uint64 `json:"next_context_bytes"`
	// BlockBytes is the unit in which the driver takes memory.
	BlockBytes uint64 `json:"block_bytes"`
	// ModuleBytes is a small module whose code is used.
	ModuleBytes uint64 `json:"module_bytes"`
	// StackThreads is the bytes that one byte more of the stack limit costs.
	StackThreads uint64 `json:"stack_threads"`
	// GraphNodeBytes is a node of an executable graph.
	GraphNodeBytes uint32 `json:"graph_node_bytes"`
	// Unknown says why a figure could not be measured, in the order of the fields.
	Unknown []string `json:"-"`
}

const (
	// smallBytes is what is allocated until the driver takes a new block, smallTries
	// how often.
	smallBytes = 64 << 10
	smallTries = 64
	// maxBlock and maxModule bound figures: more is a mistake.
	maxBlock  = 256 << 20
	maxModule = 1 << 30
	// stackMore is by how much the stack limit is raised, in bytes.
	stackMore = 2 << 10
	// graphNodes is how many nodes the graph has: enough that a block more or less
	// does not matter.
	graphNodes = 1000
	// totalTries and totalWait are for the device's total to stand still.
	totalTries = 5
	totalWait  = 5 * time.Millisecond
)

// Measure returns what things cost on the GPU. It returns ErrUnknown, with the
// reason, if that of a context cannot be measured: ctx ends first or the driver does
// not say.
func (p *Prober) Measure(ctx context.Context, uuid string) (Figures, error) {
	f, err := p.measure(ctx, uuid)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("the driver did not make a context in time")
		}
		return Figures{}, fmt.Errorf("measure a context on %s: %w: %w", uuid, ErrUnknown, err)
	}
	return f, nil
}

func (p *Prober) measure(ctx context.Context, uuid string) (Figures, error) {
	h, err := p.start(ctx)
	if err != nil {
		return Figures{}, err
	}
	defer h.end()
	s := session{ctx: ctx, nvml: p.NVML, uuid: uuid, helper: h}
	before, err := s.total()
	if err != nil {
		return Figures{}, err
	}
	threads, err := h.say(uuid)
	if err != nil {
		return Figures{}, err
	}
	if s.own, err = s.listed(); err != nil {
		return Figures{}, err
	}
	var f Figures
	if f.ContextBytes, err = s.held(); err == nil && !s.own {
		f.ContextBytes = f.ContextBytes - min(before, f.ContextBytes)
		if f.ContextBytes > 0 {
			f.ContextBytes += margin
		}
	}
	if err == nil && (f.ContextBytes == 0 || f.ContextBytes > MaxBytes) {
		err = fmt.Errorf("the driver's figures make it %d bytes", f.ContextBytes)
	}
	if err != nil {
		return Figures{}, err
	}
	s.rest(&f, threads)
	_, _ = h.say("")
	return f, nil
}

// rest measures what beside a context. What fails stays unknown.
func (s *session) rest(f *Figures, threads uint64) {
	for _, one := range []struct {
		name    string
		measure func() error
	}{
		{"next_context_bytes", func() (err error) { f.NextContextBytes, err = s.cost(MaxBytes, stepContext); return err }},
		{"block_bytes", func() (err error) { f.BlockBytes, err = s.block(); return err }},
		{"module_bytes", func() (err error) { f.ModuleBytes, err = s.module(); return err }},
		{"stack_threads", func() (err error) { f.StackThreads, err = s.stack(threads); return err }},
		{"graph_node_bytes", func() error {
			n, err := s.cost(graphNodes*math.MaxUint32, fmt.Sprintf(stepGraph, graphNodes))
			f.GraphNodeBytes = uint32((n + graphNodes - 1) / graphNodes)
			return err
		}},
	} {
		if s.ctx.Err() != nil {
			f.Unknown = append(f.Unknown, one.name+": not measured in time")
			continue
		}
		if err := one.measure(); err != nil {
			f.Unknown = append(f.Unknown, one.name+": "+err.Error())
		}
		if _, err := s.helper.say(stepDrop); err != nil {
			f.Unknown = append(f.Unknown, one.name+": give it back: "+err.Error())
		}
	}
}

// session is one helper at work.
type session struct {
	ctx    context.Context
	nvml   Sampler
	uuid   string
	helper *helper
	own    bool // the driver tells of the helper's own process
}

// listed reports whether the driver has a figure of the helper.
func (s *session) listed() (bool, error) {
	n, err := s.nvml.Sample(s.ctx, s.uuid)
	if err != nil {
		return false, err
	}
	bytes, ok := s.process(n)
	return ok && bytes > 0, nil
}

func (s *session) process(n nvml.Sample) (uint64, bool) {
	for _, q := range n.Processes {
		if q.PID == s.helper.cmd.Process.Pid && q.Known {
			return q.Bytes, true
		}
	}
	return 0, false
}

// held is what the helper holds by its own figure, else what is held of the device.
func (s *session) held() (uint64, error) {
	if !s.own {
		return s.total()
	}
	n, err := s.nvml.Sample(s.ctx, s.uuid)
	if err != nil {
		return 0, err
	}
	bytes, ok := s.process(n)
	if !ok {
		return 0, errors.New("the driver does not list the helper any more")
	}
	return bytes, nil
}

// total is what is held of the device, once nobody takes or gives.
func (s *session) total() (uint64, error) {
	last, err := s.nvml.Sample(s.ctx, s.uuid)
	for range totalTries {
		if err != nil {
			return 0, err
		}
		if !last.UsedKnown {
			return 0, nil
		}
		time.Sleep(totalWait)
		var now nvml.Sample
		if now, err = s.nvml.Sample(s.ctx, s.uuid); err == nil && now.UsedKnown && now.UsedBytes == last.UsedBytes {
			return now.UsedBytes, nil
		}
		last = now
	}
	return 0, errors.Join(errors.New("others take memory of the GPU meanwhile"), err)
}

// cost is by how much a step makes the figure grow.
func (s *session) cost(most uint64, step string) (uint64, error) {
	before, err := s.held()
	if err != nil {
		return 0, err
	}
	if _, err := s.helper.say(step); err != nil {
		return 0, err
	}
	after, err := s.held()
	if err != nil {
		return 0, err
	}
	if after < before || after-before > most {
		return 0, fmt.Errorf("the driver's figure went from %d to %d bytes", before, after)
	}
	return after - before, nil
}

// block finds the unit in which the driver takes memory: what the first small
// allocation costs that costs anything, and what one byte more than that costs.
func (s *session) block() (uint64, error) {
	unit, err := s.cost(maxBlock, fmt.Sprintf(stepMemory, 1))
	for i := 0; err == nil && unit == 0 && i < smallTries; i++ {
		unit, err = s.cost(maxBlock, fmt.Sprintf(stepMemory, smallBytes))
	}
	if err != nil {
		return 0, err
	}
	if unit == 0 || unit&(unit-1) != 0 {
		return 0, fmt.Errorf("a small allocation costs %d bytes", unit)
	}
	more, err := s.cost(maxBlock, fmt.Sprintf(stepMemory, unit+1))
	if err == nil && more != 2*unit {
		err = fmt.Errorf("%d bytes cost %d, one more %d", 1, unit, more)
	}
	if err != nil {
		return 0, err
	}
	return unit, nil
}

// module finds what a further module costs. The first also pays for what the driver
// puts off until something runs, and a later one may fit into what that one left.
func (s *session) module() (uint64, error) {
	first, err := s.cost(maxModule, stepModule)
	if err != nil {
		return 0, err
	}
	next, err := s.cost(maxModule, stepModule)
	if next == 0 {
		next = first
	}
	return next, err
}

// stack finds what a byte of the stack limit costs. The driver takes whole blocks:
// where the threads that the device can hold fit the figure, it is they.
func (s *session) stack(threads uint64) (uint64, error) {
	n, err := s.cost(math.MaxUint32*stackMore, fmt.Sprintf(stepStack, stackMore))
	if err != nil {
		return 0, err
	}
	if exact := threads * stackMore; n >= exact && n-exact < margin {
		return threads, nil
	}
	return (n + stackMore - 1) / stackMore, nil
}
