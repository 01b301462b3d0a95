// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command hooks turns cuda-intercept/hooks/*.def into the C that exports,
// resolves and routes the hooked names, and into docs/reference/coverage.md.
//
// Prototypes come from cuda-intercept/include; a row without one is an error
// here, a row without a body is an error of the C compiler.
package main

//go:generate go run . -root ../../..

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// library is one of the two libraries that are replaced.
type library struct {
	name     string // cuda, nvml: names of files and of C identifiers
	def      string // table, relative to the repository
	header   string // prototypes, relative to the repository
	bodies   string // header that declares the bodies
	result   string // return type of every function
	missing  string // what a call returns that the real library lacks
	refusal  string // what a refused call returns
	prefix   string // of the bodies
	real     string // SONAME of the stub, the absolute path of the real library
	anchor   string // real symbol that keeps the dependency on the real library
	guarded  bool   // forwards calls that come from the real library itself
	document string // heading in the coverage page
	since    string // what the column of that name means
}

var libraries = []library{
	{
		name: "cuda", def: "cuda-intercept/hooks/cuda.def", header: "cuda-intercept/include/cuda_abi.h",
		bodies: "cuda_bodies.h", result: "CUresult", missing: "CUDA_ERROR_NOT_SUPPORTED", prefix: "gs_cu_",
		real: "/run/gpushare/driver/cuda.real", anchor: "cuDriverGetVersion", document: "libcuda.so.1",
		since: "since: from which version cuGetProcAddress gives it; - if it does not know the name.",
	},
	{
		name: "nvml", def: "cuda-intercept/hooks/nvml.def", header: "cuda-intercept/include/nvml_abi.h",
		bodies: "nvml_bodies.h", result: "nvmlReturn_t", missing: "NVML_ERROR_FUNCTION_NOT_FOUND",
		refusal: "NVML_ERROR_NO_PERMISSION", prefix: "gs_nv_",
		real: "/run/gpushare/driver/nvml.real", anchor: "nvmlSystemGetDriverVersion", guarded: true,
		document: "libnvidia-ml.so.1", since: "since: the CUDA release that first showed it.",
	},
}

func main() {
	root := flag.String("root", ".", "the repository")
	out := flag.String("out", "", "write under this directory instead of the repository")
	without := flag.String("without", "", "a hooked name to leave out, for tests")
	flag.Parse()
	if *out == "" {
		*out = *root
	}
	if err := run(*root, *out, *without); err != nil {
		fmt.Fprintln(os.Stderr, "hooks:", err)
		os.Exit(1)
	}
}

// run reads the tables under root and writes the generated files under out, as if
// there were no wrapper for the name without.
func run(root, out, without string) error {
	var tables []table
	for _, lib := range libraries {
		t, err := readTable(root, lib)
		if err != nil {
			return err
		}
		t.unhook(without)
		tables = append(tables, t)
		dir := "cuda-intercept/gen/"
		for name, text := range map[string]string{
			dir + lib.name + "_hooks.h": t.cHeader(),
			dir + lib.name + "_hooks.c": t.cSource(),
			dir + lib.name + "_stub.c":  t.stub(),
			dir + lib.name + ".map":     t.versionScript(),
		} {
			if err := write(out, name, text); err != nil {
				return err
			}
		}
	}
	return write(out, "docs/reference/coverage.md", coverage(tables))
}

// write leaves a file alone that is as it should be: its date is make's.
func write(root, name, text string) error {
	path := filepath.Join(root, name)
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
