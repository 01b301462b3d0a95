// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/directory"
	"github.com/gpushare/gpushare/daemon/engine"
	"github.com/gpushare/gpushare/daemon/place"
	"github.com/gpushare/gpushare/daemon/proc"
	"github.com/gpushare/gpushare/daemon/state"
	"github.com/gpushare/gpushare/limiter"
	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/limiter/region"
)

// Claim gives a container its place. When it returns, the container's directory
// is complete. The same id may be claimed again while the container lives; the
// answer is then the same. A refusal is a *v1.Error and leaves nothing behind.
func (m *Manager) Claim(ctx context.Context, req v1.ClaimRequest) (v1.Claim, error) {
	out, err := m.claim(ctx, req)
	if err != nil {
		m.noteRefused(req, err)
	}
	return out, err
}

func (m *Manager) claim(ctx context.Context, req v1.ClaimRequest) (v1.Claim, error) {
	claimant, err := checkClaim(req)
	if err != nil {
		return v1.Claim{}, err
	}
	if err := m.opt.Policy.allows(req.Exposed); err != nil {
		return v1.Claim{}, err
	}
	words := wordsOf(req.Request).Or(m.opt.Default)
	want, err := limiter.Parse(words, quantity.Strict)
	if err != nil {
		return v1.Claim{}, refuseWords(req.Source, err)
	}
	want.Caps = m.opt.Policy.caps(req.Source)
	host, err := hostMemoryOf(want)
	if err != nil {
		return v1.Claim{}, err
	}
	if _, err := m.node.list(); err != nil {
		m.node.refresh(ctx) // it may have come since
	}
	m.refreshIfStale()

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return v1.Claim{}, v1.Errorf(http.StatusServiceUnavailable, v1.CodeInternal, "claim: %w", errClosed)
	}
	if m.awaitEndLocked(ctx, req.ID); m.closed {
		return v1.Claim{}, v1.Errorf(http.StatusServiceUnavailable, v1.CodeInternal, "claim: %w", errClosed)
	}
	if c := m.containers[req.ID]; c != nil {
		same, err := m.reclaimLocked(c, req)
		if same || err != nil {
			return m.claimLocked(c), err
		}
	}
	gpus, err := m.node.list()
	if err != nil {
		return v1.Claim{}, noGPU(err)
	}
	grants, err := place.Choose(m.placesLocked(gpus, ""), req.Request.GPU, want, words)
	if err != nil {
		return v1.Claim{}, err
	}
	if err := m.admitHostLocked(host, ""); err != nil {
		return v1.Claim{}, err
	}
	c, err := m.placeLocked(req, claimant, host, grants)
	if err != nil {
		return v1.Claim{}, err
	}
	m.log.Info("container claimed", "container", c.id, "gpu", c.rec.GPUs[0].UUID, "limit_bytes", c.rec.GPUs[0].MemoryBytes,
		"compute_milli", c.rec.GPUs[0].ComputeMilli, "ceiling_milli", c.rec.GPUs[0].CeilingMilli)
	if len(req.Exposed) > 0 {
		m.log.Warn("container can undo its limits, allowed by config.toml", "container", c.id, "exposed", strings.Join(req.Exposed, ", "))
	}
	m.noteLocked(c, v1.EventClaimed, "asked for %s: %s", askedWords(req.Request, req.Source), grantedWords(c.rec.GPUs, c.rec.HostMemoryBytes))
	return m.claimLocked(c), nil
}

func wordsOf(r v1.Request) limiter.Words {
	return limiter.Words{Memory: r.Memory, Compute: r.Compute, ComputeMax: r.ComputeMax, Profile: r.Profile, HostMemory: r.HostMemory}
}

// checkClaim checks what does not depend on the node.
func checkClaim(req v1.ClaimRequest) (proc.ID, error) {
	bad := func(format string, args ...any) error {
		return v1.Errorf(http.StatusBadRequest, v1.CodeRequest, format, args...)
	}
	if err := proc.ValidID(req.ID); err != nil {
		return proc.ID{}, bad("id: %w", err)
	}
	for name, p := range map[string]string{"bundle": req.Bundle, "runtime_root": req.RuntimeRoot} {
		if !filepath.IsAbs(p) || len(p) > 4096 || strings.ContainsRune(p, 0) {
			return proc.ID{}, bad("%s %.100q: not an absolute path", name, p)
		}
	}
	if len(req.MountLabel) > 512 {
		return proc.ID{}, bad("mount_label: %d bytes, at most 512 are a label", len(req.MountLabel))
	}
	if !slices.Contains([]string{v1.SourceEnv, v1.SourceAnnotation, v1.SourceBoth, v1.SourceDefault}, req.Source) {
		return proc.ID{}, bad("source %.60q: write env, annotation, env+annotation or default", req.Source)
	}
	if err := checkExposed(req.Exposed); err != nil {
		return proc.ID{}, bad("exposed: %w", err)
	}
	claimant, err := proc.Lookup(req.PID)
	if err != nil {
		return proc.ID{}, bad("pid: %w", err)
	}
	return claimant, nil
}

