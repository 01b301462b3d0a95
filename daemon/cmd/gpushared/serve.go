// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/daemon"
	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/calibrate"
	"github.com/gpushare/gpushare/daemon/nvml"
	"github.com/gpushare/gpushare/daemon/server"
	"github.com/gpushare/gpushare/internal/config"
	"github.com/gpushare/gpushare/internal/version"
)

// driverPatience is how long one call into the driver may take.
const driverPatience = 2 * time.Second

// serve runs the daemon until ctx ends.
func serve(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	policy, err := policyOf(cfg)
	if err != nil {
		return fmt.Errorf("read %s: %w", cfg.Path, err)
	}
	for _, p := range cfg.CheckPaths() {
		log.Warn("configuration names what cannot be used", "file", cfg.Path, "err", p)
	}
	lock, err := lockRunDir(cfg.RunDir)
	if err != nil {
		return err
	}
	defer lock.Close()

	library := nvml.New(nvml.Open(cfg.NVMLLibrary), driverPatience)
	defer library.Close()
	command, err := calibrate.HelperCommand(cfg.CUDALibrary)
	if err != nil {
		return err
	}
	prober := &calibrate.Prober{Command: command, NVML: library}
	m, err := daemon.New(ctx, daemon.Options{
		RunDir: cfg.RunDir, StateDir: cfg.StateDir, DockerHost: cfg.DockerHost, Default: cfg.DefaultShare.Words(), Policy: policy,
		NVML: library, Measure: prober.Measure, Libraries: cfg.LibraryDirectory, Log: log,
	})
	if err != nil {
		return err
	}
	defer m.Close()
	l, err := server.Listen(cfg.RunDir)
	if err != nil {
		return err
	}
	d := m.Daemon(ctx)
	log.Info("ready", "version", version.String(), "socket", d.Socket, "gpus", len(d.GPUs), "containers", d.Containers)
	if d.Simulated {
		log.Warn("SIMULATED: the driver of this node is a simulator, no figure is a real GPU's")
	}
	if d.Reason != "" {
		log.Warn("no GPU, claims are refused until there is one", "err", d.Reason)
	}
	g, err := newGuard(cfg.RunDir, m, log)
	if err != nil {
		return err
	}
	if err := notify("READY=1", "STATUS="+g.status()); err != nil {
		log.Warn("service manager not told, carried on", "err", err)
	}
	err = serveGuarded(ctx, l, m, g, log)
	_ = notify("STOPPING=1", "STATUS=ending")
	log.Info("ended, limits of running containers stay in force")
	if errors.Is(err, errTaken) {
		return err // the socket that is there now is another's
	}
	return errors.Join(err, server.Remove(cfg.RunDir))
}

// policyOf is the part of config.toml that decides about claims.
func policyOf(cfg *config.Config) (daemon.Policy, error) {
	env, annotation, err := cfg.Cap.Parse()
	host, hostErr := cfg.HostBytes()
	return daemon.Policy{
		EnvCap: env, AnnotationCap: annotation, HostMemoryBytes: host,
		Privileged: cfg.Override.Privileged, HostNamespaces: cfg.Override.HostNamespaces,
	}, errors.Join(err, hostErr)
}

// serveGuarded serves until ctx ends or the guard finds that there is no sense
// in it any more.
func serveGuarded(ctx context.Context, l net.Listener, m *daemon.Manager, g *guard, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	guarded := make(chan error, 1)
	go func() {
		guarded <- g.run(ctx)
		cancel()
	}()
	err := server.Serve(ctx, l, m, log)
	cancel()
	return errors.Join(<-guarded, err)
}

// newGuard returns the guard of a daemon that listens in runDir.
func newGuard(runDir string, m *daemon.Manager, log *slog.Logger) (*guard, error) {
	g := &guard{every: guardEvery, notify: notify, log: log}
	// Asked for at most every third of the time, so that one answer may be late.
	if d := watchdog(); d > 0 {
		g.every = max(d/3, time.Millisecond)
	}
	client := v1.NewClient(filepath.Join(runDir, v1.SocketName)).WithTimeout(g.every)
	g.health = client.Health
	g.status = func() string {
		text := fmt.Sprintf("%d containers hold a share", m.Containers())
		if m.Simulated() {
			text = "SIMULATED: " + text
		}
		return text
	}
	for _, name := range []string{v1.SocketName, lockName} {
		k, err := keep(filepath.Join(runDir, name))
		if err != nil {
			return nil, err
		}
		g.files = append(g.files, k)
	}
	return g, nil
}

// lockName is the file in the run directory that keeps a second daemon away.
const lockName = "gpushared.lock"

// lockRunDir keeps a second daemon away from the run directory for as long as
// the file is open.
func lockRunDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make run directory: %w", err)
	}
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock run directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another gpushared uses %s; stop it first, or give this one another --run-dir", dir)
		}
		return nil, fmt.Errorf("lock run directory: %w", err)
	}
	return f, nil
}
