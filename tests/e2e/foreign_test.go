// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// outcome is what becomes of a container with such settings.
type outcome int

const (
	runs    outcome = iota
	preload         // runs, and the code runs in it, where it may
	refusal         // is refused by us
	breaks          // its own programs cannot load
)

// steering are settings of an image that make a program which believes them run
// the image's code. The hooks run as root of the host, with the image's root file
// system as their working directory.
var steering = []struct {
	name string
	env  []string
	cwd  string
	want outcome
	// few: one of those that are tried with every engine, also by `make test`.
	few bool
}{
	{"LD_PRELOAD, working directory", []string{"LD_PRELOAD=/proc/self/cwd/foreign.so"}, "", refusal, true},
	{"LD_PRELOAD, relative", []string{"LD_PRELOAD=./foreign.so"}, "", preload, true},
	{"LD_PRELOAD, absolute", []string{"LD_PRELOAD=/foreign.so"}, "", preload, false},
	{"LD_PRELOAD, other root", []string{"LD_PRELOAD=/proc/self/root/foreign.so /proc/1/cwd/foreign.so"}, "", refusal, false},
	{"LD_AUDIT, working directory", []string{"LD_AUDIT=/proc/self/cwd/foreign.so"}, "", runs, false},
	{"LD_AUDIT, relative", []string{"LD_AUDIT=./foreign.so"}, "", runs, true},
	{"LD_LIBRARY_PATH, working directory", []string{"LD_LIBRARY_PATH=/proc/self/cwd/lib-foreign"}, "", refusal, true},
	{"LD_LIBRARY_PATH, relative", []string{"LD_LIBRARY_PATH=lib-foreign:."}, "", breaks, false},
	{"LD_LIBRARY_PATH, empty parts", []string{"LD_LIBRARY_PATH=::"}, "/lib-foreign", breaks, false},
	{"PATH, working directory", []string{"PATH=/proc/self/cwd/bin-foreign:./bin-foreign:bin-foreign:/usr/bin"}, "", runs, false},
	{"PATH, first", []string{"PATH=/bin-foreign:/usr/bin"}, "/bin-foreign", runs, true},
	{"words to libraries and shells", []string{"GCONV_PATH=./lib-foreign", "BASH_ENV=./bin-foreign/runc", "ENV=./bin-foreign/runc",
		"GLIBC_TUNABLES=glibc.malloc.check=3", "GODEBUG=inittrace=1", "GOCOVERDIR=.", "GOTRACEBACK=crash", "LD_DEBUG=all", "LD_DEBUG_OUTPUT=./out",
		"LD_ORIGIN_PATH=.", "LD_PROFILE=libc.so.6", "LD_BIND_NOW=1", "MALLOC_TRACE=./out", "NIX_LD=./bin-foreign/runc"}, "", runs, false},
	{"words to runtimes", []string{"_LIBCONTAINER_INITPIPE=3", "LISTEN_FDS=64", "NVIDIA_CTK_CONFIG_FILE_PATH=./config.toml", "XDG_RUNTIME_DIR=.",
		"XDG_CONFIG_HOME=.", "CONTAINER_HOST=unix://./x", "HOME=.", "TMPDIR=.", "DOCKER_HOST=unix://./x"}, "", runs, false},
	{"everything at once", []string{"LD_PRELOAD=./foreign.so", "LD_AUDIT=./foreign.so", "LD_LIBRARY_PATH=lib-foreign", "PATH=bin-foreign:/usr/bin"}, "/bin-foreign", runs, true},
}

// Whatever an image's settings say, none of its code runs outside of its
// container: not in the hooks, ours and the driver's, not in the wrapper, not in
// the low-level runtime before it has gone into the container.
func TestForeignCode(t *testing.T) {
	// The form of the driver's specification that has hooks of its own.
	generations(t, node.Options{CDIHooks: true}, func(t *testing.T, n *node.Node) {
		foreignCode(t, n, []string{"runc", "docker", "ctr", "shim"})
	})
}

func foreignCode(t *testing.T, n *node.Node, engines []string) {
	marks := filepath.Join(n.Dir, "marks")
	if err := os.Mkdir(marks, 0o777); err != nil {
		t.Fatal(err)
	}
	rootfs := foreignImage(t, n, marks)
	for _, name := range engines {
		t.Run(name, func(t *testing.T) {
			run := imageOf(t, n, name, rootfs)
			for _, s := range steering {
				if name != "runc" && !s.few && !*everyEngine {
					continue
				}
				t.Run(s.name, func(t *testing.T) {
					_, r := run(t, program{env: append(s.env, "GPUSHARE_MEMORY=1Gi"), cwd: s.cwd, args: []string{"/usr/bin/alloc", "--take", "1MiB"}})
					unmarked(t, marks)
					ran := strings.Contains(r.Stdout, "took 1048576 bytes")
					said := strings.Contains(r.Stderr, "foreign\n")
					ours := code.MatchString(r.Stderr)
					if ran != (s.want == runs || s.want == preload) || said != (s.want == preload) || ours != (s.want == refusal) {
						t.Errorf("stdout %q, stderr %q", r.Stdout, r.Stderr)
					}
				})
			}
		})
	}
	t.Run("the test itself", func(t *testing.T) { foreignNoticed(t, n, rootfs, marks) })
}

