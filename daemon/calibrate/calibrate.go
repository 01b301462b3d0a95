// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package calibrate finds out what CUDA contexts, code, stacks and graphs cost on a
// GPU in device memory. The interception library charges that much in advance, since
// no call announces it.
//
// It is measured by making one of each, in a helper process, and asking the driver
// what that process holds. A driver and a GPU model give the same figures, so they
// are kept for the next start.
package calibrate

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/gpushare/gpushare/daemon/nvml"
)

const (
	// Default is what a context is taken to cost where it cannot be measured, in
	// bytes: more than any driver is known to need on any GPU.
	Default = 512 << 20
	// MaxBytes bounds a measured figure: more is a mistake.
	MaxBytes = 8 << 30
	// margin is added to a difference of the device's totals, in bytes: it moves
	// in pages of the driver's.
	margin = 2 << 20
)

// ErrUnknown is returned when the cost could not be measured.
var ErrUnknown = errors.New("context size unknown")

// Sampler reads the state of a GPU. *nvml.Library is one.
type Sampler interface {
	Sample(ctx context.Context, uuid string) (nvml.Sample, error)
}

var _ Sampler = (*nvml.Library)(nil)

// ParseUUID reads a UUID as the management library writes it, GPU-… .
func ParseUUID(text string) (uuid [16]byte, err error) {
	digits := strings.ReplaceAll(strings.TrimPrefix(text, "GPU-"), "-", "")
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) != len(uuid) {
		return uuid, fmt.Errorf("%.80q is not a GPU's UUID", text)
	}
	return [16]byte(raw), nil
}

// Prober measures. The zero value is not usable.
type Prober struct {
	// Command starts the helper: the binary, and its arguments.
	Command []string
	NVML    Sampler
}

// helper is a running helper process.
type helper struct {
	cmd *exec.Cmd
	in  *bufio.Writer
	out *bufio.Scanner
	end func()
}

func (p *Prober) start(ctx context.Context) (*helper, error) {
	cmd := exec.CommandContext(ctx, p.Command[0], p.Command[1:]...)
	// Nothing of the daemon's environment: a stray CUDA_VISIBLE_DEVICES would
	// hide the GPU that is meant.
	cmd.Env = []string{"PATH=/usr/bin:/bin", "CUDA_DEVICE_ORDER=PCI_BUS_ID"}
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start helper: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start helper: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start helper: %w", err)
	}
	return &helper{cmd: cmd, in: bufio.NewWriter(in), out: bufio.NewScanner(out), end: func() { in.Close(); _ = cmd.Wait() }}, nil
}

// say has the helper do a step and returns its number.
func (h *helper) say(step string) (uint64, error) {
	fmt.Fprintln(h.in, step)
	if err := h.in.Flush(); err != nil {
		return 0, fmt.Errorf("talk to helper: %w", err)
	}
	if !h.out.Scan() {
		return 0, errors.Join(errors.New("talk to helper: it ended"), h.out.Err())
	}
	if text, failed := strings.CutPrefix(h.out.Text(), "error "); failed {
		return 0, errors.New(text)
	}
	var n uint64
	if _, err := fmt.Sscanf(h.out.Text(), "ok %d", &n); err != nil {
		return 0, fmt.Errorf("talk to helper: it says %.40q", h.out.Text())
	}
	return n, nil
}

// HelperCommand is the command that makes the running binary the helper.
func HelperCommand(library string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own binary: %w", err)
	}
	if library == "" {
		library = "libcuda.so.1"
	}
	return []string{self, HelperArg, library}, nil
}
