// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gpushare/gpushare/simgpu/api"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// Bounds of what rules and callers can make a Set remember.
const (
	maxRules     = 256
	maxProcesses = 1 << 16 // of a rule that counts by process
)

// Caller is a process that calls.
type Caller struct {
	PID    uint32
	Cgroup string // path
}

// Set is the rules that are in force. It is safe for concurrent use.
type Set struct {
	driver  api.Driver
	changed func(rules int) // called with the lock held, after each change

	mu    sync.Mutex
	rules []*Rule
	next  int
}

// NewSet returns a set without rules for a driver; changed is told the number
// of rules after each change.
func NewSet(d api.Driver, changed func(rules int)) *Set {
	return &Set{driver: d, changed: changed}
}

// Add puts a rule in force and returns it.
func (s *Set) Add(spec Spec) (Rule, error) {
	r, err := newRule(s.driver, spec)
	if err != nil {
		return Rule{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rules) >= maxRules {
		return Rule{}, fmt.Errorf("add rule: there are %d already", maxRules)
	}
	s.next++
	r.ID = s.next
	s.rules = append(s.rules, r)
	s.changed(len(s.rules))
	return r.export(), nil
}

var errNoRule = errors.New("no such rule")

// Remove takes rule id back, or with 0 all of them.
func (s *Set) Remove(id int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := slices.DeleteFunc(s.rules, func(r *Rule) bool { return id == 0 || r.ID == id })
	if id != 0 && len(kept) == len(s.rules) {
		return fmt.Errorf("remove rule %d: %w", id, errNoRule)
	}
	s.rules = kept
	s.changed(len(s.rules))
	return nil
}

// List returns the rules and their accounts, oldest first.
func (s *Set) List() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Rule, 0, len(s.rules))
	for _, r := range s.rules {
		out = append(out, r.export())
	}
	return out
}

func (r *Rule) export() Rule {
	c := *r
	c.Names = slices.Clone(r.Names)
	c.counts = nil
	return c
}

// NamesFor returns the names of one library that a caller must ask about.
func (s *Set) NamesFor(c Caller, nvml bool) (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if r.nvml == nvml && r.of(c) {
			out = append(out, r.Names...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *Rule) of(c Caller) bool {
	return (r.PID == 0 || r.PID == c.PID) && (r.Cgroup == "" || strings.Contains(c.Cgroup, r.Cgroup))
}

// Verdict is what becomes of a call.
type Verdict struct {
	Action uint64 // wire.Fault…
	Code   int32
	Delay  time.Duration
}

// Call counts a call and says what becomes of it: the first rule that is about
// it decides what it returns; delays add up.
func (s *Set) Call(c Caller, name string, gpu uint32) (v Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if !slices.Contains(r.Names, name) || !r.of(c) || (r.GPU != nil && *r.GPU != gpu) || !r.hit(c.PID) {
			continue
		}
		v.Delay = min(v.Delay+r.delay, maxDelay)
		if v.Action == wire.FaultNone {
			v.Action, v.Code = r.action, r.Code
		}
	}
	return v
}

// hit counts a call that matches and tells whether it is one of those meant.
func (r *Rule) hit(pid uint32) bool {
	if !r.PerProcess {
		pid = 0
	}
	k := r.counts[pid]
	if k == nil {
		if len(r.counts) >= maxProcesses {
			clear(r.counts) // of processes long gone, most likely
		}
		k = &count{}
		r.counts[pid] = k
	}
	k.calls++
	r.Calls++
	first, every, most := r.Nth, r.Every, r.Count
	if first == 0 {
		first = max(every, 1)
	}
	if r.Nth != 0 && every == 0 && most == 0 {
		most = 1
	}
	if k.calls < first || (k.calls-first)%max(every, 1) != 0 || (most != 0 && k.hits >= most) {
		return false
	}
	k.hits++
	r.Hits++
	return true
}