// unmarked fails the test if the image's code ran on the host.
func unmarked(t *testing.T, marks string) {
	t.Helper()
	found, err := os.ReadDir(marks)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		line, _ := os.ReadFile(filepath.Join(marks, e.Name()))
		t.Errorf("code of the image ran on the host, in %q", strings.ReplaceAll(string(line), "\x00", " "))
		_ = os.Remove(filepath.Join(marks, e.Name()))
	}
}

// foreignImage is the small image with the code under every name that something
// might look for.
func foreignImage(t *testing.T, n *node.Node, marks string) string {
	t.Helper()
	rootfs := filepath.Join(t.TempDir(), "rootfs")
	if r := node.Run(within(t), nil, "cp", "-a", image(n), rootfs); r.Err != nil {
		t.Fatal(r.Err)
	}
	compile := func(out string, flags ...string) []byte {
		t.Helper()
		out = filepath.Join(t.TempDir(), out)
		args := append([]string{"-w", "-O1", "-DMARKS=\"" + marks + "\"", "-o", out, "testdata/foreign.c"}, flags...)
		if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("compile: %v: %s", err, text)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	library, executable := compile("library", "-shared", "-fPIC"), compile("program", "-DPROGRAM", "-static")
	put := func(data []byte, names ...string) {
		t.Helper()
		for _, name := range names {
			name = filepath.Join(rootfs, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, data, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(library, "foreign.so", "lib-foreign/libc.so.6", "lib-foreign/libdl.so.2", "lib-foreign/libseccomp.so.2", "lib-foreign/UTF-16.so")
	for _, name := range []string{"runc", "crun", "ldconfig", "gpushare-hook", "gpushare-runtime", "simgpu-cdi-hook", "nvidia-cdi-hook",
		"containerd-shim-runc-v2", "containerd-shim-gpushare-v1", "sh", "mount", "modprobe", "nvidia-modprobe", "newuidmap", "newgidmap", "criu"} {
		put(executable, "bin-foreign/"+name)
	}
	return rootfs
}

// foreignNoticed shows that the code would be seen: a hook whose environment is
// the image's runs it.
func foreignNoticed(t *testing.T, n *node.Node, rootfs, marks string) {
	for i, hook := range []struct {
		env  string
		args []string
		// inRoot: it needs runc, whose hooks begin in the image's root.
		inRoot bool
	}{
		{"LD_PRELOAD=ROOTFS/foreign.so", []string{"/bin/true"}, false},
		{"LD_PRELOAD=./foreign.so", []string{"/bin/true"}, true},
		{"LD_PRELOAD=/proc/self/cwd/foreign.so", []string{"/bin/true"}, true},
		{"LD_AUDIT=./foreign.so", []string{"/bin/true"}, true},
		{"PATH=./bin-foreign", []string{"/bin/sh", "-c", "ldconfig"}, true},
	} {
		if hook.inRoot && filepath.Base(n.LowLevel()) != "runc" {
			continue
		}
		id := fmt.Sprintf("naive%d", i)
		b, err := n.NewBundle(within(t), id, node.Spec{Rootfs: rootfs, Args: []string{"/usr/bin/true"}, Edit: func(spec map[string]any) {
			env := strings.Replace(hook.env, "ROOTFS", filepath.Join(n.Dir, "bundles", id, "rootfs"), 1)
			spec["hooks"] = map[string]any{"createContainer": []any{map[string]any{"path": hook.args[0], "args": hook.args, "env": []string{env}}}}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if r := node.Run(within(t), nil, n.Command(within(t), n.LowLevel(), "run", "--bundle", b.Dir, b.ID).Args...); r.Err != nil {
			t.Fatal(r.Err)
		}
		found, err := os.ReadDir(marks)
		if err != nil || len(found) == 0 {
			t.Errorf("a hook that believes %s left no mark (%v): the cases above prove nothing", hook.env, err)
		}
		for _, f := range found {
			_ = os.Remove(filepath.Join(marks, f.Name()))
		}
	}
}
