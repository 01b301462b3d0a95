// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

type symbol struct {
	name, base string
	version    int
	perThread  bool
}

func symbols(t *testing.T) []symbol {
	t.Helper()
	b, err := os.ReadFile("../api/cuda-driver.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var out []symbol
	for _, l := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		f := strings.Split(l, "\t")
		if v, err := strconv.Atoi(f[4]); err == nil && f[1] != "-" {
			out = append(out, symbol{f[0], f[1], v, f[5] == "1"})
		}
	}
	if len(out) < 600 {
		t.Fatalf("list of names has %d rows", len(out))
	}
	return out
}

// expect says what a driver of CUDA 12.9 answers: the newest form that is not
// newer than asked for, of the flavour asked for if the name has flavours.
func expect(all []symbol, base string, version, flags int) string {
	if flags > 3 {
		return "invalid"
	}
	flavoured, known := false, false
	for _, s := range all {
		if s.base == base && s.version <= 12090 {
			known = true
			flavoured = flavoured || s.perThread
		}
	}
	if !known {
		return "status 1"
	}
	best := symbol{version: -1}
	for _, s := range all {
		if s.base == base && s.version <= 12090 && s.version <= version && s.version > best.version &&
			(!flavoured || s.perThread == (flags >= 2)) {
			best = s
		}
	}
	if best.version < 0 {
		return "status 2"
	}
	return best.name
}

func TestProcAddress(t *testing.T) {
	all := symbols(t)
	var questions, answers []string
	ask := func(base string, version, flags int) {
		questions = append(questions, fmt.Sprintf("%s %d %d", base, version, flags))
		answers = append(answers, expect(all, base, version, flags))
	}
	for _, s := range all {
		for _, v := range []int{s.version - 10, s.version, s.version + 10, 12090, 99999} {
			for flags := range 4 {
				ask(s.base, v, flags)
			}
		}
	}
	ask("cuMemAlloc_v2", 12090, 0) // not a base name
	ask("cuNothing", 12090, 0)
	ask("cuMemAlloc", 3020, 4)
	ask("cuMemcpyHtoD", 6000, 2)
	if got := expect(all, "cuMemcpyHtoD", 6000, 2); got != "status 2" {
		t.Fatalf("the rule is wrong: %s", got)
	}
	n := up(t)
	cmd := n.command("procs")
	cmd.Stdin = strings.NewReader(strings.Join(questions, "\n"))
	got := strings.Split(strings.TrimSpace(n.finish(cmd)), "\n")
	if len(got) != len(answers) {
		t.Fatalf("%d answers to %d questions", len(got), len(answers))
	}
	bad := 0
	for i := range got {
		if got[i] != answers[i] {
			if bad++; bad < 20 {
				t.Errorf("%s gave %s, want %s", questions[i], got[i], answers[i])
			}
		}
	}
	t.Logf("%d questions, %d wrong", len(got), bad)
}

// TestExports compares what the libraries export with the lists of names.
func TestExports(t *testing.T) {
	exported := func(lib string) map[string]bool {
		out, err := exec.Command("nm", "-D", "--defined-only", filepath.Join(build, "lib", lib)).Output()
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]bool{}
		for _, l := range strings.Split(string(out), "\n") {
			if f := strings.Fields(l); len(f) == 3 {
				m[f[2]] = true
			}
		}
		return m
	}
	cuda := exported("libcuda.so.1")
	for _, s := range symbols(t) {
		if s.version <= 12090 != cuda[s.name] {
			t.Errorf("%s (since %d): exported %v", s.name, s.version, cuda[s.name])
		}
	}
	nvml := exported("libnvidia-ml.so.1")
	b, err := os.ReadFile("../api/nvml.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		if name, _, _ := strings.Cut(l, "\t"); !nvml[name] {
			t.Errorf("%s is not exported", name)
		}
	}
}
