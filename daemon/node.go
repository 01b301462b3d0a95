// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gpushare/gpushare/daemon/calibrate"
	"github.com/gpushare/gpushare/daemon/nvml"
)

const (
	// refreshAge is how old the list of GPUs may grow before somebody's question
	// has it read again.
	refreshAge = 10 * time.Second
	// sampleAge is how old a GPU's figures may be to be shown again.
	sampleAge = 500 * time.Millisecond
	// measureTime bounds the measuring of one GPU.
	measureTime = 10 * time.Second
	// measureAgain is the time after which a measurement that failed is retried.
	measureAgain = time.Minute
)

// gpuInfo is a GPU of the node.
type gpuInfo struct {
	nvml.Device
	uuid [16]byte
	// costs are what contexts and the like take in advance; measured is false if only
	// the default of a context is known.
	costs    calibrate.Figures
	measured bool
}

// node is the node's GPUs as the driver tells of them.
type node struct {
	opt   Options
	log   *slog.Logger
	cache *calibrate.Cache

	reading sync.Mutex // held while the driver is read; guards cache and failed
	failed  map[string]time.Time

	mu      sync.Mutex
	gpus    []gpuInfo
	driver  string
	err     error
	read    time.Time
	kicked  bool
	samples map[string]timedSample
}

type timedSample struct {
	nvml.Sample
	err error
	at  time.Time
}

func newNode(opt Options, log *slog.Logger) *node {
	return &node{
		opt: opt, log: log, cache: calibrate.OpenCache(opt.StateDir),
		failed: make(map[string]time.Time), samples: make(map[string]timedSample),
	}
}

// refresh reads the GPUs from the driver and measures what is not known yet. It
// may take seconds the first time.
func (n *node) refresh(ctx context.Context) {
	n.reading.Lock()
	defer n.reading.Unlock()
	inv, err := n.opt.NVML.Inventory(ctx)
	var gpus []gpuInfo
	for _, d := range inv.Devices {
		g := gpuInfo{Device: d, costs: defaultCosts}
		if g.Err == nil {
			if g.uuid, g.Err = calibrate.ParseUUID(d.UUID); g.Err == nil {
				g.costs, g.measured = n.costs(ctx, inv.DriverVersion, d)
			}
		}
		gpus = append(gpus, g)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.read = time.Now()
	if err != nil {
		if n.err == nil || n.err.Error() != err.Error() {
			n.log.Warn("GPUs cannot be read, carried on with what is known", "err", err)
		}
		n.err = err
		return
	}
	n.err, n.driver = nil, inv.DriverVersion
	n.gpus = merge(n.gpus, gpus)
}

// merge returns the GPUs that are there, and those that were and are not any
// more: containers may still hold them.
func merge(old, now []gpuInfo) []gpuInfo {
	out := slices.Clone(now)
	for _, o := range old {
		same := func(g gpuInfo) bool { return g.UUID == o.UUID }
		if o.UUID != "" && !slices.ContainsFunc(now, same) {
			o.Err = errors.New("the driver does not list it any more")
			out = append(out, o)
		}
	}
	slices.SortStableFunc(out, func(a, b gpuInfo) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// defaultCosts are those of a GPU that nothing could be measured on.
var defaultCosts = calibrate.Figures{ContextBytes: calibrate.Default}

// costs returns what contexts and the like cost on the device, and whether that is
// measured. The caller holds reading.
func (n *node) costs(ctx context.Context, driver string, d nvml.Device) (calibrate.Figures, bool) {
	if v, ok := n.cache.Get(driver, d.Name); ok {
		return v, true
	}
	model := driver + "/" + d.Name
	if at, ok := n.failed[model]; ok && time.Since(at) < measureAgain || n.opt.Measure == nil {
		return defaultCosts, false
	}
	ctx, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	v, err := n.opt.Measure(ctx, d.UUID)
	if err != nil {
		n.failed[model] = time.Now()
		n.log.Warn("context size unknown, took the default", "gpu", d.UUID, "bytes", uint64(calibrate.Default), "err", err)
		return defaultCosts, false
	}
	delete(n.failed, model)
	if err := n.cache.Put(driver, d.Name, v); err != nil {
		n.log.Warn("calibration not kept, it will be measured again", "err", err)
	}
	n.log.Info("GPU calibrated", "gpu", d.UUID, "context_bytes", v.ContextBytes, "next_context_bytes", v.NextContextBytes, "block_bytes", v.BlockBytes,
		"module_bytes", v.ModuleBytes, "stack_threads", v.StackThreads, "graph_node_bytes", v.GraphNodeBytes)
	for _, why := range v.Unknown {
		n.log.Warn("cost unknown, it is charged when the driver's figure shows it", "gpu", d.UUID, "err", why)
	}
	return v, true
}

// list returns the GPUs and why there is none, nil if there is one.
func (n *node) list() ([]gpuInfo, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.gpus) > 0 {
		return slices.Clone(n.gpus), nil
	}
	if n.err != nil {
		return nil, n.err
	}
	return nil, fmt.Errorf("the driver lists no GPU: %w", nvml.ErrUnavailable)
}

func (n *node) driverVersion() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.driver
}

// find returns the GPU of that UUID.
func (n *node) find(uuid string) (gpuInfo, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range n.gpus {
		if g.UUID == uuid {
			return g, true
		}
	}
	return gpuInfo{}, false
}

// stale reports whether it is time to read the GPUs again, once: the caller does
// it.
func (n *node) stale() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kicked || time.Since(n.read) < refreshAge {
		return false
	}
	n.kicked = true
	return true
}

func (n *node) refreshed() {
	n.mu.Lock()
	n.kicked = false
	n.mu.Unlock()
}

// sample returns the figures of one GPU, at most sampleAge old.
func (n *node) sample(ctx context.Context, uuid string) (nvml.Sample, error) {
	n.mu.Lock()
	s, ok := n.samples[uuid]
	n.mu.Unlock()
	if ok && time.Since(s.at) < sampleAge {
		return s.Sample, s.err
	}
	return n.fresh(ctx, uuid)
}

// fresh returns the figures of one GPU as they are now.
func (n *node) fresh(ctx context.Context, uuid string) (nvml.Sample, error) {
	var s timedSample
	s.Sample, s.err = n.opt.NVML.Sample(ctx, uuid)
	s.at = time.Now()
	n.mu.Lock()
	n.samples[uuid] = s
	n.mu.Unlock()
	return s.Sample, s.err
}

// simulated reports whether any GPU is.
func (n *node) simulated() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.gpus, func(g gpuInfo) bool { return g.Simulated() })
}

// usable is what limits on the GPU may add up to, in bytes.
func (g gpuInfo) usable() uint64 { return g.MemoryTotal - min(g.MemoryReserved, g.MemoryTotal) }
