// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/gpushare/gpushare/simgpu/fault"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// faultState is the word of the node page that makes clients ask. It is 0 while
// no call can fail; else a number that differs after each change.
type faultState struct {
	*fault.Set
	lock    sync.Mutex
	word    *uint32
	changes uint32
	rules   int
	dead    bool // processes have lost their GPU, or are locked
}

// makeFaults makes the set of rules, with those of the configuration.
func (h *Host) makeFaults() error {
	f := &h.faults
	f.word = &h.node.Faults
	f.Set = fault.NewSet(h.driver, func(rules int) {
		f.lock.Lock()
		defer f.lock.Unlock()
		f.rules = rules
		f.publish()
	})
	for i, s := range h.cfg.Faults {
		if _, err := f.Add(s); err != nil {
			return fmt.Errorf("fault rule %d: %w", i+1, err)
		}
	}
	return nil
}

// publish moves the word. The caller holds the lock.
func (f *faultState) publish() {
	f.changes += 2
	v := f.changes | 1
	if f.rules == 0 && !f.dead {
		v = 0
	}
	atomic.StoreUint32(f.word, v)
}

// answer handles one request of a connection that asks which calls are to fail.
func (f *faultState) answer(c fault.Caller, req *wire.Request, data []byte) (rep wire.Reply, out []byte) {
	switch req.Op {
	case wire.OpFaultNames:
		const room = wire.MaxMessage - replySize - 1
		names := f.NamesFor(c, req.B == wire.KindNVML)
		for _, n := range names[min(req.A, uint64(len(names))):] {
			if len(out)+len(n)+1 > room {
				break
			}
			out = append(append(out, n...), 0)
		}
	case wire.OpFault:
		v := f.Call(c, string(data), req.GPU)
		rep.Status, rep.A, rep.B = v.Code, v.Action, uint64(v.Delay.Nanoseconds()) //nolint:gosec // not negative
	}
	return rep, out
}

// adminFaults adds GET, POST and DELETE /faults.
func (h *Host) adminFaults(mux *http.ServeMux) {
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(h.faults.List())
	})
	mux.HandleFunc("POST /faults", func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		spec, err := fault.Decode(b)
		if err == nil && spec.GPU != nil && int(*spec.GPU) >= len(h.gpus) {
			err = fmt.Errorf("gpu %d: the node has %d", *spec.GPU, len(h.gpus))
		}
		var rule fault.Rule
		if err == nil {
			rule, err = h.faults.Add(spec)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(rule)
	})
	mux.HandleFunc("DELETE /faults", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.Atoi(r.URL.Query().Get("id"))
		if err == nil {
			err = h.faults.Remove(id)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
}
