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
	if err := run(repository, out); err != nil {
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

const oneRow = "HOOK(cuMemFree, cuMemFree_v2, 3020, ANY, release, free)"

func TestBadTables(t *testing.T) {
	const def = "cuda-intercept/hooks/cuda.def"
	for name, tt := range map[string]struct{ file, old, changed, want string }{
		"no prototype":     {def, oneRow, "HOOK(cuNew, cuNew, 3020, ANY, release, free)", "cuNew has no prototype"},
		"unknown class":    {def, oneRow, "HOOK(cuMemFree, cuMemFree_v2, 3020, ANY, freed, free)", `unknown class "freed"`},
		"wrong flavour":    {def, oneRow, "HOOK(cuMemFree, cuMemFree_v2, 3020, PER_THREAD, release, free)", "not of flavour"},
		"a row twice":      {def, oneRow, oneRow + "\n" + oneRow, "is there twice"},
		"not a row":        {def, oneRow, "HOOK(cuMemFree)", "neither HOOK, USES nor comment"},
		"prototype is cut": {"cuda-intercept/include/cuda_abi.h", "CUresult cuMemFree_v2(CUdeviceptr);", "", "cuMemFree_v2 has no prototype"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(variant(t, tt.file, tt.old, tt.changed), t.TempDir())
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
		"no body":      "HOOK(cuMemFree, cuMemFree_v2, 3020, ANY, release, free_nowhere)",
		"another type": "HOOK(cuMemFree, cuMemFree_v2, 3020, ANY, release, alloc)",
		"another ABI":  "HOOK(cuMemFree, cuMemFree_v2, 3020, ANY, release, free_v1)",
	} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			if err := run(variant(t, "cuda-intercept/hooks/cuda.def", oneRow, row), out); err != nil {
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

// Every name that the documentation calls covered is in the page.
func TestCoveragePage(t *testing.T) {
	var tables []table
	for _, lib := range libraries {
		tt, err := readTable(repository, lib)
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, tt)
	}
	page := coverage(tables)
	for _, tt := range tables {
		for _, h := range tt.hooks {
			if !strings.Contains(page, "| `"+h.symbol+"` | "+h.class+" |") {
				t.Errorf("%s is not in the page", h.symbol)
			}
		}
	}
	for _, c := range classes {
		if meaning[c] == "" {
			t.Errorf("class %s has no meaning", c)
		}
	}
}
