// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/simgpu/api"
	"github.com/gpushare/gpushare/tests/node"
)

// ownWay is one in which an image brings a libcuda of its own.
type ownWay struct {
	name, dir string
	// runpath: the program itself has the copy's directory in it.
	runpath bool
	env     []string
	args    []string
	prepare func(t *testing.T, rootfs string)
	// few: one of those that are tried with every engine, also by `make test`.
	few bool
}

const compatDir = "/usr/local/cuda-13.1/compat"

var ownWays = []ownWay{
	{name: "LD_LIBRARY_PATH", dir: "/opt/x", env: []string{"LD_LIBRARY_PATH=/opt/x"}, args: []string{"/program", "libcuda.so.1"}, few: true},
	{name: "LD_LIBRARY_PATH, by the full name", dir: "/opt/x", env: []string{"LD_LIBRARY_PATH=/opt/x"}, args: []string{"/program", "/opt/x/libcuda.so.1000.10"}},
	{name: "run path", dir: "/opt/x", runpath: true, args: []string{"/program", "libcuda.so.1"}},
	{name: "ld.so.cache", dir: "/opt/x", args: []string{"/program", "libcuda.so.1"}, few: true, prepare: func(t *testing.T, rootfs string) {
		if err := os.WriteFile(filepath.Join(rootfs, "etc/ld.so.conf"), []byte("/opt/x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if r := node.Run(within(t), []string{"PATH=/usr/sbin:/sbin:/usr/bin:/bin"}, "ldconfig", "-r", rootfs); r.Err != nil {
			t.Fatal(r.Err)
		}
	}},
	{name: "ld.so.cache, absolute", dir: "/opt/x", env: []string{"LD_LIBRARY_PATH=/opt/x"}, args: []string{"/program", "/opt/x/libcuda.so.1"}},
	{name: "compat directory", dir: compatDir, args: []string{"/program", "libcuda.so.1"}, few: true},
	{name: "compat directory, absolute", dir: compatDir, args: []string{"/program", compatDir + "/libcuda.so.1"}},
	{name: "compat directory, LD_LIBRARY_PATH through a link", dir: compatDir, env: []string{"LD_LIBRARY_PATH=/usr/local/cuda/compat"}, args: []string{"/program", "libcuda.so.1"}, prepare: func(t *testing.T, rootfs string) {
		if err := os.Symlink("cuda-13.1", filepath.Join(rootfs, "usr/local/cuda")); err != nil {
			t.Fatal(err)
		}
	}},
	{name: "LD_PRELOAD", dir: "/opt/x", env: []string{"LD_PRELOAD=/opt/x/libcuda.so.1"}, args: []string{"/program", "libcuda.so.1"}},
	{name: "ld.so.preload", dir: "/opt/x", args: []string{"/program", "libcuda.so.1"}, prepare: func(t *testing.T, rootfs string) {
		if err := os.WriteFile(filepath.Join(rootfs, "etc/ld.so.preload"), []byte("/opt/x/libcuda.so.1000.10\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}},
	{name: "no environment", dir: "/opt/x", env: []string{"LD_LIBRARY_PATH=/opt/x"}, args: []string{"/usr/bin/env", "-i", "/program", "/opt/x/libcuda.so.1"}},
}

// An image that ships its own libcuda stays within its limit, whichever way its
// programs come to it, and with compat = "route" they see its version.
func TestImagesOwnLibcuda(t *testing.T) {
	ownLibcuda(t, up(t, node.Options{NoEngine: true}), []string{"runc"}, ownWays)
}

// The same under the engines that people have. All ways with all of them take
// four minutes, and are for `make test-engines`.
func TestImagesOwnLibcudaByEngine(t *testing.T) {
	generations(t, node.Options{}, func(t *testing.T, n *node.Node) {
		ownLibcuda(t, n, []string{"docker", "ctr", "shim"}, fewOrAll())
	})
}

// fewOrAll are the ways that are tried with every engine.
func fewOrAll() []ownWay {
	if *everyEngine {
		return ownWays
	}
	return slices.DeleteFunc(slices.Clone(ownWays), func(w ownWay) bool { return !w.few })
}

func ownLibcuda(t *testing.T, n *node.Node, engines []string, ways []ownWay) {
	config, err := os.ReadFile(n.ConfigFile())
	if err != nil {
		t.Fatal(err)
	}
	newer := otherVersion(t)
	programs := map[bool]string{false: build(t, n), true: build(t, n, "-Wl,-rpath,/opt/x")}
	for _, w := range ways {
		rootfs := ownImage(t, n, newer, w.dir, programs[w.runpath])
		if w.prepare != nil {
			w.prepare(t, rootfs)
		}
		for _, name := range engines {
			t.Run(w.name+"/"+name, func(t *testing.T) {
				run := imageOf(t, n, name, rootfs)
				for policy, version := range map[string]int{"route": otherDriver(t).CUDA, "host": api.Default.CUDA} {
					if err := os.WriteFile(n.ConfigFile(), append([]byte(fmt.Sprintf("compat = %q\n", policy)), config...), 0o644); err != nil {
						t.Fatal(err)
					}
					id, r := run(t, program{env: append(w.env, "GPUSHARE_MEMORY=1Gi"), args: w.args})
					if r.Err != nil || !strings.HasPrefix(r.Stdout, fmt.Sprintf("version %d last 2 ", version)) || r.Stderr != "" {
						t.Errorf("%s: %v: stdout %q, stderr %q, want version %d and out of memory", policy, r.Err, r.Stdout, r.Stderr, version)
					}
					a, err := n.Account(within(t), id)
					if err != nil {
						t.Fatal(err)
					}
					if a.HighWaterBytes > gib || a.HighWaterBytes < gib-1024 {
						t.Errorf("%s: by the simulator's account at most %d in use, limit %d", policy, a.HighWaterBytes, gib)
					}
				}
			})
		}
	}
}

// otherVersion is the libcuda of another driver than the node's.
func otherVersion(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(otherDriver(t).LibDir(filepath.Join(root, "build/simgpu/lib")), "libcuda.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// otherDriver is a newer one than the node's.
func otherDriver(t *testing.T) api.Driver {
	t.Helper()
	d, err := api.FindDriver("580")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// build compiles the program of these tests.
func build(t *testing.T, n *node.Node, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	args := append([]string{"-w", "-O1", "-o", out, "testdata/own_libcuda.c", "-ldl"}, flags...)
	if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("compile: %v: %s", err, text)
	}
	return out
}

// ownImage is a copy of the small image with the library in dir, under its full
// name and its SONAME, and the program.
func ownImage(t *testing.T, n *node.Node, library []byte, dir, program string) string {
	t.Helper()
	rootfs := filepath.Join(t.TempDir(), "rootfs")
	if r := node.Run(within(t), nil, "cp", "-a", image(n), rootfs); r.Err != nil {
		t.Fatal(r.Err)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(rootfs, dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{filepath.Join(dir, "libcuda.so.1000.10"): library, filepath.Join(rootfs, "program"): data} {
		if err := os.WriteFile(name, text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("libcuda.so.1000.10", filepath.Join(dir, "libcuda.so.1")); err != nil {
		t.Fatal(err)
	}
	return rootfs
}
