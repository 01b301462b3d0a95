// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package host is the process that owns the simulated GPUs: it keeps their
// clock and memory, listens to client libraries, and accounts for what each
// process and control group used.
//
// One mutex guards everything. A thread of its own (engine.go) moves the model
// along in real time; one goroutine a connection answers requests. A client's
// connection is its lifetime: when the last copy of the socket closes, its
// memory, contexts and queued work are gone. Clients are hostile until proven
// otherwise: messages are bounded, indices checked, shared memory is sealed and
// nothing in it is believed.
package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/api"
	"github.com/gpushare/gpushare/simgpu/fault"
	"github.com/gpushare/gpushare/simgpu/kernel"
	"github.com/gpushare/gpushare/simgpu/profile"
	"github.com/gpushare/gpushare/simgpu/sim"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// Config describes the simulated node.
type Config struct {
	Driver  api.Driver // zero: api.Default
	Faults  []fault.Spec
	GPUs    []profile.GPU
	Kernels []kernel.Rule // how long kernels run, and how they end
	// Conditions is what SetConditions is to be told at the start.
	Conditions map[string]uint64
	Clock      Clock
	Trace      string // file that a trace is written to; "": none
	Seed       string // makes the UUIDs; the same seed gives the same ones
}

// Validate reports the first value that cannot be simulated.
func (c Config) Validate() error {
	if err := (profile.Node{GPUs: c.GPUs}).Validate(); err != nil {
		return err //nolint:wrapcheck // says everything
	}
	return c.Clock.validate()
}

// Host is a set of simulated GPUs and their clients.
type Host struct {
	cfg   Config
	log   *slog.Logger
	clock clock

	kickFD  int
	kickMem []byte
	kicks   *wire.Kicks // clients and requests move it to wake the engine thread

	nodeFD  int
	nodeMem []byte
	node    *wire.Node // what all clients read; state in it is stored atomically

	mu         sync.Mutex
	machine    *sim.Machine
	gpus       []*gpu
	clients    map[uint32]*client
	active     []*client // whose rings are looked at
	nextID     uint32
	groups     map[string]*group
	names      *nameTable
	changes    uint64 // of how long things take
	conditions conditions
	faults     faultState
	driver     api.Driver
	batch      []arrival
	virtual    *virtual // nil: the wall clock
	trace      *tracer
	stopped    bool
	conns      sync.WaitGroup
	doors      *doors

	started   int64 // ns
	listeners map[*listener]struct{}
	limits    map[limitKey]memoryLimit

	shared     sharedEvents
	keys       map[[wire.KeyBytes]byte]*object // that IPC handles name
	exports    map[fileID]*export              // descriptors that clients may send
	exportEnds map[int]*export                 // by our end
	files      int                             // memory files that are kept
	mostFiles  int
	hangups    hangups
	watching   sync.WaitGroup
}

// New makes the GPUs. It starts nothing.
func New(cfg Config, log *slog.Logger) (*Host, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	h := &Host{
		cfg: cfg, log: log, clock: newClock(),
		clients: map[uint32]*client{}, groups: map[string]*group{}, shared: newSharedEvents(),
		driver: cmp.Or(cfg.Driver, api.Default), listeners: map[*listener]struct{}{}, limits: map[limitKey]memoryLimit{},
		keys: map[[wire.KeyBytes]byte]*object{}, exports: map[fileID]*export{}, exportEnds: map[int]*export{},
	}
	if cfg.Clock.Virtual {
		h.clock = newVirtualClock(cfg.Clock.Start.Nanoseconds())
		h.virtual = newVirtual(cfg.Clock)
	}
	h.started = h.clock.now()
	var err error
	if h.names, err = newNameTable(cfg.Kernels); err != nil {
		return nil, err
	}
	h.conditions.set(h.names, cfg.Conditions)
	h.mostFiles = openFilesBound()
	h.doors = newDoors(h.mostFiles)
	if h.hangups, err = newHangups(); err != nil {
		return nil, err
	}
	if h.kickFD, h.kickMem, err = sharedFile("simgpu-kick", 4096, 0); err != nil {
		return nil, err
	}
	if err := h.makeNode(); err != nil {
		return nil, err
	}
	if err := h.makeFaults(); err != nil {
		return nil, err
	}
	h.publishClock()
	if h.trace, err = newTracer(cfg.Trace, log); err != nil {
		return nil, err
	}
	h.kicks = (*wire.Kicks)(unsafe.Pointer(&h.kickMem[0])) //nolint:gosec // layout pinned by wire.TestHeader
	var cards []sim.GPU
	for _, g := range cfg.GPUs {
		cards = append(cards, simGPU(g.Engine, uint32(g.Multiprocessor.Count))) //nolint:gosec // small
	}
	h.machine = sim.New(cards, h.clock.now(), (*sink)(h))
	for i := range cfg.GPUs {
		h.gpus = append(h.gpus, newGPU(cfg.GPUs[i], cfg.Seed, i))
		h.gpus[i].nvml.model.at = h.started / windowLength * windowLength
		h.node.GPU[i].Info = h.gpus[i].info
		h.node.GPU[i].Card = cardOf(&h.gpus[i].nvml.facts)
		h.node.GPU[i].Memory = memoryRules(h.gpus[i].rules)
	}
	return h, nil
}

// UUID returns the name by which GPU i is known, "GPU-…".
func (h *Host) UUID(i int) string { return h.gpus[i].uuid }

// uuidOf derives a stable UUID from the seed and the index.
func uuidOf(seed string, i int) (raw [16]byte, text string) {
	sum := sha256.Sum256(fmt.Appendf(nil, "simgpu/%s/%d", seed, i))
	copy(raw[:], sum[:16])
	raw[6] = raw[6]&0x0f | 0x40
	raw[8] = raw[8]&0x3f | 0x80
	return raw, fmt.Sprintf("GPU-%x-%x-%x-%x-%x", raw[0:4], raw[4:6], raw[6:8], raw[8:10], raw[10:16])
}

// Serve answers clients on l until ctx ends; it returns when every connection
// and the engine thread have ended. It closes l.
func (h *Host) Serve(ctx context.Context, l *net.UnixListener) error {
	engineDone := make(chan struct{})
	go func() {
		defer close(engineDone)
		h.runEngine()
	}()
	h.watching.Add(1)
	go func() {
		defer h.watching.Done()
		h.watchExports()
	}()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	open, closeAll := context.WithCancel(context.WithoutCancel(ctx))
	defer closeAll()
	err := h.accept(ctx, l, func(c *net.UnixConn) {
		// Also those that are no h.clients: of NVML, and without a hello yet.
		defer context.AfterFunc(open, func() { _ = c.Close() })()
		h.serveConn(c)
	})
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	closeAll()
	h.kick()
	h.conns.Wait()
	h.endExports()
	<-engineDone
	h.trace.close()
	_ = unix.Munmap(h.kickMem)
	_ = unix.Close(h.kickFD)
	_ = unix.Munmap(h.nodeMem)
	_ = unix.Close(h.nodeFD)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// kick makes the engine thread look again.
func (h *Host) kick() {
	atomic.AddUint32(&h.kicks.Word, 1)
	wakeFutex(&h.kicks.Word)
}
