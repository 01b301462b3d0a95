// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/limiter/region"
	"github.com/gpushare/gpushare/tests/symbols"
)

// tabled returns the names of a table's rows of the given kinds.
func tabled(t *testing.T, table, kinds string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "cuda-intercept/hooks", table))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^(?:`+kinds+`)\(\w+, (\w+),`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	if len(names) == 0 {
		t.Fatalf("%s has no %s", table, kinds)
	}
	return names
}

// exported returns the functions that a library exports.
func exported(t *testing.T, path string) []string {
	t.Helper()
	names, err := symbols.Exported(path, true)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// ask runs a program in the container that reads names from its standard input.
func (c *container) ask(names []string, program string, args ...string) string {
	c.t.Helper()
	cmd := c.command(c.t.Context(), program, args...)
	cmd.Stdin = strings.NewReader(strings.Join(names, "\n"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Errorf("%s: %v\n%s", filepath.Base(program), err, out)
	}
	return string(out)
}

// changing returns NVML's names that by their verb change the state of a device,
// a system or a unit, from the list of exported names and not from the table.
func changing(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "simgpu/api/nvml.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	verb := regexp.MustCompile(`(?m)^nvml\w*?(Set[A-Z]|Setup|Reset|Clear|Create|Destroy|Remove|Modify|Freeze|Discover|LockNv|Update|Activate|ReadWrite|Force|CPER)\w*`)
	// Those that ask, and those that act on the program's own objects and threads.
	harmless := regexp.MustCompile(`Get[A-Z]\w*(Creat|Update|Reset|Clear)|EventSet|Get\w*EventSet|CpuAffinity$|GetCreatable|GetVgpuTypeCreatable`)
	var names []string
	for _, name := range verb.FindAllString(string(text), -1) {
		if !harmless.MatchString(name) {
			names = append(names, name)
		}
	}
	if len(names) < 80 {
		t.Fatalf("only %d names change something", len(names))
	}
	return names
}

// A refused call answers NVML_ERROR_NO_PERMISSION over the simulated driver,
// whatever state NVML is in; what that driver lacks is not found. Some names were in
// few drivers only, so a library that has them all is asked, too.
func TestRefusals(t *testing.T) {
	n := simulateGPUs(t, 1, "--driver", "newest")
	c, all := n.container(1024*mib), newContainer(t, standInLimit())
	names := tabled(t, "nvml.def", "REFUSE")
	for _, name := range changing(t) {
		if !slices.Contains(names, name) {
			t.Errorf("%s changes something and is not refused", name)
		}
	}
	all.nvml = withNames(t, names)
	program := compile(t, "refusals.c")
	for _, c := range []*container{c, all} {
		has := exported(t, c.nvml)
		for _, state := range []string{"unstarted", "start"} {
			var want strings.Builder
			for _, name := range names {
				answer := "4" // NVML_ERROR_NO_PERMISSION
				if !slices.Contains(has, name) {
					answer = "absent"
				}
				fmt.Fprintf(&want, "%s %s\n", name, answer)
			}
			got := strings.Split(c.ask(names, program, state), "\n")
			for i, line := range strings.Split(want.String(), "\n") {
				if i >= len(got) || got[i] != line {
					t.Errorf("%s: got %q, want %q", state, got[min(i, len(got)-1)], line)
				}
			}
		}
	}
}

// withNames is an NVML whose functions of those names say success.
func withNames(t *testing.T, names []string) string {
	t.Helper()
	var src strings.Builder
	for _, name := range append([]string{"nvmlInit_v2", "nvmlSystemGetDriverVersion"}, names...) {
		fmt.Fprintf(&src, "int %s(void) { return 0; }\n", name)
	}
	lib := filepath.Join(t.TempDir(), "standin.so")
	cmd := exec.Command("gcc", "-xc", "-O0", "-fPIC", "-shared", "-Wl,-soname,libnvidia-ml.so.1", "-o", lib, "-")
	cmd.Stdin = strings.NewReader(src.String())
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("stand-in: %v\n%s", err, msg)
	}
	return lib
}

// None of them reaches the driver; but the driver reaches its own. The stand-in
// counts its calls and lacks every tenth function: nor is that found in ours.
func TestRefusalsStayOut(t *testing.T) {
	names := tabled(t, "nvml.def", "REFUSE")
	var src, inner, want strings.Builder
	src.WriteString("#include <stdint.h>\nint standin_calls;\n" +
		"int nvmlInit_v2(void) { return 0; }\nint nvmlSystemGetDriverVersion(void) { return 0; }\n")
	present := 0
	for i, name := range names {
		if i%10 == 9 {
			fmt.Fprintf(&want, "%s absent\n", name)
			continue
		}
		present++
		fmt.Fprintf(&src, "int %s(uintptr_t a, uintptr_t b) { standin_calls++; return a == 7 && b == 8 ? 0 : 99; }\n", name)
		fmt.Fprintf(&inner, "\tgood += %s(7, 8) == 0;\n", name)
		fmt.Fprintf(&want, "%s 4\n", name)
	}
	fmt.Fprintf(&src, "int standin_inner(void)\n{\n\tint good = 0;\n%s\treturn good;\n}\n", inner.String())
	fmt.Fprintf(&want, "calls 0\ninner %d\n", present)
	lib := filepath.Join(t.TempDir(), "standin.so")
	cmd := exec.Command("gcc", "-xc", "-O0", "-fPIC", "-fplt", "-shared", "-Wl,-soname,libnvidia-ml.so.1", "-o", lib, "-")
	cmd.Stdin = strings.NewReader(src.String())
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("stand-in: %v\n%s", err, msg)
	}
	c := newContainer(t, standInLimit())
	c.nvml = lib
	if got := c.ask(names, compile(t, "refusals.c")); got != want.String() {
		t.Errorf("got\n%s\nwant\n%s", got, want.String())
	}
}

// Private tables pass and unknown ones are counted: cuda-intercept/test/tables.c.
func TestExportTables(t *testing.T) {
	c := newContainer(t, standInLimit())
	c.driver = standIn(t)
	if out := c.ask(nil, compile(t, "tables.c")); out != "" {
		t.Error(out)
	}
	l, err := region.OpenLedger(filepath.Join(c.dir, "ledger"), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if u, err := l.Read(); err != nil || u.ExportTables != 2 {
		t.Errorf("the daemon reads %d, %v", u.ExportTables, err)
	}
}

// Every answer of the simulated driver's cuGetProcAddress, at every version and
// flag, is ours where the function is hooked and the driver's own elsewhere; what
// is not hooked falls through. The same over real drivers is tests/realdriver, over
// other simulated ones TestLookupsOnEveryDriver.
func TestLookups(t *testing.T) {
	if swapped, hooks := simulate(t).container(1024*mib).lookups(), len(tabled(t, "cuda.def", "HOOK")); swapped < hooks {
		t.Errorf("%d answers are ours, of %d rows", swapped, hooks)
	}
}

// lookups compares all answers and tells how many are ours.
func (c *container) lookups() (swapped int) {
	t := c.t
	t.Helper()
	hooks, has := tabled(t, "cuda.def", "HOOK"), exported(t, c.driver)
	var names []string
	for _, name := range tabled(t, "cuda.def", "HOOK|FORWARD|LATER") {
		switch {
		case !slices.Contains(has, name):
			names = append(names, "-"+name)
		case slices.Contains(hooks, name):
			names = append(names, "+"+name)
		default:
			names = append(names, name)
		}
	}
	for _, name := range has {
		base := regexp.MustCompile(`(_v\d+)?(_pt[sd][zs])?$`).ReplaceAllString(name, "")
		if base != name && !slices.Contains(names, "."+base) {
			names = append(names, "."+base)
		}
	}
	out := c.ask(names, compile(t, "../../tests/realdriver/testdata/lookups.c"))
	t.Log(out)
	var asked, questions, failures int
	last := out[strings.LastIndexByte(strings.TrimSpace(out), '\n')+1:]
	if _, err := fmt.Sscanf(last, "%d names, %d questions, %d answers are ours, %d failures", &asked, &questions, &swapped, &failures); err != nil {
		t.Errorf("%v: %s", err, last)
	}
	return swapped
}

// What runtimes ask for at start is answered with exactly the function meant.
func TestReplay(t *testing.T) { simulate(t).container(1024 * mib).replay() }

// replay asks what runtimes ask.
func (c *container) replay() {
	t := c.t
	t.Helper()
	requests, err := os.ReadFile(filepath.Join(root(t), "tests/realdriver/testdata/requests.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	out := c.ask(strings.Split(string(requests), "\n"), compile(t, "../../tests/realdriver/testdata/replay.c"))
	t.Log(out)
	all := 0
	for _, m := range regexp.MustCompile(`(?m): (\d+) requests, ([1-9]\d+) answered by our wrapper, `).FindAllStringSubmatch(out, -1) {
		asked, _ := strconv.Atoi(m[1])
		all += asked
	}
	if all != 7195 {
		t.Errorf("%d requests were tried, of 7195", all)
	}
}

// Nothing that the simulated driver exports is without a row.
func TestSimulatedNamesHaveRows(t *testing.T) {
	for table, lib := range map[string]string{"cuda.def": "libcuda.so.1", "nvml.def": "libnvidia-ml.so.1"} {
		rows := tabled(t, table, "HOOK|REFUSE|FORWARD|LATER")
		for _, name := range exported(t, filepath.Join(simulate(t).dir, "lib", lib)) {
			if (strings.HasPrefix(name, "cu") || strings.HasPrefix(name, "nvml")) && !slices.Contains(rows, name) {
				t.Errorf("%s of the simulated %s has no row in %s", name, lib, table)
			}
		}
	}
}

// A test that a row names exists.
func TestNamedTestsExist(t *testing.T) {
	for _, table := range []string{"cuda.def", "nvml.def"} {
		text, err := os.ReadFile(filepath.Join(root(t), "cuda-intercept/hooks", table))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^TEST\(\w+, ([\w/-]+), (\w+)\)`).FindAllStringSubmatch(string(text), -1) {
			if !testExists(t, m[1], m[2]) {
				t.Errorf("%s names %s, which is not in %s", table, m[2], m[1])
			}
		}
	}
}

// testExists tells whether a directory of the repository has a test of that name.
func testExists(t *testing.T, dir, name string) bool {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(root(t), dir, "*_test.go"))
	for _, f := range files {
		if code, err := os.ReadFile(f); err == nil && bytes.Contains(code, []byte("\nfunc "+name+"(t *testing.T)")) {
			return true
		}
	}
	return false
}
