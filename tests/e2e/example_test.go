// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// The examples are run as their READMEs have them: each block that is fenced as sh
// is run as one script in the example's folder. Sockets and search paths come from
// the environment; the image that they name is a small one under that name.

// debian is the name of the image in the examples.
const debian = "docker.io/library/debian:12"

// exampleRoot makes the root file system for the examples' image: the small one,
// with a program called nvidia-smi, which the simulated driver does not bring.
func exampleRoot(t *testing.T, n *node.Node) string {
	t.Helper()
	dir := filepath.Join(n.Dir, "debian")
	if err := node.SmallImage(within(t), root, dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "usr/bin/nvml"), filepath.Join(dir, "usr/bin/nvidia-smi")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// scripts are the blocks of an example's README that are fenced as sh.
func scripts(t *testing.T, example string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "examples", example, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, part := range strings.Split(string(data), "\n```sh\n")[1:] {
		script, _, closed := strings.Cut(part, "\n```\n")
		if !closed {
			t.Fatalf("examples/%s/README.md: a block without an end: %.60q", example, part)
		}
		all = append(all, script)
	}
	if len(all) == 0 {
		t.Fatalf("examples/%s/README.md has no block to run", example)
	}
	return all
}

// play runs scripts, one after the other in one shell, in an example's folder.
func play(t *testing.T, example string, env []string, scripts ...string) node.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*limit)
	defer cancel()
	text := "set -eu\ncd " + filepath.Join(root, "examples", example) + "\n" + strings.Join(scripts, "\n") + "\n"
	r := node.Run(ctx, env, "sh", "-c", text)
	if r.Err != nil {
		t.Fatalf("the commands of examples/%s: %v\n%s", example, r.Err, r.Stdout)
	}
	return r
}

// shown fails the test unless a program was shown cards of these sizes, in any
// order, and no other.
func shown(t *testing.T, output string, sizes ...uint64) {
	t.Helper()
	if got := strings.Count(output, "memory total "); got != len(sizes) {
		t.Errorf("%d cards were shown, want %d, in:\n%s", got, len(sizes), output)
	}
	want := map[uint64]int{}
	for _, size := range sizes {
		want[size]++
	}
	for size, times := range want {
		if got := strings.Count(output, fmt.Sprintf("memory total %d ", size)); got != times {
			t.Errorf("a card of %d bytes was shown %d times, want %d, in:\n%s", size, got, times, output)
		}
	}
}

// builtFor is the folder of what tests/setup/examples.sh builds; the test is skipped
// if it was not built.
func builtFor(t *testing.T, name string) string {
	t.Helper()
	r := node.Run(within(t), nil, filepath.Join(root, "tests/setup/examples.sh"), "--where", name)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	dir := strings.TrimSpace(r.Stdout)
	if _, err := os.Stat(filepath.Join(dir, ".complete")); err != nil {
		t.Skipf("%s is not built: run tests/setup/examples.sh %s", name, name)
	}
	return dir
}
