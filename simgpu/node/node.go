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
	"slices"
	"strings"

	"github.com/gpushare/gpushare/simgpu/api"
)

// Layout is where the parts of a node lie.
type Layout struct {
	Dir     string // absolute
	Version string // of the driver, part of the library names
	GPUs    []GPU
	Absent  []string // names that the libraries do not export
}

// GPU is what the node's files say of a device.
type GPU struct {
	UUID, Model, VBIOS string
	BusID              string // 0000:1a:00.0
	MIG                bool   // the card can be partitioned
	Instances          []MIGInstance
}

// MIGInstance is a compute instance of a partitioned GPU.
type MIGInstance struct {
	UUID     string // MIG-…
	Shape    string // 1g.10gb
	Instance int    // number of its GPU instance
	Compute  int    // its own number in that
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
// containers is false if there are no device nodes, for want of the right to make
// them, and so no CDI specification.
func (l Layout) Write(built, self string) (containers bool, err error) {
	for _, d := range []string{l.Lib(), l.Dev(), l.Run(), filepath.Dir(l.Hook())} {
		if err := makeDir(d); err != nil {
			return false, err
		}
	}
	if err := l.libraries(built); err != nil {
		return false, err
	}
	if err := install(self, l.Hook()); err != nil {
		return false, err
	}
	if err := l.proc(); err != nil {
		return false, err
	}
	if containers, err = l.devices(); err != nil {
		return false, err
	}
	if err := l.specs(containers); err != nil {
		return false, err
	}
	return containers, l.config()
}

// libraries lays the driver's libraries out as an installation has them, and as a
// driver root, where NVIDIA's tools look for usr/lib64.
func (l Layout) libraries(built string) error {
	for _, name := range libraries {
		full := name + "." + l.Version
		if err := l.installLibrary(filepath.Join(built, name+".1"), filepath.Join(l.Lib(), full)); err != nil {
			return err
		}
		if err := removeOthers(l.Lib(), name+".[0-9]*.*", full); err != nil { // of another release
			return err
		}
		if err := symlink(full, filepath.Join(l.Lib(), name+".1")); err != nil {
			return err
		}
		if err := symlink(name+".1", filepath.Join(l.Lib(), name)); err != nil {
			return err
		}
	}
	if err := l.timeLibrary(built); err != nil {
		return err
	}
	if err := symlink("../run/sock", filepath.Join(l.Lib(), "simgpu.sock")); err != nil {
		return err
	}
	if err := makeDir(filepath.Join(l.Dir, "usr", "lib")); err != nil {
		return err
	}
	if err := symlink("../lib", filepath.Join(l.Dir, "usr", "lib64")); err != nil {
		return err
	}
	return symlink("../../lib", filepath.Join(l.Dir, "usr", "lib", "x86_64-linux-gnu"))
}

// timeLibrary puts the library that gives programs a virtual clock beside the
// driver's. It is the same for all drivers, whose libraries may lie in a
// directory below. A container does not get it; a build without it does without.
func (l Layout) timeLibrary(built string) error {
	const name = "libsimgpu-time.so"
	for _, dir := range []string{built, filepath.Dir(built)} {
		err := install(filepath.Join(dir, name), filepath.Join(l.Lib(), name))
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// installLibrary installs a library without the names that it is to lack.
func (l Layout) installLibrary(from, to string) error {
	if len(l.Absent) == 0 {
		return install(from, to)
	}
	b, err := os.ReadFile(from) //nolint:gosec // our own build
	if err != nil {
		return fmt.Errorf("read %s: %w", from, err)
	}
	if b, err = api.Hide(b, l.Absent); err != nil {
		return fmt.Errorf("take names out of %s: %w", from, err)
	}
	return writeFile(to, b, 0o755)
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

// makeDir makes a directory that tenants can read.
func makeDir(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil { //nolint:gosec // tenants read it
		return fmt.Errorf("create node directory: %w", err)
	}
	if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // likewise
		return fmt.Errorf("open node directory: %w", err)
	}
	return nil
}

// removeOthers removes what a node of before has left: the files of dir that
// match pattern and are not in keep.
func removeOthers(dir, pattern string, keep ...string) error {
	found, err := filepath.Glob(filepath.Join(escape(dir), pattern))
	if err != nil {
		return fmt.Errorf("look for old files: %w", err)
	}
	for _, path := range found {
		if slices.Contains(keep, filepath.Base(path)) {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove old file: %w", err)
		}
	}
	return nil
}

// escape makes a pattern that matches the path and nothing else.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
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
