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
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/simgpu/host"
	"github.com/gpushare/gpushare/simgpu/profile"
)

func upCommand() *cli.Command {
	return &cli.Command{
		Name:  "up",
		Usage: "start SIMULATED GPUs and write the files of their node",
		UsageText: `simgpu up --dir /var/lib/simgpu --gpus 2 --detach
simgpu up --dir DIR --profile 8xh100
simgpu up --dir DIR --profile 4xa100,2xt4
simgpu up --dir DIR --profile ./mine.yaml --kernel-time my_kernel=5ms`,
		Description: `A profile says what the GPUs are like: a name that "simgpu profiles" lists, or a
file (with a / in it, or one that ends in .yaml). NxPROFILE makes N of them, commas
join several kinds. The flags below it override the profile's values on every GPU.
Without --detach the GPUs are up until this command ends, by Ctrl-C or "simgpu down".`,
		Flags: slices.Concat([]cli.Flag{
			dirFlag(),
			&cli.StringFlag{Name: "profile", Value: profile.Exact, Usage: "`PROFILE` of the GPUs: h100, 8xh100, 4xa100,2xt4, ./mine.yaml"},
			&cli.IntFlag{Name: "gpus", Usage: "`NUMBER` of GPUs, if --profile gives none", DefaultText: "1"},
			&cli.StringFlag{Name: "memory", Usage: "`BYTES` of memory of each GPU (24GiB), as NVML counts it", DefaultText: "80GiB, or the profile's"},
			&cli.StringFlag{Name: "model", Usage: "device `NAME`; (SIMULATED) is appended", DefaultText: "NVIDIA H100 80GB HBM3, or the profile's"},
			&cli.UintFlag{Name: "sms", Usage: "`NUMBER` of multiprocessors of each GPU", DefaultText: "132, or the profile's"},
			&cli.DurationFlag{Name: "slice", Usage: "`TIME` of a turn of a context while others have work", DefaultText: "2ms, or the profile's"},
			&cli.DurationFlag{Name: "switch-cost", Usage: "engine `TIME` lost when contexts change", DefaultText: "0s, or the profile's"},
			&cli.StringFlag{Name: "context-overhead", Usage: "`BYTES` that a context costs", DefaultText: "300MiB, or the profile's"},
			&cli.StringSliceFlag{Name: "kernel-time", Usage: "`NAME=TIME`: how long kernels of that name run: 5ms, 3us+2us/wave, see simgpu kernel-time (default: 10us, or the profile's); may be repeated"},
			&cli.StringSliceFlag{Name: "condition", Usage: "`KERNEL=VALUE`: what conditional nodes of graphs near that kernel get; may be repeated"},
			&cli.StringSliceFlag{Name: "kernel-times", Usage: "`FILE` with such rules, one a line; may be repeated"},
			&cli.DurationFlag{Name: "watchdog", Usage: "a kernel that hangs ends its context after this `TIME`", DefaultText: "the profile's: never on all cards"},
			&cli.StringFlag{Name: "sharing", Usage: "`HOW` processes share a GPU: time-slice, or mps (kernels of all processes at once)", DefaultText: "the profile's: time-slice on all cards"},
			&cli.StringFlag{Name: "lib-dir", Usage: "`DIRECTORY` of the built libraries", DefaultText: "../simgpu/lib beside this binary"},
			&cli.StringFlag{Name: "mig", Usage: "cut each GPU into these `SHAPES`, for example 3g.40gb,2g.20gb"},
			&cli.BoolFlag{Name: "detach", Usage: "return when the GPUs are up"},
		}, driverFlags(), clockFlags(), faultFlags()),
		Action: func(c *cli.Context) error {
			s, err := settings(c)
			if err != nil {
				return err
			}
			if err := s.check(); err != nil {
				return err
			}
			if c.Bool("detach") {
				for _, note := range s.notes {
					fmt.Println(note)
				}
				return detach(c.Context, s.layout)
			}
			return up(c.Context, c.String("lib-dir"), shapes(c.String("mig")), s)
		},
	}
}

// noNodes is what an ordinary user should know.
const noNodes = "no device nodes, for want of the right to make them: no containers, all else works"

// up runs the host process until a signal or a request to stop.
func up(ctx context.Context, libDir string, mig []string, s *setup) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	l := s.layout
	unlock, err := l.Lock()
	if err != nil {
		return err //nolint:wrapcheck // says everything
	}
	defer unlock()
	h, err := host.New(s.host, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return fmt.Errorf("make GPUs: %w", err)
	}
	for i := range s.host.GPUs {
		if len(mig) == 0 {
			break
		}
		if err := h.CreateMIG(i, mig); err != nil {
			return fmt.Errorf("cut GPU %d: %w", i, err)
		}
	}
	l.GPUs = h.NodeGPUs()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own binary: %w", err)
	}
	if libDir == "" {
		libDir = filepath.Join(filepath.Dir(self), "..", "simgpu", "lib")
	}
	containers, err := l.Write(s.host.Driver.LibDir(libDir), self)
	if err != nil {
		return err //nolint:wrapcheck // says everything
	}
	// Whatever ends this, no socket without somebody behind it stays.
	defer func() {
		for _, p := range []string{l.Socket(), l.Admin(), l.PIDFile()} {
			_ = os.Remove(p)
		}
	}()
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
	for _, note := range s.notes {
		fmt.Println(note)
	}
	if !containers {
		fmt.Println(noNodes)
	}
	fmt.Printf("SIMULATED: %s up in %s\n", describe(names(s.host.GPUs)), l.Dir)
	err = h.Serve(ctx, clients)
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = srv.Shutdown(sctx)
	<-adminDone
	return err //nolint:wrapcheck // says everything
}

// describe counts devices by name: `2 GPU(s) "NVIDIA H100 (SIMULATED)"`.
func describe(names []string) string {
	var parts []string
	for i := 0; i < len(names); {
		n := 1
		for i+n < len(names) && names[i+n] == names[i] {
			n++
		}
		parts = append(parts, fmt.Sprintf("%d GPU(s) %q", n, names[i]))
		i += n
	}
	return strings.Join(parts, ", ")
}

func names(gpus []profile.GPU) []string {
	var out []string
	for _, g := range gpus {
		out = append(out, g.Name+" (SIMULATED)")
	}
	return out
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