// refuseWords turns what limiter.Parse says into a refusal that names the word
// where it was written.
func refuseWords(source string, err error) error {
	if errors.Is(err, limiter.ErrNoMemory) {
		return v1.Errorf(http.StatusBadRequest, v1.CodeNoMemory, "no GPU memory limit was asked for, and this node has no default: write %s=8Gi, for example", wordName(source, "memory"))
	}
	text := err.Error()
	var field *limiter.FieldError
	if errors.As(err, &field) {
		text = wordName(source, field.Field) + ": " + field.Err.Error()
	}
	// The code is added again by the error's own text.
	text = strings.TrimSuffix(text, "  ["+quantity.Code+"]")
	return v1.Errorf(http.StatusBadRequest, v1.CodeUnit, "%s", text)
}

// sourceFlag is the source of words from the command line.
const sourceFlag = "flag"

// wordName is how a word of a request is spelt where it came from.
func wordName(source, field string) string {
	switch source {
	case v1.SourceEnv:
		return "GPUSHARE_" + strings.ToUpper(strings.ReplaceAll(field, "-", "_"))
	case v1.SourceAnnotation:
		return "gpushare.io/" + field
	case v1.SourceBoth:
		return wordName(v1.SourceEnv, field) + " (gpushare.io/" + field + ")"
	case sourceFlag:
		return "--gpu-" + field
	}
	return "default_share." + strings.ReplaceAll(field, "-", "_")
}

func noGPU(err error) error {
	return v1.Errorf(http.StatusServiceUnavailable, v1.CodeNoGPU, "no NVIDIA GPU is usable on this node: %w; see: gpushare daemon", err)
}

// reclaimLocked deals with a claim of an id that is held. It reports whether the
// claim stands as it is; if not, the old one has been released.
func (m *Manager) reclaimLocked(c *container, req v1.ClaimRequest) (same bool, err error) {
	if m.settleLocked(c); !m.aliveLocked(c) {
		m.releaseLocked(c, "replaced")
		return false, nil
	}
	if !c.rec.Init.IsZero() && !c.rec.Init.Alive() {
		return false, v1.Errorf(http.StatusConflict, v1.CodeConflict,
			"container %s has ended, but processes of it still run; end them first, or choose another id", short(c.id))
	}
	// What was asked for, not what it was changed to since.
	if c.rec.Original() != req.Request || c.rec.RuntimeRoot != req.RuntimeRoot || !slices.Equal(c.rec.Exposed, req.Exposed) {
		return false, v1.Errorf(http.StatusConflict, v1.CodeConflict,
			"container %s holds a claim with other limits or of another runtime, and lives; stop it first, or choose another id", short(c.id))
	}
	return true, nil
}

// awaitEndLocked gives a container whose first process has ended a moment for its
// last ones: engines start a container again under its id as soon as they see it
// end. It lets go of the lock meanwhile.
func (m *Manager) awaitEndLocked(ctx context.Context, id string) {
	for range 50 {
		c := m.containers[id]
		if c == nil || c.rec.Init.IsZero() || c.rec.Init.Alive() || !m.aliveLocked(c) || m.closed {
			return
		}
		m.mu.Unlock()
		ok := sleep(ctx, 20*time.Millisecond)
		m.mu.Lock()
		if !ok {
			return
		}
	}
}

// placesLocked is the GPUs with what is promised of each, without the container
// besides.
func (m *Manager) placesLocked(gpus []gpuInfo, besides string) []place.GPU {
	limits := make(map[string][]limiter.Limit)
	for id, c := range m.containers {
		if id == besides {
			continue
		}
		for _, g := range c.rec.GPUs {
			limits[g.UUID] = append(limits[g.UUID], limitOf(g))
		}
	}
	out := make([]place.GPU, 0, len(gpus))
	for _, g := range gpus {
		out = append(out, place.GPU{
			Index: g.Index, UUID: g.UUID, Name: g.Name, UsableBytes: g.usable(),
			ContextBytes: g.costs.ContextBytes, Measured: g.measured,
			Promised: limiter.Sum(limits[g.UUID]), Err: g.Err,
		})
	}
	return out
}

