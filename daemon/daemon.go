// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package daemon is gpushared: it keeps account of a node's GPUs, gives
// containers their share of them and reports what they use.
//
// It is the only writer of limits pages. It is not in any tenant's way: a tenant
// computes against the page that is there, so the daemon may die, restart or be
// replaced while containers run. What it knows it can rebuild from the records
// on the run directory's tmpfs, the container directories, the runtimes' own
// state and the kernel.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/calibrate"
	"github.com/gpushare/gpushare/daemon/directory"
	"github.com/gpushare/gpushare/daemon/event"
	"github.com/gpushare/gpushare/daemon/nvml"
	"github.com/gpushare/gpushare/daemon/proc"
	"github.com/gpushare/gpushare/daemon/state"
	"github.com/gpushare/gpushare/daemon/usage"
	"github.com/gpushare/gpushare/daemon/window"
	"github.com/gpushare/gpushare/internal/version"
	"github.com/gpushare/gpushare/limiter"
	"github.com/gpushare/gpushare/limiter/region"
)

// NVML is what the daemon asks of the driver. *nvml.Library is one.
type NVML interface {
	Inventory(ctx context.Context) (nvml.Inventory, error)
	Sample(ctx context.Context, uuid string) (nvml.Sample, error)
}

var _ NVML = (*nvml.Library)(nil)

// Options are what a Manager works with.
type Options struct {
	RunDir, StateDir string
	DockerHost       string
	// Default fills a request without a memory word.
	Default limiter.Words
	Policy  Policy
	NVML    NVML
	// Libraries returns the versioned directory of our libraries that containers
	// get which start now; may be nil.
	Libraries func() (string, error)
	// Measure finds out what contexts and the like cost on a GPU.
	Measure func(ctx context.Context, uuid string) (calibrate.Figures, error)
	Log     *slog.Logger
}

// Manager holds the node's containers. Its methods may be called by several
// goroutines. Close ends it and leaves tenants as they are.
type Manager struct {
	opt     Options
	log     *slog.Logger
	bootID  string
	self    proc.Group // the daemon's own control group
	tree    *proc.Tree
	node    *node
	windows *window.Runner
	started time.Time
	events  *event.Log
	// followers counts those who follow the events now.
	followers atomic.Int64
	// settleWake wakes the settling before its time.
	settleWake chan struct{}
	// round is when the sweep in progress began, in nanoseconds since started; 0
	// between two.
	round atomic.Int64

	ctx    context.Context // of the goroutines
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu         sync.Mutex
	closed     bool
	store      *state.Store
	containers map[string]*container
	// leftovers are directories that could not be removed yet.
	leftovers map[string]bool
	warnings  []string
	lost      map[string]bool // GPUs whose loss was told
}

// container is one container. Its record is guarded by the Manager's mu.
type container struct {
	id   string
	rec  *state.Record
	dir  *directory.Dir // nil if it is lost
	stop context.CancelFunc
	// hurried is set while its end is looked for often.
	hurried bool
	// claimGroup is the claimant's control group, zero if unknown.
	claimGroup proc.Group
	nameTries  int
	// resumed is set for a container that an earlier daemon started.
	resumed bool
	seen    seen

	acct    sync.Mutex // guards what follows, and dir.Ledger
	closed  bool
	tracker usage.Tracker
	settle  settling
	last    region.Usage
	lastErr error
}

// New prepares the run directory, looks at the GPUs and takes up the containers
// that an earlier daemon left running.
func New(ctx context.Context, opt Options) (*Manager, error) {
	m := &Manager{
		opt: opt, log: opt.Log, started: time.Now(), windows: window.NewRunner(),
		containers: make(map[string]*container), leftovers: make(map[string]bool), lost: make(map[string]bool),
		events: event.New(time.Now), settleWake: make(chan struct{}, 1),
	}
	m.ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := m.prepare(); err != nil {
		m.cancel()
		return nil, err
	}
	m.node = newNode(opt, m.log)
	m.node.refresh(ctx)
	if err := m.reconcile(); err != nil {
		m.Close()
		return nil, err
	}
	m.noteStart()
	m.wg.Go(m.sweepLoop)
	m.wg.Go(m.observeLoop)
	m.wg.Go(m.settleLoop)
	return m, nil
}

func (m *Manager) prepare() (err error) {
	// The run directory may be entered by all, since docker and the runtimes may
	// run as others; what is in it may not.
	for _, d := range []struct {
		path string
		mode os.FileMode
	}{{m.opt.RunDir, 0o755}, {m.containersDir(), 0o700}, {m.opt.StateDir, 0o700}} {
		if err := os.MkdirAll(d.path, d.mode); err != nil {
			return fmt.Errorf("make run directory: %w", err)
		}
		if err := os.Chmod(d.path, d.mode); err != nil {
			return fmt.Errorf("make run directory: %w", err)
		}
	}
	if m.store, err = state.Open(filepath.Join(m.opt.RunDir, "state")); err != nil {
		return err
	}
	if m.bootID, err = proc.BootID(); err != nil {
		return err
	}
	if m.tree, err = proc.OpenTree(); err != nil {
		return err
	}
	m.self, err = proc.GroupOf(os.Getpid())
	if err != nil {
		m.log.Warn("own control group unknown, carried on without", "err", err)
	}
	return nil
}

func (m *Manager) noteStart() {
	m.mu.Lock()
	n := len(m.containers)
	m.mu.Unlock()
	simulated := ""
	if m.node.simulated() {
		simulated = "SIMULATED: "
	}
	gpus, err := m.node.list()
	text := fmt.Sprintf("%sgpushared %s, pid %d, driver %s, %d GPUs, %d containers taken up", simulated, version.String(), os.Getpid(), m.node.driverVersion(), len(gpus), n)
	if err != nil {
		text = fmt.Sprintf("gpushared %s, pid %d, no usable GPU: %v", version.String(), os.Getpid(), err)
	}
	m.events.Add(v1.Event{Reason: v1.EventDaemonStarted, Message: text})
}

func (m *Manager) containersDir() string { return filepath.Join(m.opt.RunDir, "c") }

// Close ends the daemon's part. Directories, limits and records stay; nobody is
// left held.
func (m *Manager) Close() {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	m.closed = true
	m.cancel()
	m.windows.Close()
	for _, c := range m.containers {
		c.close()
	}
	m.mu.Unlock()
	m.wg.Wait()
}

// close gives up what is open of the container.
func (c *container) close() {
	if c.stop != nil {
		c.stop()
	}
	c.acct.Lock()
	defer c.acct.Unlock()
	if !c.closed && c.dir != nil {
		c.dir.Close()
	}
	c.closed = true
}

// now is the time that trackers and sweeps work with.
func (m *Manager) now() time.Duration { return time.Since(m.started) }

// errClosed is returned while the daemon ends.
var errClosed = errors.New("the daemon is ending")

// noPage is the page of a container whose directory is lost: it cannot be told
// anything, and still is a neighbour.
type noPage struct{}

func (noPage) SetHold(int, uint32)   {}
func (noPage) SetWindow(int, uint32) {}
func (noPage) SetAlone(int, bool)    {}

var _ window.Page = noPage{}
