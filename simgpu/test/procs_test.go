// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/simgpu/api"
)

type symbol struct {
	name, base  string
	version     int // -1: cuGetProcAddress does not know it
	first, last int
	perThread   bool
}

func table(t *testing.T, file string) (out [][]string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		out = append(out, strings.Split(l, "\t"))
	}
	return out
}

// number turns 12.4 into 12040.
func number(s string) int {
	major, minor, _ := strings.Cut(s, ".")
	a, _ := strconv.Atoi(major)
	b, _ := strconv.Atoi(minor)
	return 1000*a + 10*b
}

func symbols(t *testing.T) (out []symbol) {
	t.Helper()
	for _, f := range table(t, "../api/cuda-driver.tsv") {
		v, err := strconv.Atoi(f[4])
		if err != nil {
			v = -1
		}
		out = append(out, symbol{f[0], f[1], v, number(f[2]), number(f[3]), f[5] == "1"})
	}
	if len(out) < 750 {
		t.Fatalf("list of names has %d rows", len(out))
	}
	return out
}

// expect says what a driver answers: the newest form that is not newer than
// asked for, of the flavour asked for if the name has flavours.
func expect(forms []symbol, d api.Driver, version, flags int) string {
	if flags > 3 {
		return "invalid"
	}
	failure := func(n int) string {
		if d.CUDA < 12000 {
			return "none" // only the first version of the call, which does not tell
		}
		return fmt.Sprintf("status %d", n)
	}
	flavoured, known := false, false
	for _, s := range forms {
		if s.version <= d.CUDA {
			known = true
			flavoured = flavoured || s.perThread
		}
	}
	if !known {
		return failure(1)
	}
	best := symbol{version: -1}
	for _, s := range forms {
		if s.version <= d.CUDA && (s.version <= version || version < 0) && s.version > best.version &&
			(!flavoured || s.perThread == (flags >= 2)) {
			best = s
		}
	}
	if best.version < 0 {
		return failure(2)
	}
	return best.name
}

// questions are every name with every version at which any name changes, the
// flags that there are and one more; then what runtimes ask.
func questions(t *testing.T) (lines []string, forms map[string][]symbol, ask func(i int) (string, int, int)) {
	forms = map[string][]symbol{}
	versions := []int{0, -1, 99999}
	for _, s := range symbols(t) {
		if s.version >= 0 && s.base != "-" && s.name != "cuEventCreateFromEGLSync" {
			forms[s.base] = append(forms[s.base], s)
			versions = append(versions, s.version-1, s.version)
		}
	}
	slices.Sort(versions)
	versions = slices.Compact(versions)
	type question struct {
		name           string
		version, flags int
	}
	var all []question
	for base := range forms {
		for _, v := range versions {
			for flags := range 5 {
				all = append(all, question{base, v, flags})
			}
		}
	}
	for _, l := range strings.Split(readFile(t, "../../tests/realdriver/testdata/requests.tsv"), "\n") {
		if f := strings.Fields(l); len(f) >= 4 && !strings.HasPrefix(l, "#") {
			if f[0] == "" || !strings.HasPrefix(f[0], "cu") {
				continue
			}
			v, _ := strconv.Atoi(f[1])
			flags, _ := strconv.Atoi(f[2])
			all = append(all, question{f[0], v, flags})
		}
	}
	for _, n := range []string{"-", "cuMemAlloc_v2", "cuNothing", "cudbgMain", "cuMemGetAttribute", "cuGraphInstantiateWithParams_ptsz"} {
		for _, v := range []int{0, 3020, 12000, 99999} {
			for flags := range 4 {
				all = append(all, question{n, v, flags})
			}
		}
	}
	for _, q := range all {
		lines = append(lines, fmt.Sprintf("%s %d %d", q.name, q.version, q.flags))
	}
	return lines, forms, func(i int) (string, int, int) { return all[i].name, all[i].version, all[i].flags }
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// eachDriver runs a test for the libraries of every driver.
func eachDriver(t *testing.T, f func(t *testing.T, d api.Driver, lib string)) {
	for _, d := range api.Drivers {
		t.Run(d.Branch, func(t *testing.T) { f(t, d, d.LibDir(filepath.Join(build, "lib"))) })
	}
}

// Every name, version and flag, by the rules that were observed on real drivers.
func TestProcAddress(t *testing.T) {
	ofLibraries(t)
	lines, forms, ask := questions(t)
	eachDriver(t, func(t *testing.T, d api.Driver, lib string) {
		cmd := exec.Command(filepath.Join(build, "test", "procs"), filepath.Join(lib, "libcuda.so.1"))
		cmd.Stdin = strings.NewReader(strings.Join(lines, "\n"))
		// The program's own libraries are the default's.
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(build, "lib"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got := strings.Split(strings.TrimSpace(string(out)), "\n")
		if d.CUDA < 11030 {
			if !slices.Equal(got, []string{"no resolver"}) {
				t.Errorf("it has a resolver: %.100q", out)
			}
			return
		}
		if len(got) != len(lines) {
			t.Fatalf("%d answers to %d questions", len(got), len(lines))
		}
		bad := 0
		for i := range got {
			name, version, flags := ask(i)
			if want := expect(forms[name], d, version, flags); got[i] != want {
				if bad++; bad < 20 {
					t.Errorf("%s gave %s, want %s", lines[i], got[i], want)
				}
			}
		}
		t.Logf("%d questions, %d wrong", len(got), bad)
	})
}

// exports returns what a library exports, sorted.
func exports(t *testing.T, lib string) (out []string) {
	t.Helper()
	text, err := exec.Command("nm", "-D", "--defined-only", lib).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range bytes.Split(text, []byte("\n")) {
		if f := bytes.Fields(l); len(f) == 3 {
			out = append(out, string(f[2]))
		}
	}
	slices.Sort(out)
	return out
}

// The libraries of a driver export its names, all of them and no other.
func TestExports(t *testing.T) {
	ofLibraries(t)
	nvml := table(t, "../api/nvml.tsv")
	eachDriver(t, func(t *testing.T, d api.Driver, lib string) {
		var cuda, management []string
		for _, s := range symbols(t) {
			has := s.version <= d.CUDA
			if s.version < 0 { // in no header: as old as the libraries read, and for ever
				has = s.first <= max(d.CUDA, 11040) && (s.last >= d.CUDA || s.last == 12050)
			}
			if has && s.name != "cuEventCreateFromEGLSync" { // in the header, in none of the libraries
				cuda = append(cuda, s.name)
			}
		}
		for _, f := range nvml {
			if number(f[1]) <= d.CUDA && (number(f[2]) >= d.CUDA || f[2] == "12.5") {
				management = append(management, f[0])
			}
		}
		for name, want := range map[string][]string{"libcuda.so.1": cuda, "libnvidia-ml.so.1": management} {
			slices.Sort(want)
			got := exports(t, filepath.Join(lib, name))
			for _, n := range want {
				if !slices.Contains(got, n) {
					t.Errorf("%s: %s is missing", name, n)
				}
			}
			for _, n := range got {
				if !slices.Contains(want, n) {
					t.Errorf("%s: %s should not be there", name, n)
				}
			}
			t.Logf("%s: %d names of %d", name, len(got), len(want))
		}
	})
}
