// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
)

// setRequest is the body of POST /set.
type setRequest struct {
	GPU    string   `json:"gpu"` // index, UUID or all
	Values []string `json:"values"`
}

// migRequest is the body of POST /mig.
type migRequest struct {
	GPU     string   `json:"gpu"`
	Create  []string `json:"create,omitempty"`  // names of shapes
	Destroy []uint32 `json:"destroy,omitempty"` // GPU instances
}

// handleManagement adds the requests that change what NVML shows.
func (h *Host) handleManagement(mux *http.ServeMux) {
	mux.HandleFunc("POST /set", func(w http.ResponseWriter, r *http.Request) {
		var q setRequest
		if decode(w, r, &q) {
			refuse(w, h.SetNamed(q.GPU, q.Values))
		}
	})
	mux.HandleFunc("POST /mig", func(w http.ResponseWriter, r *http.Request) {
		var q migRequest
		if decode(w, r, &q) {
			refuse(w, h.cut(q))
		}
	})
}

func decode(w http.ResponseWriter, r *http.Request, v any) bool {
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(v); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

func refuse(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// cut changes the MIG layout of a GPU: what is to go goes first. Creating an
// instance turns MIG mode on.
func (h *Host) cut(q migRequest) error {
	i, err := h.find(q.GPU)
	if err != nil {
		return err
	}
	for _, id := range q.Destroy {
		if err := h.destroyMIG(i, id); err != nil {
			return err
		}
	}
	if len(q.Create) > 0 {
		return h.CreateMIG(i, q.Create)
	}
	return nil
}

// CreateMIG cuts GPU i into one instance of each named shape, with a compute
// instance that fills it, in the order of names.
func (h *Host) CreateMIG(i int, names []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i < 0 || i >= len(h.gpus) {
		return fmt.Errorf("GPU %d: the node has GPUs 0 to %d", i, len(h.gpus)-1)
	}
	m := &h.gpus[i].nvml
	for _, name := range names {
		p, err := m.facts.MIG.find(name)
		if err != nil {
			return err //nolint:wrapcheck // says everything
		}
		if err := setMIGMode(h, i, 1); err != nil {
			return fmt.Errorf("turn MIG on: %w", err)
		}
		gi, status := h.createInstance(i, p.ID, math.MaxUint64)
		if status != 0 {
			return fmt.Errorf("create GPU instance %s: there is no room for it beside %s", name, m.layout())
		}
		if _, status := h.createPart(i, gi.id, partProfile(p.Slices), noID); status != 0 {
			return fmt.Errorf("create compute instance in %s: NVML error %d", name, status)
		}
	}
	return nil
}

// layout names the GPU instances of a GPU.
func (m *management) layout() string {
	var names []string
	for _, gi := range m.mig.instances {
		names = append(names, fmt.Sprintf("%s at %d", gi.shape.Name, gi.start))
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

func (h *Host) destroyMIG(i int, id uint32) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i < 0 || i >= len(h.gpus) {
		return fmt.Errorf("GPU %d: the node has GPUs 0 to %d", i, len(h.gpus)-1)
	}
	gi := h.gpus[i].nvml.instance(id)
	if gi == nil {
		return fmt.Errorf("destroy GPU instance %d: GPU %d has %s", id, i, h.gpus[i].nvml.layout())
	}
	for _, p := range slices.Clone(gi.parts) {
		if h.destroyPart(i, id, p.id) != 0 {
			return fmt.Errorf("destroy GPU instance %d: a process works in it", id)
		}
	}
	if h.destroyInstance(i, id) != 0 {
		return errors.New("destroy GPU instance: in use")
	}
	return nil
}

// Reading is what the management library shows of a GPU at the moment.
type Reading struct {
	Lost         bool          `json:"lost,omitempty"`
	TemperatureC uint32        `json:"temperature_c"`
	PowerMW      uint32        `json:"power_mw"`
	FanPercent   uint32        `json:"fan_percent"`
	SMClockMHz   uint32        `json:"sm_clock_mhz"`
	Utilization  uint32        `json:"utilization_percent"`
	PState       uint32        `json:"performance_state"`
	Throttle     uint64        `json:"throttle_reasons,omitempty"`
	Set          []string      `json:"set,omitempty"` // settings that stand in the model's place
	MIG          bool          `json:"mig,omitempty"`
	Instances    []MIGInstance `json:"mig_devices,omitempty"`
}

// MIGInstance is a compute instance and the GPU instance around it.
type MIGInstance struct {
	UUID            string `json:"uuid"`
	GPUInstance     uint32 `json:"gpu_instance"`
	ComputeInstance uint32 `json:"compute_instance"`
	Shape           string `json:"shape"`
	Start           uint32 `json:"start"`
	MemoryBytes     uint64 `json:"memory_bytes"`
	UsedBytes       uint64 `json:"used_bytes"`
	SMs             uint32 `json:"multiprocessors"`
}

// reading is the Reading of GPU i. The caller holds mu and has caught up.
func (h *Host) reading(i int) Reading {
	g := h.gpus[i]
	s := h.read(g)
	r := Reading{
		Lost: h.lost(i), TemperatureC: s.Temperature, PowerMW: s.Power, FanPercent: s.Fan, SMClockMHz: s.Clock[1],
		Utilization: s.Busy[0], PState: s.PState, Throttle: s.Reasons, MIG: s.MIG != 0,
	}
	for key := range g.nvml.pins {
		r.Set = append(r.Set, key)
	}
	slices.Sort(r.Set)
	for _, gi := range g.nvml.mig.instances {
		for _, p := range gi.parts {
			r.Instances = append(r.Instances, MIGInstance{
				UUID: p.uuid, GPUInstance: gi.id, ComputeInstance: p.id, Shape: gi.shape.Name, Start: gi.start,
				MemoryBytes: gi.shape.MemoryMiB << 20, UsedBytes: gi.used, SMs: g.nvml.facts.MIG.computeSMs(gi.shape, p.slices),
			})
		}
	}
	return r
}

// Set changes settings of a GPU by index, UUID or "all".
func (a *AdminClient) Set(ctx context.Context, gpu string, values []string) error {
	return a.call(ctx, http.MethodPost, "/set", setRequest{GPU: gpu, Values: values}, nil)
}

// CreateMIG cuts a GPU into instances of the named shapes.
func (a *AdminClient) CreateMIG(ctx context.Context, gpu string, shapes []string) error {
	return a.call(ctx, http.MethodPost, "/mig", migRequest{GPU: gpu, Create: shapes}, nil)
}

// DestroyMIG destroys GPU instances with what is in them.
func (a *AdminClient) DestroyMIG(ctx context.Context, gpu string, ids []uint32) error {
	return a.call(ctx, http.MethodPost, "/mig", migRequest{GPU: gpu, Destroy: ids}, nil)
}
