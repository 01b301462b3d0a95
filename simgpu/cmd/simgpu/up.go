// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/simgpu/host"
	"github.com/gpushare/gpushare/simgpu/node"
)

func upCommand() *cli.Command {
	return &cli.Command{
		Name:      "up",
		Usage:     "start SIMULATED GPUs and write the files of their node",
		UsageText: "simgpu up --dir /var/lib/simgpu --gpus 2 --detach\nsimgpu up --dir DIR --memory 24GiB --kernel-time my_kernel=5ms",
		Flags: append(clockFlags(), []cli.Flag{
			dirFlag(),
			&cli.IntFlag{Name: "gpus", Value: 1, Usage: "number of GPUs"},
			&cli.StringFlag{Name: "memory", Value: "80GiB", Usage: "memory of each GPU"},
			&cli.StringFlag{Name: "model", Value: "NVIDIA H100 80GB HBM3", Usage: "device name; (SIMULATED) is appended"},
			&cli.UintFlag{Name: "sms", Value: 132, Usage: "multiprocessors of each GPU"},
			&cli.DurationFlag{Name: "slice", Value: 2 * time.Millisecond, Usage: "turn of a context while others have work"},
			&cli.DurationFlag{Name: "switch-cost", Usage: "engine time lost when contexts change"},
			&cli.StringFlag{Name: "context-overhead", Value: "300MiB", Usage: "memory that a context costs"},
			&cli.StringSliceFlag{Name: "kernel-time", Usage: "`NAME=TIME`: how long kernels of that name run (default 10us); may be repeated"},
			&cli.StringFlag{Name: "lib-dir", Usage: "directory of the built libraries (default: ../simgpu/lib beside this binary)"},
			&cli.BoolFlag{Name: "detach", Usage: "return when the GPUs are up"},
		}...),
		Action: func(c *cli.Context) error {
			cfg, layout, err := settings(c)
			if err != nil {
				return err
			}
			if _, err := host.NewAdminClient(layout.Admin()).Status(c.Context); err == nil {
				return fmt.Errorf("start node in %s: it is up already", layout.Dir)
			}
			if c.Bool("detach") {
				return detach(c.Context, layout)
			}
			return up(c.Context, c.String("lib-dir"), cfg, layout)
		},
	}
}

func settings(c *cli.Context) (host.Config, node.Layout, error) {
	dir, err := filepath.Abs(c.String("dir"))
	if err != nil {
		return host.Config{}, node.Layout{}, fmt.Errorf("find node directory: %w", err)
	}
	cfg := host.Config{
		GPUs: c.Int("gpus"), Model: c.String("model"), Multiprocessors: uint32(c.Uint("sms")), //nolint:gosec // a count
		Slice: c.Duration("slice"), SwitchCost: c.Duration("switch-cost"), Seed: dir,
		KernelTimes: map[string]time.Duration{},
	}
	if cfg.MemoryBytes, err = parseBytes(c.String("memory")); err != nil {
		return cfg, node.Layout{}, fmt.Errorf("memory: %w", err)
	}
	if cfg.ContextBytes, err = parseBytes(c.String("context-overhead")); err != nil {
		return cfg, node.Layout{}, fmt.Errorf("context-overhead: %w", err)
	}
	if cfg.KernelTimes, err = parseTimes(c.StringSlice("kernel-time")); err != nil {
		return cfg, node.Layout{}, err
	}
	if cfg.Clock, err = clockOf(c); err != nil {
		return cfg, node.Layout{}, err
	}
	return cfg, node.Layout{Dir: dir, Version: host.DriverVersion}, cfg.Validate()
}

func parseBytes(s string) (uint64, error) {
	if s == "0" {
		return 0, nil
	}
	q, err := quantity.ParseMemory(s, quantity.Strict)
	if err != nil {
		return 0, err //nolint:wrapcheck // says everything
	}
	if q.IsPercent() {
		return 0, errors.New("a percentage of nothing")
	}
	return q.Bytes(0), nil
}

