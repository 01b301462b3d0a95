// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/place"
	"github.com/gpushare/gpushare/daemon/state"
	"github.com/gpushare/gpushare/limiter"
	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/limiter/region"
)

// change is a ResizeRequest that was understood; nil fields stay as they are.
type change struct {
	memory           *quantity.Memory
	compute, ceiling *uint32
	profile          limiter.Profile
	host             *uint64
	asked            v1.Request // the words
}

func parseChange(req v1.ResizeRequest) (change, error) {
	mode, source := quantity.Strict, ""
	if req.CommandLine {
		mode, source = quantity.Docker, sourceFlag
	}
	ch := change{asked: v1.Request{Memory: req.Memory, Compute: req.Compute, ComputeMax: req.ComputeMax, Profile: req.Profile, HostMemory: req.HostMemory}}
	refuse := func(field string, err error) (change, error) {
		return change{}, refuseWords(source, &limiter.FieldError{Field: field, Err: err})
	}
	if req.HostMemory != "" {
		v, err := quantity.ParseHostMemory(req.HostMemory, mode)
		if err != nil {
			return refuse("host-memory", err)
		}
		ch.host = &v
	}
	if req.Profile != "" {
		r, err := limiter.Parse(wordsOf(ch.asked), mode)
		if err != nil {
			return change{}, refuseWords(source, err)
		}
		ch.profile = r.Profile
		return ch, nil
	}
	if req.Memory != "" {
		v, err := quantity.ParseMemory(req.Memory, mode)
		if err != nil {
			return refuse("memory", err)
		}
		ch.memory = &v
	}
	if req.Compute != "" {
		v, err := quantity.ParseShare(req.Compute)
		if err != nil {
			return refuse("compute", err)
		}
		ch.compute = &v
	}
	if req.ComputeMax != "" {
		v, err := quantity.ParseCeiling(req.ComputeMax)
		if err != nil {
			return refuse("compute-max", err)
		}
		ch.ceiling = &v
	}
	if ch.memory == nil && ch.compute == nil && ch.ceiling == nil && ch.host == nil {
		return change{}, v1.Errorf(http.StatusBadRequest, v1.CodeRequest, "nothing to change: give a memory limit, a compute share, a compute ceiling, a profile or host memory")
	}
	return ch, nil
}

// apply returns the limits that the change makes of old ones on a GPU with that
// much memory. A ceiling that was never asked for goes with the guarantee, as it
// does when a container starts.
func (ch change) apply(old limiter.Limit, ownCeiling bool, usable uint64) (limiter.Limit, error) {
	if !ch.profile.IsZero() {
		return ch.profile.On(usable)
	}
	l := old
	if ch.memory != nil {
		l.MemoryBytes = ch.memory.Bytes(usable)
	}
	if ch.compute != nil {
		l.ComputeMilli = *ch.compute
		if !ownCeiling {
			l.CeilingMilli = *ch.compute
		}
	}
	if ch.ceiling != nil {
		l.CeilingMilli = *ch.ceiling
	}
	if l.CeilingMilli < l.ComputeMilli {
		return limiter.Limit{}, v1.Errorf(http.StatusBadRequest, v1.CodeUnit,
			"the ceiling of %s would be below the guarantee of %s: change both, for example --gpu-compute %[2]s --gpu-compute-max %[2]s",
			quantity.FormatShare(l.CeilingMilli), quantity.FormatShare(l.ComputeMilli))
	}
	return l, nil
}

// memoryFlag is the flag that set the memory.
func (ch change) memoryFlag() string {
	if !ch.profile.IsZero() {
		return "--gpu-profile " + ch.asked.Profile
	}
	return "--gpu-memory " + ch.asked.Memory
}

