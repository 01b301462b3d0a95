// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package realdriver

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/tests/symbols"
)

// hooked returns the hooked symbols of a table and the names by which
// cuGetProcAddress knows them.
func hooked(t *testing.T, table string) (symbols, bases []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "cuda-intercept/hooks", table))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:HOOK|REFUSE)\((\w+), (\w+),`).FindAllStringSubmatch(string(text), -1) {
		bases = append(bases, m[1])
		symbols = append(symbols, m[2])
	}
	return symbols, bases
}

// exported returns the names that a library exports; functions only, or data too.
func exported(t *testing.T, path string, data bool) []string {
	t.Helper()
	names, err := symbols.Exported(path, data)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// tabled returns every name of a table.
func tabled(t *testing.T, table string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "cuda-intercept/hooks", table))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^(?:HOOK|REFUSE|FORWARD|LATER)\(\w+, (\w+),`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	return names
}

// dlsym finds through us the names that it finds in the bare driver, old or new.
func TestProfile(t *testing.T) {
	program := compile(t, "names.c")
	eachDriver(t, func(t *testing.T, real string) {
		for table, name := range map[string]string{"cuda.def": "libcuda.so.1", "nvml.def": "libnvidia-ml.so.1"} {
			names := tabled(t, table)
			bare := run(t, real, real, strings.Join(names, "\n"), program, name)
			got := run(t, real, ours(t), strings.Join(names, "\n"), program, name)
			if got != bare || strings.Count(bare, "\n") < 200 {
				t.Errorf("%s: through us\n%s\nbare\n%s", name, got, bare)
			}
			t.Logf("%s: %d of %d names", name, strings.Count(got, "\n"), len(names))
		}
	})
}

// A name of a driver that the tables do not class fails here: run it over a new
// driver with GPUSHARE_REAL_DRIVER.
func TestEveryNameHasARow(t *testing.T) {
	eachDriver(t, func(t *testing.T, real string) {
		for table, name := range map[string]string{"cuda.def": "libcuda.so.1", "nvml.def": "libnvidia-ml.so.1"} {
			rows := map[string]bool{}
			for _, n := range tabled(t, table) {
				rows[n] = true
			}
			all := exported(t, filepath.Join(real, name), true)
			if len(all) < 200 {
				t.Errorf("%s exports %d names", name, len(all))
			}
			for _, n := range all {
				if !rows[n] {
					t.Errorf("%s of %s has no row in %s", n, name, table)
				}
			}
			t.Logf("%s: %d names, all in the table of %d", name, len(all), len(rows))
		}
	})
}

// The tables' names, versions and stream flavours are those of the driver's own
// resolver, for every symbol that it has.
func TestSince(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "cuda-intercept/hooks/cuda.def"))
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, m := range regexp.MustCompile(`(?m)^(?:HOOK|FORWARD|LATER)\((\w+), (\w+), (\d+), (\w+),`).FindAllStringSubmatch(string(text), -1) {
		perThread := 0
		if m[4] == "PER_THREAD" {
			perThread = 1
		}
		fmt.Fprintln(&rows, m[1], m[2], m[3], perThread)
	}
	program := compile(t, "since.c")
	eachDriver(t, func(t *testing.T, real string) {
		t.Log(run(t, real, real, rows.String(), program))
	})
}

// The real library calls its own functions directly, and so never through us: no
// relocation of it names one, and a wrapper is not entered from within the driver.
func TestStaysInside(t *testing.T) {
	eachDriver(t, func(t *testing.T, real string) {
		f, err := elf.Open(filepath.Join(real, "libcuda.so.1"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		symbols, err := f.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		named := 0
		for _, s := range f.Sections {
			if s.Type != elf.SHT_RELA { //nolint:misspell // relocations
				continue
			}
			data, err := s.Data()
			if err != nil {
				t.Fatal(err)
			}
			for ; len(data) >= 24; data = data[24:] {
				i := f.ByteOrder.Uint64(data[8:]) >> 32
				if i == 0 {
					continue
				}
				named++
				if sym := symbols[i-1]; sym.Section != elf.SHN_UNDEF && strings.HasPrefix(sym.Name, "cu") {
					t.Errorf("%s is reached by name", sym.Name)
				}
			}
		}
		if named < 50 {
			t.Errorf("only %d relocations name a symbol", named)
		}
		t.Logf("%d relocations name a symbol", named)
	})
}
