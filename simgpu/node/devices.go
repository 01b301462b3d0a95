// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Numbers of the driver's character devices. Those of nvidia and of its control
// nodes are fixed, the kernel gives out the others; these are usual.
const (
	majorNVIDIA = 195
	majorUVM    = 510
	majorCaps   = 511
)

// device is a node below DIR/dev.
type device struct {
	name         string
	major, minor uint32
	mode         os.FileMode
}

// deviceNodes lists the nodes of the driver: of each GPU, of the control
// interfaces, and of MIG's capabilities where a card has MIG.
func (l Layout) deviceNodes() []device {
	out := []device{
		{"nvidiactl", majorNVIDIA, 255, 0o666},
		{"nvidia-modeset", majorNVIDIA, 254, 0o666},
		{"nvidia-uvm", majorUVM, 0, 0o666},
		{"nvidia-uvm-tools", majorUVM, 1, 0o666},
	}
	for i := range l.GPUs {
		out = append(out, device{fmt.Sprintf("nvidia%d", i), majorNVIDIA, uint32(i), 0o666}) //nolint:gosec // at most 16
	}
	if l.mig() {
		out = append(out, device{"nvidia-caps/nvidia-cap1", majorCaps, 1, 0o400}, device{"nvidia-caps/nvidia-cap2", majorCaps, 2, 0o444})
	}
	for i, g := range l.GPUs {
		for _, minor := range g.capabilities(i) {
			out = append(out, device{capName(minor), majorCaps, uint32(minor), 0o444}) //nolint:gosec // below 2^12
		}
	}
	return out
}

func capName(minor int) string { return fmt.Sprintf("nvidia-caps/nvidia-cap%d", minor) }

// capabilities lists the minor numbers of the instances of GPU i, each once.
func (g GPU) capabilities(i int) []int {
	var out []int
	for _, m := range g.Instances {
		out = append(out, MIGMinor(i, m.Instance, -1), MIGMinor(i, m.Instance, m.Compute))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// mig reports whether a card of the node can be partitioned.
func (l Layout) mig() bool {
	return slices.ContainsFunc(l.GPUs, func(g GPU) bool { return g.MIG })
}

// devices makes the character devices of a driver that is not loaded: what
// matters is whether a container has them, not what they do. Without the right to
// make one it makes none and reports false.
func (l Layout) devices() (bool, error) {
	if err := removeOthers(l.Dev(), "nvidia*"); err != nil {
		return false, err
	}
	for _, d := range l.deviceNodes() {
		path := filepath.Join(l.Dev(), d.name)
		if err := makeDir(filepath.Dir(path)); err != nil {
			return false, err
		}
		err := unix.Mknod(path, unix.S_IFCHR|uint32(d.mode), int(unix.Mkdev(d.major, d.minor)))
		if errors.Is(err, unix.EPERM) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("make device node %s: %w", path, err)
		}
		if err := os.Chmod(path, d.mode); err != nil {
			return false, fmt.Errorf("open device node %s: %w", path, err)
		}
	}
	return true, nil
}
