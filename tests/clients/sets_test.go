// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build clients

package clients

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gpushare/gpushare/tests/node"
)

// set is a directory of packages and the interpreter that they are for.
type set struct {
	wheels string
	// python is an interpreter of this machine; empty: the image's own, CPython 3.11.
	python string
	// missing says why none of it can be run here.
	missing string
}

// missing is why a client cannot be run on this machine.
type missing struct{ what string }

func (m missing) Error() string { return m.what }

// newSet puts a set of packages together.
func newSet(ctx context.Context, root, name string) (set, error) {
	s := set{wheels: filepath.Join(root, ".cache", name)}
	if name != "clients" {
		s.wheels = filepath.Join(root, ".cache/clients-"+name)
	}
	if name == torch102 {
		if s.python = python310(ctx); s.python == "" {
			s.missing = "no CPython 3.10 is on this machine (searched for python3.10 in PATH and in pyenv's versions)"
			return s, nil
		}
	}
	if name == torch {
		if r := node.Run(ctx, nil, "make", "-s", "-C", filepath.Join(root, "tests/clients/cudart")); r.Err != nil {
			return s, r.Err
		}
	}
	return s, node.Run(ctx, nil, filepath.Join(root, "tests/setup/wheels.sh"), name, s.wheels).Err
}

// newTool puts a tool together and returns its directory and its path in there.
func newTool(ctx context.Context, root, name string) (dir, path string, err error) {
	if name == nvcc {
		r := node.Run(ctx, nil, "make", "-s", "-C", filepath.Join(root, "tests/clients/nvcc"))
		return filepath.Join(root, "build/tests/nvcc"), "", r.Err
	}
	dir = filepath.Join(root, ".cache", name)
	r := node.Run(ctx, nil, filepath.Join(root, "tests/setup/nonfree.sh"), dir, "bookworm", name)
	if r.Code == 77 {
		return "", "", missing{strings.TrimSpace(r.Stderr)}
	}
	return filepath.Join(dir, "root/usr/lib/nvidia/current"), name, r.Err
}

// python310 finds a CPython 3.10, which Debian 12 has no package of.
func python310(ctx context.Context) string {
	candidates := []string{"python3.10"}
	home, _ := os.UserHomeDir()
	for _, dir := range []string{os.Getenv("PYENV_ROOT"), filepath.Join(home, ".pyenv")} {
		found, _ := filepath.Glob(filepath.Join(dir, "versions/3.10.*/bin/python3.10"))
		candidates = append(candidates, found...)
	}
	for _, c := range candidates {
		out, err := exec.CommandContext(ctx, c, "-c", "import sys; print(sys.version_info[:2] == (3, 10) and sys.executable)").Output()
		if path := strings.TrimSpace(string(out)); err == nil && filepath.IsAbs(path) {
			return path
		}
	}
	return ""
}

// prefix is the directory that the interpreter was installed into.
func (s set) prefix() string { return filepath.Dir(filepath.Dir(s.python)) }

// bare returns the command of the interpreter and its environment on the host: that of
// the container's image under its own loader, whatever the host has, or s.python. The
// packages are a user's own, below base.
func (s set) bare(image, driver, base string) (argv, env []string, err error) {
	if s.python != "" {
		return []string{s.python}, []string{"LD_LIBRARY_PATH=" + driver, "PYTHONPATH=" + s.wheels}, nil
	}
	site := filepath.Join(base, "lib/python3.11/site-packages")
	if err := os.MkdirAll(filepath.Dir(site), 0o755); err != nil {
		return nil, nil, err
	}
	if err := os.Symlink(s.wheels, site); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, nil, err
	}
	libs := filepath.Join(image, "usr/lib/x86_64-linux-gnu")
	return []string{filepath.Join(libs, "ld-linux-x86-64.so.2"), "--library-path", libs + ":" + driver,
			filepath.Join(image, "usr/bin/python3.11")},
		[]string{"LD_LIBRARY_PATH=" + driver, "PYTHONHOME=" + filepath.Join(image, "usr"), "PYTHONUSERBASE=" + base,
			"CPATH=" + filepath.Join(image, "usr/include/python3.11") + ":" + filepath.Join(image, "usr/include/x86_64-linux-gnu")}, nil
}

// inside returns the interpreter and the place of the packages in a container.
func (s set) inside() (interpreter, wheels string) {
	if s.python != "" {
		return "/opt/python/bin/" + filepath.Base(s.python), "/wheels"
	}
	return "python3", "/usr/local/lib/python3.11/dist-packages"
}