// Resize changes the limits of a container while it runs. Raising is subject to
// the same admission as a claim; memory below what is in use is refused unless
// it is asked for softly. The change is in the limits page when Resize returns.
func (m *Manager) Resize(ctx context.Context, ref string, req v1.ResizeRequest) (v1.Resize, error) {
	ch, err := parseChange(req)
	if err != nil {
		return v1.Resize{}, err
	}
	m.mu.Lock()
	c, err := m.lookLocked(ref)
	m.mu.Unlock()
	if err != nil {
		return v1.Resize{}, err
	}
	// Asked before the lock is taken: the driver may take its time.
	used := m.usedBytes(ctx, c)

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.containers[c.id] != c {
		return v1.Resize{}, notFound(ref)
	}
	if c.dir == nil {
		return v1.Resize{}, v1.Errorf(http.StatusConflict, v1.CodeConflict, "container %s cannot be changed: %s", m.nameLocked(c), c.rec.Fault)
	}
	return m.resizeLocked(c, ch, req.Soft, used)
}

func (m *Manager) resizeLocked(c *container, ch change, soft bool, used []uint64) (v1.Resize, error) {
	out := v1.Resize{APIVersion: v1.APIVersion, ID: c.id, Name: c.rec.Name}
	gpus, err := m.node.list()
	if err != nil {
		return v1.Resize{}, noGPU(err)
	}
	places := m.placesLocked(gpus, c.id)
	host, err := m.resizeHostLocked(c, ch, soft)
	if err != nil {
		return v1.Resize{}, err
	}
	next := slices.Clone(c.rec.GPUs)
	for i, g := range c.rec.GPUs {
		at := slices.IndexFunc(places, func(p place.GPU) bool { return p.UUID == g.UUID })
		if at < 0 {
			return v1.Resize{}, v1.Errorf(http.StatusServiceUnavailable, v1.CodeNoGPU, "GPU %d of container %s is gone", g.Index, m.nameLocked(c))
		}
		old := limitOf(g)
		l, err := ch.apply(old, c.rec.Request.ComputeMax != "", places[at].UsableBytes)
		if err != nil {
			if v1.Code(err) == "" {
				err = place.Refuse(places[at], err)
			}
			return v1.Resize{}, err
		}
		if err := place.Resize(places[at], old, l, wordsOf(ch.asked)); err != nil {
			return v1.Resize{}, err
		}
		if l.MemoryBytes < old.MemoryBytes && l.MemoryBytes < used[i] && !soft {
			return v1.Resize{}, v1.Errorf(http.StatusConflict, v1.CodeMemInUse,
				"cannot lower %[1]s to %[2]s: %[3]s are in use on GPU %[4]d. Lower it for new allocations only: gpushare set %[1]s %[5]s --soft",
				m.nameLocked(c), quantity.FormatBytes(l.MemoryBytes), quantity.FormatBytes(used[i]), g.Index, ch.memoryFlag())
		}
		next[i] = state.GPU{UUID: g.UUID, Index: g.Index, MemoryBytes: l.MemoryBytes, ComputeMilli: l.ComputeMilli, CeilingMilli: l.CeilingMilli}
		out.Old = append(out.Old, apiLimits(g, c.rec.HostMemoryBytes))
		out.New = append(out.New, apiLimits(next[i], host))
	}
	before, hadHost := grantedWords(c.rec.GPUs, c.rec.HostMemoryBytes), c.rec.HostMemoryBytes > 0
	if err := m.commitLocked(c, next, host, ch); err != nil {
		return v1.Resize{}, err
	}
	after := grantedWords(next, host)
	if hadHost && host == 0 {
		after += " · no host memory"
	}
	m.noteLocked(c, v1.EventLimitChanged, "by gpushare set: %s → %s", before, after)
	m.log.Info("limits changed", "container", c.id, "gpu", next[0].UUID, "limit_bytes", next[0].MemoryBytes,
		"compute_milli", next[0].ComputeMilli, "ceiling_milli", next[0].CeilingMilli)
	return out, nil
}

