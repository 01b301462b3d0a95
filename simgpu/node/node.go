// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package node lays out a simulated GPU node under one directory, as an
// installed driver would lie on a machine: libraries, device nodes and the CDI
// specifications that hand them to containers. It starts no process and writes
// nowhere else.
package node

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Layout is where the parts of a node lie.
type Layout struct {
	Dir     string // absolute
	Version string // of the driver, part of the library names
	UUIDs   []string
}

// Paths inside a node directory.
func (l Layout) Lib() string    { return filepath.Join(l.Dir, "lib") }
func (l Layout) Dev() string    { return filepath.Join(l.Dir, "dev") }
func (l Layout) Run() string    { return filepath.Join(l.Dir, "run") }
func (l Layout) Socket() string { return filepath.Join(l.Run(), "sock") }
func (l Layout) Admin() string  { return filepath.Join(l.Dir, "admin.sock") }
func (l Layout) PIDFile() string {
	return filepath.Join(l.Dir, "pid")
}
func (l Layout) Hook() string { return filepath.Join(l.Dir, "bin", "simgpu-cdi-hook") }

// libraries names the two libraries without suffixes.
var libraries = []string{"libcuda.so", "libnvidia-ml.so"}

// Write creates everything but the sockets. built holds the libraries as the
// build made them (libcuda.so.1, libnvidia-ml.so.1); self is the simgpu binary.
func (l Layout) Write(built, self string) error {
	for _, d := range []string{l.Lib(), l.Dev(), l.Run(), filepath.Join(l.Dir, "cdi"),
		filepath.Join(l.Dir, "cdi-hooks"), filepath.Dir(l.Hook())} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("create node directory: %w", err)
		}
		if err := os.Chmod(d, 0o755); err != nil { //nolint:gosec // tenants read it
			return fmt.Errorf("open node directory: %w", err)
		}
	}
	for _, name := range libraries {
		full := name + "." + l.Version
		if err := install(filepath.Join(built, name+".1"), filepath.Join(l.Lib(), full)); err != nil {
			return err
		}
		for _, link := range []string{name + ".1", name} {
			if err := symlink(full, filepath.Join(l.Lib(), link)); err != nil {
				return err
			}
		}
	}
	if err := symlink("../run/sock", filepath.Join(l.Lib(), "simgpu.sock")); err != nil {
		return err
	}
	if err := install(self, l.Hook()); err != nil {
		return err
	}
	if err := l.devices(); err != nil {
		return err
	}
	if err := l.specs(); err != nil {
		return err
	}
	return l.config()
}

// devices makes the character devices of a driver that is not loaded: what
// matters is whether a container has them, not what they do.
func (l Layout) devices() error {
	if os.Geteuid() != 0 {
		return nil
	}
	for name, minor := range l.deviceNodes() {
		path := filepath.Join(l.Dev(), name)
		major := uint32(195)
		if name == "nvidia-uvm" {
			major = 510
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("replace device node: %w", err)
		}
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(major, minor))); err != nil {
			return fmt.Errorf("make device node %s: %w", path, err)
		}
		if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // as the driver's own nodes
			return fmt.Errorf("open device node %s: %w", path, err)
		}
	}
	return nil
}

func (l Layout) deviceNodes() map[string]uint32 {
	m := map[string]uint32{"nvidiactl": 255, "nvidia-uvm": 0}
	for i := range l.UUIDs {
		m[fmt.Sprintf("nvidia%d", i)] = uint32(i)
	}
	return m
}

// config writes the lines that a gpushare configuration needs for this node.
func (l Layout) config() error {
	text := fmt.Sprintf(`# SIMULATED GPUs: lines for gpushare's config.toml
driver_cdi_spec = %q
nvml_library = %q
cuda_library = %q
extra_driver_mounts = [%q]
`, filepath.Join(l.Dir, "cdi", "nvidia.json"), filepath.Join(l.Lib(), "libnvidia-ml.so.1"),
		filepath.Join(l.Lib(), "libcuda.so.1"), l.Run()+":/run/simgpu")
	return writeFile(filepath.Join(l.Dir, "gpushare.toml"), []byte(text), 0o644)
}

// install copies a file into place by renaming, so that a running program
// never sees half of it.
func install(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("read %s: %w", from, err)
	}
	defer in.Close() //nolint:errcheck // read only
	b, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read %s: %w", from, err)
	}
	return writeFile(to, b, 0o755)
}

func writeFile(path string, b []byte, mode os.FileMode) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, b, mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Chmod(tmp, mode); err != nil {
		return fmt.Errorf("set mode of %s: %w", path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func symlink(target, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("replace link: %w", err)
	}
	if err := os.Symlink(target, path); err != nil {
		return fmt.Errorf("make link: %w", err)
	}
	return nil
}
