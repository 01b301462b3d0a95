// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// EngineChange changes how a GPU shares its time, while it runs; what is nil
// stays.
type EngineChange struct {
	GPU        int            `json:"gpu"` // -1: all
	Slice      *time.Duration `json:"slice_ns,omitempty"`
	SwitchCost *time.Duration `json:"switch_cost_ns,omitempty"`
	Watchdog   *time.Duration `json:"watchdog_ns,omitempty"`
}

// SetEngine makes a change; a new slice holds from the next turn on.
func (h *Host) SetEngine(c EngineChange) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.GPU < -1 || c.GPU >= len(h.gpus) {
		return fmt.Errorf("set engine of GPU %d: there are %d", c.GPU, len(h.gpus))
	}
	for i, g := range h.gpus {
		if c.GPU >= 0 && c.GPU != i {
			continue
		}
		e := g.profile.Engine
		for _, f := range []struct{ from, to *time.Duration }{
			{c.Slice, &e.Slice}, {c.SwitchCost, &e.SwitchCost}, {c.Watchdog, &e.Watchdog},
		} {
			if f.from != nil {
				*f.to = *f.from
			}
		}
		if e.Slice > 10*time.Second || e.SwitchCost > time.Second || e.Watchdog < 0 || e.Watchdog > maxKernelTime {
			return fmt.Errorf("set engine of GPU %d: slice %v, switch cost %v, watchdog %v: at most 10s, 1s and 24h",
				i, e.Slice, e.SwitchCost, e.Watchdog)
		}
		if err := e.Validate(); err != nil {
			return fmt.Errorf("set engine of GPU %d: %w", i, err)
		}
		h.catchUp()
		g.profile.Engine = e
		h.changes++
		h.machine.Configure(i, simGPU(e, g.info.Multiprocessors))
	}
	h.kick()
	return nil
}

func (h *Host) adminEngine(mux *http.ServeMux) {
	mux.HandleFunc("POST /engine", func(w http.ResponseWriter, r *http.Request) {
		var c EngineChange
		err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&c)
		if err == nil {
			err = h.SetEngine(c)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
}

// SetEngine changes how a GPU shares its time.
func (a *AdminClient) SetEngine(ctx context.Context, c EngineChange) error {
	return a.call(ctx, http.MethodPost, "/engine", c, nil)
}
