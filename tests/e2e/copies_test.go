// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// The version that the node's driver reports, and that of the copy in an image.
const hostVersion, copyVersion = 12090, 13100

// An image that ships its own libcuda stays within its limit, whichever way its
// programs come to it, and with compat = "route" they see its version.
func TestImagesOwnLibcuda(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the driver with another version is made by changing one amd64 instruction")
	}
	n := up(t, node.Options{NoEngine: true})
	config, err := os.ReadFile(n.ConfigFile())
	if err != nil {
		t.Fatal(err)
	}
	newer := otherVersion(t, filepath.Join(root, "build/simgpu/lib/libcuda.so.1"))
	plain, runpath := build(t, n), build(t, n, "-Wl,-rpath,/opt/x")
	const compat = "/usr/local/cuda-13.1/compat"
	ways := []struct {
		name, dir, program string
		env                []string
		args               []string
		prepare            func(t *testing.T, rootfs string)
	}{
		{"LD_LIBRARY_PATH", "/opt/x", plain, []string{"LD_LIBRARY_PATH=/opt/x"}, []string{"/program", "libcuda.so.1"}, nil},
		{"LD_LIBRARY_PATH, by the full name", "/opt/x", plain, []string{"LD_LIBRARY_PATH=/opt/x"}, []string{"/program", "/opt/x/libcuda.so.1000.10"}, nil},
		{"run path", "/opt/x", runpath, nil, []string{"/program", "libcuda.so.1"}, nil},
		{"ld.so.cache", "/opt/x", plain, nil, []string{"/program", "libcuda.so.1"}, func(t *testing.T, rootfs string) {
			if err := os.WriteFile(filepath.Join(rootfs, "etc/ld.so.conf"), []byte("/opt/x\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if r := node.Run(within(t), []string{"PATH=/usr/sbin:/sbin:/usr/bin:/bin"}, "ldconfig", "-r", rootfs); r.Err != nil {
				t.Fatal(r.Err)
			}
		}},
		{"ld.so.cache, absolute", "/opt/x", plain, []string{"LD_LIBRARY_PATH=/opt/x"}, []string{"/program", "/opt/x/libcuda.so.1"}, nil},
		{"compat directory", compat, plain, nil, []string{"/program", "libcuda.so.1"}, nil},
		{"compat directory, absolute", compat, plain, nil, []string{"/program", compat + "/libcuda.so.1"}, nil},
		{"compat directory, LD_LIBRARY_PATH through a link", compat, plain, []string{"LD_LIBRARY_PATH=/usr/local/cuda/compat"}, []string{"/program", "libcuda.so.1"}, func(t *testing.T, rootfs string) {
			if err := os.Symlink("cuda-13.1", filepath.Join(rootfs, "usr/local/cuda")); err != nil {
				t.Fatal(err)
			}
		}},
		{"LD_PRELOAD", "/opt/x", plain, []string{"LD_PRELOAD=/opt/x/libcuda.so.1"}, []string{"/program", "libcuda.so.1"}, nil},
		{"ld.so.preload", "/opt/x", plain, nil, []string{"/program", "libcuda.so.1"}, func(t *testing.T, rootfs string) {
			if err := os.WriteFile(filepath.Join(rootfs, "etc/ld.so.preload"), []byte("/opt/x/libcuda.so.1000.10\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}},
		{"no environment", "/opt/x", plain, []string{"LD_LIBRARY_PATH=/opt/x"}, []string{"/usr/bin/env", "-i", "/program", "/opt/x/libcuda.so.1"}, nil},
	}
	for i, way := range ways {
		for policy, version := range map[string]int{"route": copyVersion, "host": hostVersion} {
			t.Run(way.name+"/"+policy, func(t *testing.T) {
				if err := os.WriteFile(n.ConfigFile(), append([]byte(fmt.Sprintf("compat = %q\n", policy)), config...), 0o644); err != nil {
					t.Fatal(err)
				}
				rootfs := ownImage(t, n, newer, way.dir, way.program)
				if way.prepare != nil {
					way.prepare(t, rootfs)
				}
				id := fmt.Sprintf("own%d%s", i, policy)
				b, err := n.NewBundle(within(t), id, node.Spec{Rootfs: rootfs, Args: way.args, Env: append(way.env, "GPUSHARE_MEMORY=1Gi")})
				if err != nil {
					t.Fatal(err)
				}
				r := b.Run(within(t))
				if r.Err != nil || !strings.HasPrefix(r.Stdout, fmt.Sprintf("version %d last 2 ", version)) || r.Stderr != "" {
					t.Errorf("%v: stdout %q, stderr %q, want version %d and out of memory", r.Err, r.Stdout, r.Stderr, version)
				}
				a, err := n.Account(within(t), id)
				if err != nil {
					t.Fatal(err)
				}
				if a.HighWaterBytes > gib || a.HighWaterBytes < gib-1024 {
					t.Errorf("by the simulator's account at most %d in use, limit %d", a.HighWaterBytes, gib)
				}
			})
		}
	}
}

// otherVersion makes a driver that reports copyVersion, and is the same otherwise.
func otherVersion(t *testing.T, library string) []byte {
	t.Helper()
	data, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	store := func(version int) []byte {
		return []byte{0xc7, 0x07, byte(version), byte(version >> 8), 0, 0} // movl $version, (%rdi)
	}
	if bytes.Count(data, store(hostVersion)) != 1 {
		t.Fatalf("%s does not store its version in one place", library)
	}
	return bytes.Replace(data, store(hostVersion), store(copyVersion), 1)
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
