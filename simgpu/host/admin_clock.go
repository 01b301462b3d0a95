// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gpushare/gpushare/simgpu/sim"
)

// ClockState is what a node's clock says.
type ClockState struct {
	Virtual bool  `json:"virtual"`
	NowNS   int64 `json:"now_ns"`
	// Settled says that nothing happens before time may pass or a client acts
	// that the clock does not know of.
	Settled bool `json:"settled"`
	// NextNS is when the next thing happens that is known now; -1: nothing.
	NextNS  int64         `json:"next_ns"`
	Held    bool          `json:"held"`
	Turns   uint64        `json:"turns"` // granted so far
	Waiting []string      `json:"waiting_for,omitempty"`
	Clients []ClockClient `json:"clients,omitempty"`
}

// ClockClient is a process on the virtual clock.
type ClockClient struct {
	Key         string `json:"key"`
	PID         uint32 `json:"pid"`
	Threads     int    `json:"threads"`
	Waiting     int    `json:"waiting"` // threads that wait for the simulator
	TimeLibrary bool   `json:"time_library"`
}

// ClockMove asks for time to pass.
type ClockMove struct {
	ByNS    int64 `json:"by_ns,omitempty"`    // so long
	UntilNS int64 `json:"until_ns,omitempty"` // or until then
	Idle    bool  `json:"idle,omitempty"`     // or until nothing is left to happen
}

var (
	errWallClock = errors.New("the node has the wall clock: start it with --clock virtual")
	errMoving    = errors.New("another request moves the clock")
)

// Clock returns what the clock says.
func (h *Host) Clock() ClockState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clockState()
}

func (h *Host) clockState() ClockState {
	s := ClockState{NowNS: h.clock.now(), NextNS: -1}
	v := h.virtual
	if v == nil {
		return s
	}
	s.Virtual, s.Settled, s.Held, s.Turns, s.Waiting = true, v.settled, v.hold, v.turns, v.blamed
	_, next := v.crowd.choose(h, s.NowNS)
	next = min(next, h.machine.Next())
	if len(v.future) > 0 {
		next = min(next, v.future[0].at)
	}
	if next != sim.Never {
		s.NextNS = next
	}
	for _, p := range v.crowd.order {
		if len(p.links) == 0 {
			continue
		}
		c := ClockClient{Key: p.key, PID: p.pid, Threads: v.crowd.watch.threads(p)}
		for _, l := range p.links {
			c.Waiting += len(l.appendWaiting(nil))
			c.TimeLibrary = c.TimeLibrary || l.c == nil
		}
		s.Clients = append(s.Clients, c)
	}
	return s
}

// MoveClock lets time pass, and returns when it has and every client waits
// again; a move by 0 only lets clients do what they can at this moment. If ctx
// ends first, time stands where it is, and the error names who kept it.
func (h *Host) MoveClock(ctx context.Context, m ClockMove) (ClockState, error) {
	h.mu.Lock()
	v := h.virtual
	switch {
	case v == nil:
		h.mu.Unlock()
		return ClockState{}, errWallClock
	case v.moving:
		h.mu.Unlock()
		return ClockState{}, errMoving
	}
	now := h.clock.now()
	limit := now + m.ByNS
	if m.UntilNS != 0 {
		limit = m.UntilNS
	}
	if m.Idle {
		limit = sim.Never - 1
	}
	if limit < now {
		h.mu.Unlock()
		return ClockState{}, fmt.Errorf("move the clock from %v to %v: it does not go back",
			time.Duration(now), time.Duration(limit))
	}
	v.moving, v.settled, v.limit, v.idle = true, false, limit, m.Idle
	v.crowd.doubt()
	changed := v.changed
	h.mu.Unlock()
	h.kick()
	var err error
	select {
	case <-changed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	v.moving, v.idle, v.limit = false, false, h.clock.now()
	s := h.clockState()
	if err != nil && len(s.Waiting) > 0 {
		err = fmt.Errorf("clock stands at %v: %s", time.Duration(s.NowNS), strings.Join(s.Waiting, "; "))
	} else if err != nil {
		err = fmt.Errorf("clock stands at %v: not there in time", time.Duration(s.NowNS))
	}
	return s, err
}

// HoldClock keeps threads from going on, also at the present moment, until the
// clock is moved: programs that start while it is held begin together.
func (h *Host) HoldClock(on bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.virtual == nil {
		return errWallClock
	}
	h.virtual.hold = on
	h.kick()
	return nil
}

func (h *Host) clockRoutes(mux *http.ServeMux) {
	reply := func(w http.ResponseWriter, s ClockState, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s)
	}
	mux.HandleFunc("GET /clock", func(w http.ResponseWriter, _ *http.Request) { reply(w, h.Clock(), nil) })
	mux.HandleFunc("POST /clock", func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ClockMove
			PatienceNS int64 `json:"patience_ns"`
		}
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&m); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ctx := r.Context()
		if m.PatienceNS > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(m.PatienceNS))
			defer cancel()
		}
		s, err := h.MoveClock(ctx, m.ClockMove)
		reply(w, s, err)
	})
	mux.HandleFunc("POST /clock/hold", func(w http.ResponseWriter, r *http.Request) {
		var on bool
		err := json.NewDecoder(io.LimitReader(r.Body, 64)).Decode(&on)
		if err == nil {
			err = h.HoldClock(on)
		}
		reply(w, h.Clock(), err)
	})
}

// Clock fetches what the node's clock says.
func (a *AdminClient) Clock(ctx context.Context) (s ClockState, err error) {
	return s, a.call(ctx, http.MethodGet, "/clock", nil, &s)
}

// MoveClock lets virtual time pass. It returns when time has passed and every
// client waits again, or, with an error that names who keeps the clock, when
// ctx ends.
func (a *AdminClient) MoveClock(ctx context.Context, m ClockMove) (s ClockState, err error) {
	in := struct {
		ClockMove
		PatienceNS int64 `json:"patience_ns"`
	}{ClockMove: m}
	patient := a.http
	patient.Timeout = 0
	if end, ok := ctx.Deadline(); ok {
		in.PatienceNS = max(1, time.Until(end).Nanoseconds())
		// The simulator answers at the deadline, and says more than a
		// connection that is cut off.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Until(end)+2*time.Second)
		defer cancel()
	}
	b := &AdminClient{http: patient}
	return s, b.call(ctx, http.MethodPost, "/clock", in, &s)
}

// StepClock moves virtual time by d.
func (a *AdminClient) StepClock(ctx context.Context, d time.Duration) (ClockState, error) {
	return a.MoveClock(ctx, ClockMove{ByNS: d.Nanoseconds()})
}

// HoldClock keeps threads from going on until the clock is moved.
func (a *AdminClient) HoldClock(ctx context.Context, on bool) error {
	return a.call(ctx, http.MethodPost, "/clock/hold", on, nil)
}
