// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The hook runs as root beside a hostile image: it is linked with nothing that
// could execute a program, load code or reach a network, and with no module but
// the system calls.
func TestDependencies(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.Standard}}", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	allowed := []string{
		"golang.org/x/sys/unix", "github.com/gpushare/gpushare/internal/version",
		"github.com/gpushare/gpushare/hook/inject", "github.com/gpushare/gpushare/hook/cmd/gpushare-hook",
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, line := range lines {
		name, standard, _ := strings.Cut(line, " ")
		if standard == "true" {
			if slices.Contains([]string{"os/exec", "net", "plugin", "os/user", "runtime/cgo", "net/http"}, name) {
				t.Errorf("%s is linked in", name)
			}
		} else if !slices.Contains(allowed, name) {
			t.Errorf("%s is linked in", name)
		}
	}
	if len(lines) < 20 {
		t.Errorf("only %d packages were looked at", len(lines))
	}
}

// A static program has no loader that an image's variables could steer.
func TestStatic(t *testing.T) {
	out := filepath.Join(t.TempDir(), "hook")
	cmd := exec.Command("go", "build", "-o", out, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, text)
	}
	f, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a %v segment", p.Type)
		}
	}
}