func parseTimes(args []string) (map[string]time.Duration, error) {
	m := map[string]time.Duration{}
	for _, a := range args {
		i := strings.LastIndex(a, "=")
		if i <= 0 {
			return nil, fmt.Errorf("kernel time %q: want NAME=TIME, for example k=50us", a)
		}
		d, err := time.ParseDuration(a[i+1:])
		if err != nil || d < 0 {
			return nil, fmt.Errorf("kernel time %q: want a time like 50us or 5ms", a)
		}
		m[a[:i]] = d
	}
	return m, nil
}

// up runs the host process until a signal or a request to stop.
func up(ctx context.Context, libDir string, cfg host.Config, l node.Layout) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	h, err := host.New(cfg, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return fmt.Errorf("make GPUs: %w", err)
	}
	for i := range cfg.GPUs {
		l.UUIDs = append(l.UUIDs, h.UUID(i))
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own binary: %w", err)
	}
	if libDir == "" {
		libDir = filepath.Join(filepath.Dir(self), "..", "simgpu", "lib")
	}
	if err := l.Write(libDir, self); err != nil {
		return err //nolint:wrapcheck // says everything
	}
	clients, err := listen("unixpacket", l.Socket(), 0o666)
	if err != nil {
		return err
	}
	admin, err := listen("unix", l.Admin(), 0o600)
	if err != nil {
		return err
	}
	if err := os.WriteFile(l.PIDFile(), fmt.Appendln(nil, os.Getpid()), 0o644); err != nil { //nolint:gosec // no secret
		return fmt.Errorf("write pid file: %w", err)
	}
	srv := &http.Server{Handler: h.Admin(stop), ReadHeaderTimeout: 5 * time.Second}
	adminDone := make(chan struct{})
	go func() { defer close(adminDone); _ = srv.Serve(admin) }()
	fmt.Printf("SIMULATED: %d GPU(s) %q up in %s\n", cfg.GPUs, cfg.Model+" (SIMULATED)", l.Dir)
	err = h.Serve(ctx, clients)
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = srv.Shutdown(sctx)
	<-adminDone
	for _, p := range []string{l.Socket(), l.Admin(), l.PIDFile()} {
		_ = os.Remove(p)
	}
	return err //nolint:wrapcheck // says everything
}

func listen(network, path string, mode os.FileMode) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("replace socket: %w", err)
	}
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: path, Net: network})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, fmt.Errorf("set mode of %s: %w", path, err)
	}
	return l, nil
}

// detach starts the same command in a session of its own and waits until it
// answers; the host process writes to DIR/log.
func detach(ctx context.Context, l node.Layout) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own binary: %w", err)
	}
	if err := os.MkdirAll(l.Dir, 0o755); err != nil { //nolint:gosec // tenants read below it
		return fmt.Errorf("create node directory: %w", err)
	}
	logPath := filepath.Join(l.Dir, "log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644) //nolint:gosec // the operator's path
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close() //nolint:errcheck // the child has its own
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool {
		return strings.HasPrefix(strings.TrimLeft(a, "-"), "detach")
	})
	cmd := exec.Command(self, args...) //nolint:gosec,noctx // ourselves; outlives the context
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if wd, err := os.Getwd(); err == nil {
		cmd.Dir = wd
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start host process: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	a := host.NewAdminClient(l.Admin())
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if st, err := a.Status(ctx); err == nil {
			fmt.Printf("SIMULATED: %d GPU(s) %q up in %s (pid %d)\n",
				len(st.GPUs), st.GPUs[0].Name, l.Dir, cmd.Process.Pid)
			return nil
		}
		select {
		case err := <-ended:
			b, _ := os.ReadFile(logPath)
			return fmt.Errorf("start host process: %w: %s", err, strings.TrimSpace(string(b)))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("start host process: no answer within 10 s, see %s", logPath)
}
