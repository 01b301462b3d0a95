// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What a runtime library hands out of the driver is ours: case INJ-05. By linking,
// handle, RTLD_DEFAULT, RTLD_NEXT, dlvsym, RTLD_DEEPBIND, path and dlmopen: TestWays;
// by cuGetProcAddress at every version and flag: TestLookups. Each of them tries every
// name that has a wrapper.
func TestEntryPointsINJ05(t *testing.T) {
	if sanitized() {
		t.Skip("the runtime library is not built with sanitizers")
	}
	if out, err := exec.Command("make", "-s", "-C", filepath.Join(root(t), "tests/clients/cudart")).CombinedOutput(); err != nil {
		t.Fatalf("build the runtime library: %v\n%s", err, out)
	}
	n := simulate(t)
	c := n.container(1024 * mib)
	has := exported(t, c.driver)
	var lines []string
	hooks := 0
	for _, name := range tabled(t, "cuda.def", "HOOK") {
		if slices.Contains(has, name) {
			hooks++
			lines = append(lines, "+"+name)
		}
	}
	version := regexp.MustCompile(`(_v\d+)?(_pt[sd][zs])?$`)
	for _, name := range has {
		if base := "." + version.ReplaceAllString(name, ""); !slices.Contains(lines, base) {
			lines = append(lines, base)
		}
	}
	program := compile(t, "entry.c")
	for _, major := range []string{"12", "13"} {
		out := c.ask(lines, program, filepath.Join(root(t), "build/tests/cudart/libcudart.so."+major))
		var names, answers, ours, failures int
		if _, err := fmt.Sscanf(out, "%d names, %d answers, %d ours, %d failures\n", &names, &answers, &ours, &failures); err != nil || ours < hooks || failures > 0 {
			t.Errorf("runtime %s, %d wrappers: %v\n%s", major, hooks, err, out)
		}
		t.Logf("runtime %s: %s", major, out)
	}
}

// Two copies of the library in a process, in a namespace apart or from another file,
// have two slots and one limit. The other file has a name and place of no
// meaning: case CRASH-02, whose other half is TestWays.
func TestTwoCopies(t *testing.T) {
	if sanitized() {
		t.Skip("the sanitizers do not stand a second copy")
	}
	other := filepath.Join(t.TempDir(), "some-library.so")
	text, err := os.ReadFile(filepath.Join(libraries(t), "libcuda.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, text, 0o755); err != nil {
		t.Fatal(err)
	}
	n := simulate(t)
	program := compile(t, "copies.c")
	for _, how := range []string{"namespace", other} {
		c := n.container(512 * mib)
		if out, err := c.run(program, how); err != nil || out != "" {
			t.Errorf("%s: %v\n%s", how, err, out)
		}
		waitFor(t, "all bytes to come back", func() bool { return n.gpu().Used == 0 })
		if high := n.gpu().High; high > 512*mib {
			t.Errorf("the simulator held %d bytes over the limit", high-512*mib)
		}
	}
}

// Functions that are looked for at odd moments: from constructors that run before ours
// and from an IFUNC resolver, with the room for thread-local variables used up to the
// last hundred bytes (HANG-06), and by a function that looks for the next of its own
// name (HANG-04). Nobody spins.
func TestOddMomentsHANG04HANG06(t *testing.T) {
	if sanitized() {
		t.Skip("the sanitizers' library must come first")
	}
	dir := t.TempDir()
	plugin := compile(t, "early.c", "-DPLUGIN", "-fPIC", "-shared", "-Wl,-soname,libearly.so")
	if err := os.Rename(plugin, filepath.Join(dir, "libearly.so")); err != nil {
		t.Fatal(err)
	}
	program := compile(t, "early.c", filepath.Join(libraries(t), "libcuda.so.1"), filepath.Join(dir, "libearly.so"),
		"-Wl,-rpath,"+dir, "-Wl,--allow-shlib-undefined", "-Wl,-z,lazy")
	c := newContainer(t, standInLimit())
	c.driver = standIn(t)
	out, err := c.run(program)
	if want := "early 0 3 3\nresolved 5\ntool 0\ninit 0\nalloc 0\n"; err != nil || out != want {
		t.Errorf("%v, output %q, want %q", err, out, want)
	}
	// Rooms of 64 bytes until there is none, then ours comes by dlopen.
	var rooms []string
	room := compile(t, "early.c", "-DROOM=64", "-fPIC", "-shared")
	text, err := os.ReadFile(room)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 64 {
		rooms = append(rooms, filepath.Join(dir, fmt.Sprintf("room%d.so", i)))
		if err := os.WriteFile(rooms[i], text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	late := compile(t, "rooms.c")
	out, err = c.run(late, append([]string{"64"}, rooms...)...)
	if err != nil || !strings.HasSuffix(out, "init 0\n") {
		t.Errorf("with the room used up: %v, output %q", err, out)
	}
	t.Log(out)
}

// The driver asks for its own start by name and by cuGetProcAddress, and NVML's starts
// call each other through us: HANG-08 and HANG-09.
func TestDriverLooksItselfUpHANG08HANG09(t *testing.T) {
	c := newContainer(t, standInLimit())
	c.driver = standIn(t)
	for _, how := range []string{"dlsym", "proc"} {
		c.env = []string{"FAKE_REENTERS=" + how}
		out, err := c.run(compile(t, "tenant.c"), "init", "fill=1048576", "try-init")
		if want := "fill 968884224\ntry-init 0\n"; err != nil || out != want {
			t.Errorf("%s: %v, output %q", how, err, out)
		}
	}
	lib := filepath.Join(t.TempDir(), "standin.so")
	cmd := exec.Command("gcc", "-xc", "-O0", "-fPIC", "-fplt", "-shared", "-Wl,-soname,libnvidia-ml.so.1", "-o", lib, "-")
	cmd.Stdin = strings.NewReader(`
int depth;
int nvmlInitWithFlags(unsigned f);
int nvmlInit_v2(void) { return depth++ ? 0 : nvmlInitWithFlags(0); }
int nvmlInitWithFlags(unsigned f) { return depth++ ? (int)f : nvmlInit_v2(); }
int nvmlInit(void) { depth = 0; return nvmlInit_v2(); }
int nvmlShutdown(void) { depth = 0; return 0; }
int nvmlSystemGetDriverVersion(void) { return 0; }
`)
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("stand-in: %v\n%s", err, msg)
	}
	c = newContainer(t, standInLimit())
	c.nvml = lib
	if out, err := c.run(compile(t, "starts.c")); err != nil || out != "0 0 0\n" {
		t.Errorf("NVML: %v, output %q", err, out)
	}
}
