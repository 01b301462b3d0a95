// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"archive/tar"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// probePath is where the probe program is in its container.
const probePath = "/usr/bin/gpushare-probe"

// libraries are what the driver's libraries and ours are linked with. Newer C
// libraries have all but the first two inside.
var libraries = []string{"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}

// entry is one thing in the probe's root file system: a directory, a link to
// target, or a copy of the host's file from.
type entry struct {
	name, target, from string
	mode               fs.FileMode
}

// probeRoot lists the root file system of the probe's container: the probe and this
// host's own C library, nothing from a registry.
func probeRoot(probe string) ([]entry, error) {
	loader, err := interpreter(probe)
	if err != nil {
		return nil, err
	}
	all := []entry{}
	for _, d := range []string{"usr", "usr/bin", "usr/lib", "usr/lib64", "etc", "dev", "proc", "sys", "tmp", "run"} {
		all = append(all, entry{name: d, mode: 0o755})
	}
	for _, d := range []string{"bin", "lib", "lib64"} {
		all = append(all, entry{name: d, target: "usr/" + d})
	}
	all = append(all, entry{name: strings.TrimPrefix(probePath, "/"), from: probe, mode: 0o755})
	inUsr := func(p string) string {
		if strings.HasPrefix(p, "/usr/") {
			return p[1:]
		}
		return "usr" + p
	}
	have := map[string]bool{"usr/lib": true, "usr/lib64": true}
	add := func(host string) {
		name := inUsr(host)
		if dir := path.Dir(name); !have[dir] {
			all = append(all, entry{name: dir, mode: 0o755})
			have[dir] = true
		}
		all = append(all, entry{name: name, from: host, mode: 0o755})
	}
	add(loader)
	dir, err := libraryDir(probe)
	if err != nil {
		return nil, err
	}
	for _, l := range libraries {
		file := filepath.Join(dir, l)
		if _, err := os.Stat(file); err == nil {
			add(file)
		}
	}
	return all, nil
}

// interpreter is the loader that a program names.
func interpreter(program string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", fmt.Errorf("read the probe program %s: %w", program, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(p.Open(), 4096))
		if err != nil {
			return "", fmt.Errorf("read the probe program %s: %w", program, err)
		}
		return strings.TrimRight(string(text), "\x00"), nil
	}
	return "", fmt.Errorf("read the probe program %s: it names no loader", program)
}

// libraryDir is where the C library of the program's architecture is.
func libraryDir(program string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", fmt.Errorf("read the probe program %s: %w", program, err)
	}
	defer f.Close()
	triplet := map[elf.Machine]string{elf.EM_X86_64: "x86_64-linux-gnu", elf.EM_AARCH64: "aarch64-linux-gnu"}[f.Machine]
	for _, d := range []string{"/lib/" + triplet, "/usr/lib/" + triplet, "/lib64", "/usr/lib64", "/lib", "/usr/lib"} {
		lib, err := elf.Open(filepath.Join(d, libraries[0]))
		if err != nil {
			continue
		}
		fits := lib.Machine == f.Machine
		_ = lib.Close()
		if fits {
			return d, nil
		}
	}
	return "", errors.New("find this host's C library: no libc.so.6 of the probe's architecture")
}

// writeTar writes the root file system as an archive.
func writeTar(out io.Writer, all []entry) error {
	w := tar.NewWriter(out)
	for _, e := range all {
		h := &tar.Header{Name: e.name, Mode: int64(e.mode), Typeflag: tar.TypeDir}
		var data []byte
		switch {
		case e.target != "":
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.target, 0o777
		case e.from != "":
			var err error
			if data, err = os.ReadFile(e.from); err != nil {
				return fmt.Errorf("make the probe's image: %w", err)
			}
			h.Typeflag, h.Size = tar.TypeReg, int64(len(data))
		}
		if err := w.WriteHeader(h); err != nil {
			return fmt.Errorf("make the probe's image: %w", err)
		}
		if _, err := w.Write(data); err != nil {
			return fmt.Errorf("make the probe's image: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("make the probe's image: %w", err)
	}
	return nil
}

// writeDir writes the root file system into an empty directory.
func writeDir(dir string, all []entry) error {
	for _, e := range all {
		to := filepath.Join(dir, e.name)
		var err error
		switch {
		case e.target != "":
			err = os.Symlink(e.target, to)
		case e.from != "":
			var data []byte
			if data, err = os.ReadFile(e.from); err == nil {
				err = os.WriteFile(to, data, e.mode)
			}
		default:
			err = os.Mkdir(to, e.mode)
		}
		if err != nil {
			return fmt.Errorf("make the probe's root file system: %w", err)
		}
	}
	return nil
}
