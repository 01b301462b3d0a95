// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command slice runs a program behind the interception library without any
// container or daemon: in a mount namespace of its own it makes /run/gpushare with
// a limits page and a ledger, as the daemon would, and puts our libraries first.
//
//	slice --lib DIR --cuda FILE --nvml FILE --uuid HEX --memory BYTES
//	      [--context BYTES] [--compute MILLI] -- PROGRAM [ARG...]
//
// It is for measuring on a machine with a driver and no engine; root is needed for
// the namespace. The program replaces this one.
package main

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/limiter/region"
)

const place = "/run/gpushare"

type options struct {
	lib, cuda, nvml, uuid string
	memory, context       uint64
	compute               uint
}

func main() {
	var o options
	flag.StringVar(&o.lib, "lib", "", "directory of our two libraries")
	flag.StringVar(&o.cuda, "cuda", "", "the driver's libcuda.so.1")
	flag.StringVar(&o.nvml, "nvml", "", "the driver's libnvidia-ml.so.1")
	flag.StringVar(&o.uuid, "uuid", "", "UUID of the GPU, 32 hexadecimal digits")
	flag.Uint64Var(&o.memory, "memory", 0, "limit in bytes")
	flag.Uint64Var(&o.context, "context", 0, "bytes that a context takes")
	flag.UintVar(&o.compute, "compute", region.MilliGPU, "share and ceiling in milli-GPU")
	flag.Parse()
	if err := run(o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "slice:", err)
		os.Exit(1)
	}
}

func run(o options, argv []string) error {
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
	limits, err := region.CreateLimits(filepath.Join(place, "limits"), []region.GPULimit{{
		UUID: uuid, MemoryLimit: o.memory, ContextBytes: o.context,
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
