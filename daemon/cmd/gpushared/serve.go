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
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/daemon"
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
		NVML: library, Measure: prober.Measure, Log: log,
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
	if err := notify("READY=1"); err != nil {
		log.Warn("service manager not told, carried on", "err", err)
	}
	err = server.Serve(ctx, l, m, log)
	_ = notify("STOPPING=1")
	log.Info("ended, limits of running containers stay in force")
	return errors.Join(err, server.Remove(cfg.RunDir))
}

// policyOf is the part of config.toml that decides about claims.
func policyOf(cfg *config.Config) (daemon.Policy, error) {
	env, annotation, err := cfg.Cap.Parse()
	return daemon.Policy{
		EnvCap: env, AnnotationCap: annotation,
		Privileged: cfg.Override.Privileged, HostNamespaces: cfg.Override.HostNamespaces,
	}, err
}

// lockRunDir keeps a second daemon away from the run directory for as long as
// the file is open.
func lockRunDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make run directory: %w", err)
	}
	path := filepath.Join(dir, "gpushared.lock")
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

// notify tells the service manager, if there is one.
func notify(state string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	if strings.HasPrefix(path, "@") {
		path = "\x00" + path[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	return nil
}
