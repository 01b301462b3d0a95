// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const repository = "../../.."

// What is committed is what the tables say.
func TestGeneratedIsCurrent(t *testing.T) {
	out := t.TempDir()
	if err := run(repository, out, ""); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(out, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(out, path)
		if err != nil {
			return err
		}
		want, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		got, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s is not what the tables say; run make generate", name)
		}
		return nil
	})
	if err != nil || files != 9 {
		t.Errorf("%d files, %v", files, err)
	}
}

// variant copies the repository's tables and prototypes, with one edit.
func variant(t *testing.T, file, old, changed string) string {
	t.Helper()
	dir := t.TempDir()
	for _, lib := range libraries {
		for _, name := range []string{lib.def, lib.header} {
			text, err := os.ReadFile(filepath.Join(repository, name))
			if err != nil {
				t.Fatal(err)
			}
			if name == file {
				if !strings.Contains(string(text), old) {
					t.Fatalf("%s has no %q", file, old)
				}
				text = []byte(strings.Replace(string(text), old, changed, 1))
			}
			if err := write(dir, name, string(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

const oneRow = "HOOK(cuMemFree, cuMemFree_v2, 3020, ANY, release, spill_free)"

func TestBadTables(t *testing.T) {
	const def = "cuda-intercept/hooks/cuda.def"
	for name, tt := range map[string]struct{ file, old, changed, want string }{
		"no prototype":     {def, oneRow, "HOOK(cuNew, cuNew, 3020, ANY, release, spill_free)", "cuNew has no prototype"},
		"unknown class":    {def, oneRow, "HOOK(cuMemFree, cuMemFree_v2, 3020, ANY, freed, spill_free)", `unknown class "freed"`},
		"wrong flavour":    {def, oneRow, "HOOK(cuMemFree, cuMemFree_v2, 3020, PER_THREAD, release, spill_free)", "not of flavour"},
		"another's name":   {def, oneRow, "HOOK(cuMemAlloc, cuMemFree_v2, 3020, ANY, release, spill_free)", "not known as cuMemAlloc"},
		"a row twice":      {def, oneRow, oneRow + "\n" + oneRow, "is there twice"},
		"hooked and not":   {def, oneRow, oneRow + "\nFORWARD(cuMemFree, cuMemFree_v2, 3020, ANY, asks)", "cuMemFree_v2 is there twice"},
		"not a row":        {def, oneRow, "HOOK(cuMemFree)", "no row and no comment"},
		"no reason":        {def, "WHY(events,", "WHY(eager,", "no reason events"},
		"reason of no row": {def, "WHY(events,", "WHY(eager, none)\nWHY(events,", "reason eager is of no row"},
		"reason twice":     {def, "WHY(events,", "WHY(asks, none)\nWHY(events,", "reason asks is there twice"},
		"no test":          {def, "TEST(spill_free, tests/intercept, TestWrappers)", "", "no TEST for cuMemFree_v2"},
		"used, no row":     {def, "FORWARD(cuEventQuery, cuEventQuery, 2000, ANY, no_settle)", "", "cuEventQuery is used and has no row"},
		"refused in cuda":  {def, "FORWARD(cuEventQuery, cuEventQuery, 2000, ANY, no_settle)", "REFUSE(cuEventQuery, cuEventQuery, 2000, ANY, no_settle)\nTEST(refuse, tests/intercept, TestRefusals)", "nothing to refuse with"},
		"prototype is cut": {"cuda-intercept/include/cuda_abi.h", "CUresult cuMemFree_v2(CUdeviceptr);", "", "cuMemFree_v2 has no prototype"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(variant(t, tt.file, tt.old, tt.changed), t.TempDir(), "")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// A row whose body is missing, or has other parameters, does not compile.
func TestRowsThatDoNotBuild(t *testing.T) {
	for name, row := range map[string]string{
		"":             oneRow,
		"no body":      "HOOK(cuMemFree, cuMemFree_v2, 3020, ANY, release, free_nowhere)\nTEST(free_nowhere, here, TestNone)",
		"another type": "HOOK(cuMemFree, cuMemFree_v2, 3020, ANY, release, spill_alloc)",
		"another ABI":  "HOOK(cuMemFree, cuMemFree_v2, 3020, ANY, release, free_v1)",
	} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			if err := run(variant(t, "cuda-intercept/hooks/cuda.def", oneRow, row), out, ""); err != nil {
				t.Fatal(err)
			}
			c := filepath.Join(repository, "cuda-intercept")
			gen := filepath.Join(out, "cuda-intercept/gen")
			msg, err := exec.Command("gcc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", gen,
				"-I", filepath.Join(c, "src"), "-I", filepath.Join(c, "include"), filepath.Join(gen, "cuda_hooks.c")).CombinedOutput()
			if (err == nil) != (name == "") {
				t.Errorf("%v\n%s", err, msg)
			}
		})
	}
}

// Without a wrapper only that name is off the version script, and everything that
// other files are compiled against is as it was.
func TestWithout(t *testing.T) {
	all, out := t.TempDir(), t.TempDir()
	if err := run(repository, all, ""); err != nil {
		t.Fatal(err)
	}
	if err := run(repository, out, "cuMemFree_v2"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cuda_hooks.h", "cuda.map"} {
		want, err := os.ReadFile(filepath.Join(all, "cuda-intercept/gen", name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(out, "cuda-intercept/gen", name))
		if err != nil {
			t.Fatal(err)
		}
		text := string(want)
		if name == "cuda.map" {
			text = strings.Replace(text, "\t\tcuMemFree_v2;\n", "", 1)
		}
		if string(got) != text || (name == "cuda.map") == (string(got) == string(want)) {
			t.Errorf("%s without a wrapper:\n%s", name, got)
		}
	}
}

func TestTypeOf(t *testing.T) {
	for param, want := range map[string]string{
		"CUdeviceptr *":            "CUdeviceptr *",
		"unsigned long long flags": "unsigned long long",
		"unsigned numChannels":     "unsigned",
		"const CUgraphNode *":      "const CUgraphNode *",
		"cuuint64_t":               "cuuint64_t",
		"unsigned int":             "unsigned int",
		"nvmlDevice_t":             "nvmlDevice_t",
		"const nvmlDevice_t":       "const nvmlDevice_t",
		"char *name":               "char *",
		"void **":                  "void **",
	} {
		if got := typeOf(param); got != want {
			t.Errorf("typeOf(%q) = %q, want %q", param, got, want)
		}
	}
}

// readTables reads the repository's own.
func readTables(t *testing.T) []table {
	t.Helper()
	var tables []table
	for _, lib := range libraries {
		tt, err := readTable(repository, lib)
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, tt)
	}
	return tables
}

// Every name is in the page once, and the counts add up.
func TestCoveragePage(t *testing.T) {
	tables := readTables(t)
	page := coverage(tables)
	for _, tt := range tables {
		for _, r := range tt.rows() {
			if n := strings.Count(page, "\n| `"+r.symbol+"` | "); n != 1 {
				t.Errorf("%s is in the page %d times", r.symbol, n)
			}
		}
		sum := 0
		for _, s := range states {
			sum += count(tt, s.name)
		}
		if sum != len(tt.rows()) {
			t.Errorf("%s: %d names have a state, of %d", tt.lib.document, sum, len(tt.rows()))
		}
	}
	for _, c := range append(classes, "refuse", "forward") {
		if meaning[c] == "" {
			t.Errorf("class %s has no meaning", c)
		}
	}
}

// The tables have every name of the lists of exported names, and no other, with
// the same base, version and flavour.
func TestTablesAreComplete(t *testing.T) {
	tables := readTables(t)
	for i, list := range []string{"cuda-driver.tsv", "nvml.tsv"} {
		text, err := os.ReadFile(filepath.Join(repository, "simgpu/api", list))
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string]row{}
		for _, r := range tables[i].rows() {
			rows[r.symbol] = r
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
		for _, line := range lines {
			f := strings.Split(line, "\t")
			r, found := rows[f[0]]
			delete(rows, f[0])
			if !found {
				t.Errorf("%s has no row", f[0])
				continue
			}
			if list == "nvml.tsv" {
				if f[1] != version(r.since) {
					t.Errorf("%s: since %s, in the list %s", f[0], version(r.since), f[1])
				}
				continue
			}
			base, since := f[1], f[4]
			if base == "-" {
				base = f[0]
			}
			if since == "-" {
				since = "0"
			}
			if r.base != base || r.since != since || (r.flavour == "PER_THREAD") != (f[5] == "1") {
				t.Errorf("%s: row %s %s %s, in the list %q", f[0], r.base, r.since, r.flavour, f[1:])
			}
		}
		for name := range rows {
			t.Errorf("%s is in no list", name)
		}
		t.Logf("%s: %d names", list, len(lines))
	}
}
