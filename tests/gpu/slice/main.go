// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command slice runs a program behind the interception library without any
// container or daemon: in a mount namespace of its own it makes /run/gpushare with
// a limits page and a ledger, as the daemon would, and puts our libraries first.
//
//	slice --lib DIR --cuda FILE --nvml FILE --uuid HEX --memory BYTES
//	      [--figures FILE] [--compute MILLI] -- PROGRAM [ARG...]
//	slice --measure --cuda FILE --nvml FILE --uuid HEX >FILE
//
// The second form measures what contexts, blocks and so on cost on the GPU, as the
// daemon does when it starts, for the first.
//
// It is for measuring on a machine with a driver and no engine; root is needed for
// the namespace. The program replaces this one.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/daemon/calibrate"
	"github.com/gpushare/gpushare/daemon/nvml"
	"github.com/gpushare/gpushare/limiter/region"
)

const place = "/run/gpushare"

type options struct {
	lib, cuda, nvml, uuid string
	memory                uint64
	compute               uint
	measure               bool
	figures               string
}

// patience is how long a driver may take to say what things cost.
const patience = time.Minute

func main() {
	if len(os.Args) == 3 && os.Args[1] == calibrate.HelperArg {
		if err := calibrate.Helper(os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "slice:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.StringVar(&o.lib, "lib", "", "directory of our two libraries")
	flag.StringVar(&o.cuda, "cuda", "", "the driver's libcuda.so.1")
	flag.StringVar(&o.nvml, "nvml", "", "the driver's libnvidia-ml.so.1")
	flag.StringVar(&o.uuid, "uuid", "", "UUID of the GPU, 32 hexadecimal digits")
	flag.Uint64Var(&o.memory, "memory", 0, "limit in bytes")
	flag.BoolVar(&o.measure, "measure", false, "print what things cost on the GPU, as JSON")
	flag.StringVar(&o.figures, "figures", "", "file with what --measure printed")
	flag.UintVar(&o.compute, "compute", region.MilliGPU, "share and ceiling in milli-GPU")
	flag.Parse()
	if err := run(o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "slice:", err)
		os.Exit(1)
	}
}

// sayCosts prints what things cost.
func (o options) sayCosts() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	library := nvml.New(nvml.Open(o.nvml), patience)
	if _, err := library.Inventory(ctx); err != nil {
		return err
	}
	p := calibrate.Prober{
		// A helper gets an empty environment; a simulated driver is found by a variable.
		Command: append(append([]string{"env"}, os.Environ()...), self, calibrate.HelperArg, o.cuda),
		NVML:    library,
	}
	figures, err := p.Measure(ctx, uuidText(o.uuid))
	if err != nil {
		return err
	}
	for _, why := range figures.Unknown {
		fmt.Fprintln(os.Stderr, "slice: not known:", why)
	}
	return json.NewEncoder(os.Stdout).Encode(figures)
}

// uuidText is a UUID of 32 digits as the management library writes it.
func uuidText(digits string) string {
	d := strings.ReplaceAll(strings.TrimPrefix(digits, "GPU-"), "-", "")
	if len(d) != 32 {
		return digits
	}
	return "GPU-" + d[:8] + "-" + d[8:12] + "-" + d[12:16] + "-" + d[16:20] + "-" + d[20:]
}

// costs reads what --measure has printed.
func (o options) costs() (f calibrate.Figures, err error) {
	if o.figures == "" {
		return f, nil
	}
	text, err := os.ReadFile(o.figures)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		return f, fmt.Errorf("read figures %s: %w", o.figures, err)
	}
	return f, nil
}

func run(o options, argv []string) error {
	if o.measure {
		return o.sayCosts()
	}
	if len(argv) == 0 || o.lib == "" || o.cuda == "" || o.nvml == "" || o.memory == 0 || o.compute > region.MilliGPU {
		return errors.New("needs --lib, --cuda, --nvml, --uuid, --memory and a program; see the source's head")
	}
	uuid, err := hex.DecodeString(strings.ReplaceAll(strings.TrimPrefix(o.uuid, "GPU-"), "-", ""))
	if err != nil || len(uuid) != 16 {
		return fmt.Errorf("uuid %q is not 32 hexadecimal digits", o.uuid)
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread() // the namespace is this thread's, and it is this thread that execs
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("new mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := o.lay([16]byte(uuid)); err != nil {
		return err
	}
	env := append(os.Environ(), "LD_LIBRARY_PATH="+o.lib+":"+os.Getenv("LD_LIBRARY_PATH"))
	return fmt.Errorf("run %s: %w", program, unix.Exec(program, argv, env))
}

// lay makes the directory that a container would find.
func (o options) lay(uuid [16]byte) error {
	// /run may hold no such directory and must not be written: cover it first.
	if _, err := os.Stat(place); err != nil {
		if err := os.Mkdir(place, 0o755); err != nil {
			return fmt.Errorf("make %s: %w", place, err)
		}
	}
	if err := unix.Mount("gpushare", place, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=8m,mode=0755"); err != nil {
		return fmt.Errorf("mount %s: %w", place, err)
	}
	f, err := o.costs()
	if err != nil {
		return err
	}
	limits, err := region.CreateLimits(filepath.Join(place, "limits"), []region.GPULimit{{
		UUID: uuid, MemoryLimit: o.memory, ContextBytes: f.ContextBytes, NextContextBytes: f.NextContextBytes,
		BlockBytes: f.BlockBytes, ModuleBytes: f.ModuleBytes, StackThreads: f.StackThreads, GraphNodeBytes: f.GraphNodeBytes,
		ComputeMilli: uint32(o.compute), CeilingMilli: uint32(o.compute),
	}})
	if err != nil {
		return err
	}
	limits.SetAlone(0, true)
	if err := limits.Close(); err != nil {
		return err
	}
	if err := region.CreateLedger(filepath.Join(place, "ledger"), 1); err != nil {
		return err
	}
	for name, real := range map[string]string{"cuda.real": o.cuda, "nvml.real": o.nvml} {
		at := filepath.Join(place, "driver", name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, nil, 0o444); err != nil {
			return err
		}
		if err := unix.Mount(real, at, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s: %w", real, err)
		}
	}
	return nil
}
