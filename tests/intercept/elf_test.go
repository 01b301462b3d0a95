// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What the dynamic linker sees of the libraries, on both architectures.
func TestLibraries(t *testing.T) {
	if sanitized() {
		t.Skip("the sanitizer build is for this machine only")
	}
	for _, arch := range []string{"lib", "lib-aarch64"} {
		for name, short := range map[string]string{"libcuda.so.1": "cuda", "libnvidia-ml.so.1": "nvml"} {
			t.Run(arch+"/"+name, func(t *testing.T) {
				f, err := elf.Open(filepath.Join(root(t), "build", arch, name))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if want := map[string]elf.Machine{"lib": elf.EM_X86_64, "lib-aarch64": elf.EM_AARCH64}[arch]; f.Machine != want {
					t.Errorf("machine %v", f.Machine)
				}
				checkNames(t, f, name, short)
				checkVersions(t, f)
				checkExports(t, f, short)
				checkFlags(t, f)
			})
		}
	}
}

func dynString(t *testing.T, f *elf.File, tag elf.DynTag) []string {
	t.Helper()
	s, err := f.DynString(tag)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func checkNames(t *testing.T, f *elf.File, name, short string) {
	if got := dynString(t, f, elf.DT_SONAME); !slices.Equal(got, []string{name}) {
		t.Errorf("SONAME %q", got)
	}
	needed := dynString(t, f, elf.DT_NEEDED)
	if real := "/run/gpushare/driver/" + short + ".real"; needed[0] != real {
		t.Errorf("the real library is not the first dependency: %q", needed)
	}
	allowed := []string{"libc.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-aarch64.so.1"}
	for _, n := range needed[1:] {
		if !slices.Contains(allowed, n) {
			t.Errorf("needs %s", n)
		}
	}
}

var glibc = regexp.MustCompile(`^GLIBC_(\d+)\.(\d+)(\.\d+)?$`)

// checkVersions fails on a symbol that glibc 2.17 does not have.
func checkVersions(t *testing.T, f *elf.File) {
	symbols, err := f.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		m := glibc.FindStringSubmatch(s.Version)
		if s.Version == "" {
			// Only the real library's own name, which keeps the dependency.
			if s.Name != "cuDriverGetVersion" && s.Name != "nvmlSystemGetDriverVersion" {
				t.Errorf("%s is of no library", s.Name)
			}
			continue
		}
		if m == nil {
			t.Errorf("%s needs %s", s.Name, s.Version)
			continue
		}
		major, _ := strconv.Atoi(m[1])
		minor, _ := strconv.Atoi(m[2])
		if major > 2 || minor > 17 {
			t.Errorf("%s needs %s", s.Name, s.Version)
		}
	}
}

// checkExports compares the exported names with the table.
func checkExports(t *testing.T, f *elf.File, short string) {
	text, err := os.ReadFile(filepath.Join(root(t), "cuda-intercept/hooks", short+".def"))
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range regexp.MustCompile(`(?m)^(?:HOOK|REFUSE)\(\w+, (\w+),`).FindAllStringSubmatch(string(text), -1) {
		want = append(want, m[1])
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			got = append(got, s.Name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("exports %q\nwant %q", got, want)
	}
}

func checkFlags(t *testing.T, f *elf.File) {
	flags, err := f.DynValue(elf.DT_FLAGS)
	if err != nil || len(flags) != 1 {
		t.Fatalf("flags: %v, %v", flags, err)
	}
	for flag, want := range map[elf.DynFlag]bool{elf.DF_BIND_NOW: true, elf.DF_SYMBOLIC: true, elf.DF_TEXTREL: false} {
		if got := flags[0]&uint64(flag) != 0; got != want {
			t.Errorf("%v is %v", flag, got)
		}
	}
	if text, _ := f.DynValue(elf.DT_TEXTREL); len(text) > 0 {
		t.Error("has text relocations")
	}
	// Never unloaded, since fork handlers and threads stay; bound before it is used.
	if flags, err := f.DynValue(elf.DT_FLAGS_1); err != nil || len(flags) != 1 || flags[0]&uint64(elf.DF_1_NODELETE|elf.DF_1_NOW) != uint64(elf.DF_1_NODELETE|elf.DF_1_NOW) {
		t.Errorf("flags 1: %v, %v", flags, err)
	}
	if paths := append(dynString(t, f, elf.DT_RPATH), dynString(t, f, elf.DT_RUNPATH)...); len(paths) > 0 {
		t.Errorf("looks for libraries in %q", paths)
	}
	relro, stack := false, false
	for _, p := range f.Progs {
		stack = stack || p.Type == elf.PT_GNU_STACK
		switch {
		case p.Type == elf.PT_GNU_RELRO:
			relro = true
		case p.Type == elf.PT_TLS && p.Memsz > 64:
			t.Errorf("%d bytes of thread-local storage", p.Memsz)
		case p.Type == elf.PT_LOAD && p.Flags&elf.PF_W != 0 && p.Flags&elf.PF_X != 0:
			t.Error("a segment is writable and executable")
		case p.Type == elf.PT_GNU_STACK && p.Flags&elf.PF_X != 0:
			t.Error("the stack is executable")
		}
	}
	if !relro {
		t.Error("no RELRO")
	}
	if !stack {
		t.Error("an executable stack by default")
	}
	for _, s := range f.Sections {
		if strings.Contains(s.Name, "init_array") && s.Size > 16 {
			t.Errorf("%d bytes of constructors", s.Size)
		}
	}
}