// commitLocked writes new limits: the record first, since a daemon that dies in
// between restores the page from it.
func (m *Manager) commitLocked(c *container, next []state.GPU, host uint64, ch change) error {
	old := *c.rec
	c.rec.GPUs, c.rec.HostMemoryBytes = next, host
	if c.rec.Asked == nil {
		asked := c.rec.Request
		c.rec.Asked = &asked
	}
	c.rec.Set = maps.Clone(c.rec.Set)
	if c.rec.Set == nil {
		c.rec.Set = make(map[string]state.Set)
	}
	note := func(name, word string, to *string) {
		*to = word
		c.rec.Set[name] = state.Set{Word: word, Time: time.Now().UTC()}
	}
	if !ch.profile.IsZero() { // stands in the place of all words of the share
		maps.DeleteFunc(c.rec.Set, func(name string, _ state.Set) bool { return name != v1.LimitHostMemory })
		c.rec.Request = v1.Request{GPU: old.Request.GPU, HostMemory: old.Request.HostMemory}
		note(v1.LimitProfile, ch.asked.Profile, &c.rec.Request.Profile)
	}
	if ch.memory != nil {
		note(v1.LimitMemory, ch.asked.Memory, &c.rec.Request.Memory)
	}
	if ch.compute != nil {
		note(v1.LimitCompute, ch.asked.Compute, &c.rec.Request.Compute)
	}
	if ch.ceiling != nil {
		note(v1.LimitComputeMax, ch.asked.ComputeMax, &c.rec.Request.ComputeMax)
	}
	if ch.host != nil {
		note(v1.LimitHostMemory, ch.asked.HostMemory, &c.rec.Request.HostMemory)
	}
	if err := m.store.Save(c.rec); err != nil {
		*c.rec = old
		return v1.Errorf(http.StatusInternalServerError, v1.CodeInternal, "change limits of %s: %w", m.nameLocked(c), err)
	}
	restorePage(c.dir.Limits, c.rec)
	return nil
}

// writePage sets the limits on one GPU of a page where they differ.
func writePage(l *region.Limits, i int, want limiter.Limit) {
	have := l.GPU(i)
	if have.MemoryLimit != want.MemoryBytes {
		l.SetMemory(i, want.MemoryBytes)
	}
	if have.ComputeMilli != want.ComputeMilli || have.CeilingMilli != want.CeilingMilli {
		l.SetShare(i, want.ComputeMilli, want.CeilingMilli)
	}
}

func apiLimits(g state.GPU, host uint64) v1.Limits {
	return v1.Limits{GPUIndex: g.Index, MemoryBytes: g.MemoryBytes, ComputeMilli: g.ComputeMilli, ComputeMaxMilli: g.CeilingMilli, HostMemoryBytes: host}
}

// nameLocked is what to call a container in a message.
func (m *Manager) nameLocked(c *container) string {
	if c.rec.Name != "" {
		return c.rec.Name
	}
	return short(c.id)
}

func notFound(ref string) error {
	return v1.Errorf(http.StatusNotFound, v1.CodeNotFound, "no container %.80q holds a share; see: gpushare ps", ref)
}

// lookLocked finds a container by id, name or unique prefix of its id.
func (m *Manager) lookLocked(ref string) (*container, error) {
	if c := m.containers[ref]; c != nil {
		return c, nil
	}
	var named, prefixed []*container
	for id, c := range m.containers {
		if c.rec.Name != "" && c.rec.Name == ref {
			named = append(named, c)
		}
		if ref != "" && len(id) > len(ref) && id[:len(ref)] == ref {
			prefixed = append(prefixed, c)
		}
	}
	for _, found := range [][]*container{named, prefixed} {
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return nil, v1.Errorf(http.StatusConflict, v1.CodeAmbiguous, "%.80q names %d containers; write more of the id: %s", ref, len(found), ids(found))
		}
	}
	return nil, notFound(ref)
}

func ids(list []*container) string {
	var out []string
	for _, c := range list {
		out = append(out, short(c.id))
	}
	slices.Sort(out)
	if len(out) > 5 {
		out = append(out[:5], "…")
	}
	return fmt.Sprint(out)
}

var errLost = errors.New("its directory is gone")
