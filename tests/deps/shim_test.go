// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package deps

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// The shim stays in memory for as long as a container runs, so what it carries
// beyond containerd's own shim for runc, Go's library included, is a decision.
func TestShimAddsLittle(t *testing.T) {
	const stock = "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	const ours = "./shim/cmd/containerd-shim-gpushare-v1"
	deps := func(path string) []string {
		all := list(t, "-tags", "no_grpc", path)
		if len(all) != 1 {
			t.Fatalf("%s: %d packages", path, len(all))
		}
		return all[0].Deps
	}
	theirs := deps(stock)
	var added []string
	for _, d := range deps(ours) {
		if !slices.Contains(theirs, d) {
			added = append(added, d)
		}
	}
	slices.Sort(added)
	for _, d := range added {
		for _, never := range []string{"google.golang.org/grpc", "github.com/NVIDIA/", "github.com/cilium/ebpf", "github.com/urfave/cli", "net/http", "crypto/tls",
			module + "simgpu", module + "tests"} {
			if d == never || strings.HasPrefix(d, strings.TrimSuffix(never, "/")+"/") {
				t.Errorf("the shim depends on %s", d)
			}
		}
		if under(d, "daemon") && !under(d, "daemon/api") {
			t.Errorf("the shim depends on %s", d)
		}
	}
	const golden = "testdata/shim.txt"
	text := strings.Join(added, "\n") + "\n"
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("beyond containerd's own shim ours has\n%swant\n%s", text, want)
	}
}

// The serving process reaps every child of its own; one that it had started itself
// would be reaped behind its starter's back. And containerd's packages without a
// promise of stability are named in one file.
func TestShimImports(t *testing.T) {
	unstable := 0
	for _, p := range list(t, "./shim/...") {
		for _, i := range p.Imports {
			if i == "os/exec" {
				t.Errorf("%s imports %s", p.ImportPath, i)
			}
			if strings.HasPrefix(i, "github.com/containerd/containerd/v2/cmd/") {
				unstable++
			}
		}
	}
	if unstable != 2 {
		t.Errorf("the shim imports %d of containerd's packages below cmd, want 2", unstable)
	}
	for _, f := range files(t) {
		if !strings.HasPrefix(f, "shim/") || strings.HasSuffix(f, "_test.go") || f == "shim/upstream.go" || !strings.HasSuffix(f, ".go") {
			continue
		}
		data, err := os.ReadFile("../../" + f)
		if err != nil {
			continue // deleted, not yet committed
		}
		if strings.Contains(string(data), "containerd/v2/cmd/") {
			t.Errorf("%s imports a package below containerd's cmd: that is for shim/upstream.go", f)
		}
	}
}

// Only the shim needs an engine's code.
func TestOnlyTheShimImportsContainerd(t *testing.T) {
	for _, p := range list(t, "./...") {
		if under(p.ImportPath, "shim") || under(p.ImportPath, "tests") {
			continue
		}
		for _, d := range p.Deps {
			if strings.HasPrefix(d, "github.com/containerd/containerd") {
				t.Errorf("%s depends on %s", p.ImportPath, d)
			}
		}
	}
}

// What runs at every container start speaks to the daemon without net/http, which
// brings TLS along.
func TestNoHTTPStackAtContainerStart(t *testing.T) {
	for _, p := range list(t, "./hook/cmd/...", "./daemon/api/...") {
		if slices.Contains(p.Deps, "net/http") {
			t.Errorf("%s depends on net/http", p.ImportPath)
		}
	}
}