func limitOf(g state.GPU) limiter.Limit {
	return limiter.Limit{MemoryBytes: g.MemoryBytes, ComputeMilli: g.ComputeMilli, CeilingMilli: g.CeilingMilli}
}

// placeLocked makes the container's directory and record and starts to watch it.
func (m *Manager) placeLocked(req v1.ClaimRequest, claimant proc.ID, host uint64, grants []place.Grant) (*container, error) {
	rec := &state.Record{
		ID: req.ID, BootID: m.bootID, Bundle: req.Bundle, BundleSeen: sees(req.Bundle), RuntimeRoot: req.RuntimeRoot, MountLabel: req.MountLabel,
		Request: req.Request, Source: req.Source, Created: time.Now().UTC(), Claimant: claimant, Engine: engine.Of(req.Bundle),
		Exposed: slices.Clone(req.Exposed), HostMemoryBytes: host,
	}
	pages := make([]region.GPULimit, 0, len(grants))
	for _, g := range grants {
		info, _ := m.node.find(g.GPU.UUID)
		rec.GPUs = append(rec.GPUs, state.GPU{
			UUID: g.GPU.UUID, Index: g.GPU.Index, MemoryBytes: g.Limit.MemoryBytes,
			ComputeMilli: g.Limit.ComputeMilli, CeilingMilli: g.Limit.CeilingMilli,
		})
		pages = append(pages, region.GPULimit{
			UUID: info.uuid, MemoryLimit: g.Limit.MemoryBytes, ContextBytes: g.GPU.ContextBytes,
			ComputeMilli: g.Limit.ComputeMilli, CeilingMilli: g.Limit.CeilingMilli,
			NextContextBytes: info.costs.NextContextBytes, BlockBytes: info.costs.BlockBytes, ModuleBytes: info.costs.ModuleBytes,
			StackThreads: info.costs.StackThreads, GraphNodeBytes: info.costs.GraphNodeBytes,
		})
	}
	if err := directory.Remove(m.containersDir(), req.ID); err != nil { // a leftover
		return nil, v1.Errorf(http.StatusInternalServerError, v1.CodeInternal, "clear the way for container %s: %w", short(req.ID), err)
	}
	dir, err := directory.Create(m.containersDir(), req.ID, req.MountLabel, pages)
	if err != nil {
		return nil, v1.Errorf(http.StatusInternalServerError, v1.CodeInternal, "prepare container %s: %w", short(req.ID), err)
	}
	dir.Limits.SetHostMemory(host)
	delete(m.leftovers, req.ID)
	if err := m.store.Save(rec); err != nil {
		dir.Close()
		return nil, v1.Errorf(http.StatusInternalServerError, v1.CodeInternal, "prepare container %s: %w", short(req.ID),
			errors.Join(err, directory.Remove(m.containersDir(), req.ID)))
	}
	c := &container{id: req.ID, rec: rec, dir: dir}
	if g, err := proc.GroupOf(claimant.PID); err == nil {
		c.claimGroup = g
	}
	m.addLocked(c)
	return c, nil
}

// claimLocked is the answer to a claim.
func (m *Manager) claimLocked(c *container) v1.Claim {
	out := v1.Claim{
		APIVersion: v1.APIVersion, ID: c.id, Directory: filepath.Join(m.containersDir(), c.id),
		MemoryBytes: c.rec.GPUs[0].MemoryBytes, ComputeMilli: c.rec.GPUs[0].ComputeMilli,
		ComputeMaxMilli: c.rec.GPUs[0].CeilingMilli, HostMemoryBytes: c.rec.HostMemoryBytes, DriverVersion: m.node.driverVersion(),
	}
	for _, g := range c.rec.GPUs {
		info, _ := m.node.find(g.UUID)
		out.GPUs = append(out.GPUs, v1.GrantedGPU{
			Index: g.Index, UUID: g.UUID, Name: info.Name, CDIDevice: g.UUID, MemoryBytes: g.MemoryBytes,
		})
	}
	return out
}

// short is an id as people read it.
func short(id string) string { return v1.ShortID(id) }

// refreshIfStale has the GPUs read again, behind whoever asked.
func (m *Manager) refreshIfStale() {
	if !m.node.stale() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.wg.Go(func() {
		defer m.node.refreshed()
		m.node.refresh(m.ctx)
	})
}
