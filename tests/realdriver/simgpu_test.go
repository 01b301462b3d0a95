// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package realdriver

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// simulated returns the directory of the simulator's libraries that stand for
// the real ones of a series.
func simulated(t *testing.T, series string) string {
	t.Helper()
	dir := filepath.Join(root(t), "build/simgpu/lib", series)
	if _, err := os.Stat(filepath.Join(dir, "libcuda.so.1")); err != nil {
		t.Fatalf("%v; run make simgpu", err)
	}
	return dir
}

func eachSimulated(t *testing.T, test func(t *testing.T, real, sim string)) {
	if os.Getuid() != 0 {
		t.Skip("needs root for mount namespaces")
	}
	for _, s := range series {
		t.Run(s, func(t *testing.T) { test(t, fetch(t, s), simulated(t, s)) })
	}
}

// The simulated libraries export what the real ones of that driver do, functions
// as functions and data as data of that size.
func TestSimulatedExports(t *testing.T) {
	eachSimulated(t, func(t *testing.T, real, sim string) {
		for _, name := range []string{"libcuda.so.1", "libnvidia-ml.so.1"} {
			want, got := kinds(t, filepath.Join(real, name)), kinds(t, filepath.Join(sim, name))
			for n, k := range want {
				if got[n] != k {
					t.Errorf("%s: %s is %q, the real one %q", name, n, got[n], k)
				}
			}
			for n := range got {
				if want[n] == "" {
					t.Errorf("%s: the real one has no %s", name, n)
				}
			}
			t.Logf("%s: %d names", name, len(want))
		}
	})
}

// kinds returns for each exported name of a library what it is.
func kinds(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for _, s := range symbols {
		switch {
		case s.Section == elf.SHN_UNDEF:
		case elf.ST_TYPE(s.Info) == elf.STT_OBJECT:
			m[s.Name] = fmt.Sprintf("data of %d bytes", s.Size)
		default:
			m[s.Name] = elf.ST_TYPE(s.Info).String()
		}
	}
	if len(m) < 200 {
		t.Fatalf("%s exports %d names", path, len(m))
	}
	return m
}

// To each question by name, version and flags the simulated cuGetProcAddress, in
// both its versions, answers as the real one does.
func TestSimulatedProcAddress(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "simgpu/api/cuda-driver.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"-", "cuNothing", "cuMemAlloc_v2", "cuGraphInstantiateWithParams_ptsz", "cuGetProcAddress_v2"}
	versions := []int{0, 1, -1, 99999}
	for _, l := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		f := strings.Split(l, "\t")
		names = append(names, f[0]) // also forms, and names that are not to be had
		if f[1] != "-" {
			names = append(names, f[1])
		}
		if v, err := strconv.Atoi(f[4]); err == nil {
			versions = append(versions, v-1, v)
		}
	}
	slices.Sort(names)
	slices.Sort(versions)
	var questions []string
	for _, n := range slices.Compact(names) {
		for _, v := range slices.Compact(versions) {
			for flags := range 5 {
				questions = append(questions, fmt.Sprintf("%s %d %d", n, v, flags))
			}
		}
	}
	stdin := strings.Join(questions, "\n")
	program := compile(t, "../../../simgpu/test/c/procs.c")
	eachSimulated(t, func(t *testing.T, real, sim string) {
		answers := func(lib string) []string {
			out := strings.Split(strings.TrimSpace(run(t, real, lib, stdin, program, "libcuda.so.1")), "\n")
			if len(out) != len(questions) {
				t.Fatalf("%s: %d answers to %d questions: %.200q", lib, len(out), len(questions), out)
			}
			return out
		}
		want, got := answers(real), answers(sim)
		bad, found := 0, 0
		for i := range want {
			if strings.HasPrefix(want[i], "cu") {
				found++
			}
			if want[i] == got[i] {
				continue
			}
			if bad++; bad <= 20 {
				t.Errorf("%s: the real driver says %s, the simulated one %s", questions[i], want[i], got[i])
			}
		}
		t.Logf("%d questions, %d of them found, %d differences", len(want), found, bad)
	})
}
