// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// The binary runs as root in the path of every container start, so what is
// linked into it is a decision. The golden file lists every package that is
// not of Go's own library.
func TestDependencies(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	got := strings.Fields(string(out))
	slices.Sort(got)
	for _, never := range []string{"google.golang.org/grpc", "go-nvml", "cilium/ebpf", "github.com/containerd", "k8s.io/api"} {
		for _, dep := range got {
			if strings.Contains(dep, never) {
				t.Errorf("%s is linked in", dep)
			}
		}
	}
	golden := filepath.Join("testdata", "deps.txt")
	text := strings.Join(got, "\n") + "\n"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("dependencies are\n%swant\n%s", text, want)
	}
}
