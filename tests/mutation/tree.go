// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// row is a wrapper and the test that the coverage page names for it.
type row struct{ symbol, state, dir, test string }

var (
	pageRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (enforced|viewed|refused) \\| .*`([\\w/]+) (Test\\w+)` \\|$")
	pageSum = regexp.MustCompile(`(?m)^\| (?:enforced|viewed|refused) \| (\d+) \| (\d+) \|`)
	// What a test program said, or else the test.
	reasons = []*regexp.Regexp{regexp.MustCompile(`(?m)^\s*(\S+\.c:\d+: .*)$`), regexp.MustCompile(`(?m)^\s*(\S+\.go:\d+: .*)$`)}
)

// readRows reads the coverage page, and checks that it has as many rows as it says.
func readRows(root string) ([]row, error) {
	page, err := os.ReadFile(filepath.Join(root, "docs/reference/coverage.md"))
	if err != nil {
		return nil, fmt.Errorf("read coverage page, from the repository's root: %w", err)
	}
	var rows []row
	for _, m := range pageRow.FindAllStringSubmatch(string(page), -1) {
		if m[3] != "tests/intercept" {
			return nil, fmt.Errorf("%s names a test in %s, which is not known here", m[1], m[3])
		}
		rows = append(rows, row{m[1], m[2], m[3], m[4]})
	}
	want := 0
	for _, m := range pageSum.FindAllStringSubmatch(string(page), -1) {
		var a, b int
		fmt.Sscan(m[1]+" "+m[2], &a, &b)
		want += a + b
	}
	if len(rows) != want || want == 0 {
		return nil, fmt.Errorf("coverage page: %d wrappers with a test, %d counted", len(rows), want)
	}
	return rows, nil
}

// tree is a copy of the repository, with what is built from it.
type tree struct{ dir, root, gen, out string }

// copyTree copies what git knows or would add, and refers to build and .cache.
func copyTree(ctx context.Context, root string) (*tree, error) {
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return nil, err
	}
	t := &tree{dir, filepath.Join(dir, "tree"), filepath.Join(dir, "out/cuda-intercept/gen"), filepath.Join(dir, "build")}
	err = t.fill(ctx, root)
	if err != nil {
		err = errors.Join(err, t.remove())
	}
	return t, err
}

func (t *tree) fill(ctx context.Context, root string) error {
	for _, sub := range []string{"tree/build", "tmp"} {
		if err := os.MkdirAll(filepath.Join(t.dir, sub), 0o755); err != nil {
			return err
		}
	}
	const files = `git ls-files -coz --exclude-standard | while IFS= read -rd '' f; do [ ! -f "$f" ] || printf '%s\0' "$f"; done | tar -c --null -T - | tar -x -C "$1"`
	if out, err := t.command(ctx, root, "bash", "-euo", "pipefail", "-c", files, "bash", t.root); err != nil {
		return fmt.Errorf("copy the repository: %w\n%s", err, out)
	}
	for _, name := range []string{"build/bin", "build/simgpu", ".cache"} {
		at, err := filepath.EvalSymlinks(filepath.Join(root, name))
		if err != nil {
			return fmt.Errorf("%w; run make build", err)
		}
		if err := os.Symlink(at, filepath.Join(t.root, name)); err != nil {
			return err
		}
	}
	// Saves half a minute; make sees what is out of date.
	objects := filepath.Join(root, "build/obj/intercept/x86_64")
	if err := os.MkdirAll(filepath.Join(t.out, "obj/intercept"), 0o755); err != nil {
		return err
	}
	if out, err := t.command(ctx, root, "cp", "-a", objects, filepath.Join(t.out, "obj/intercept")); err != nil {
		return fmt.Errorf("copy objects: %w\n%s", err, out)
	}
	if out, err := t.command(ctx, t.root, "go", "build", "-o", filepath.Join(t.dir, "hooks"), "./internal/gen/hooks"); err != nil {
		return fmt.Errorf("build the generator: %w\n%s", err, out)
	}
	if out, err := t.command(ctx, t.root, "go", "test", "-c", "-o", filepath.Join(t.dir, "intercept.test"), "./tests/intercept"); err != nil {
		return fmt.Errorf("build the tests: %w\n%s", err, out)
	}
	return nil
}

// build builds the libraries without one wrapper, or with all if symbol is empty.
func (t *tree) build(ctx context.Context, symbol string) error {
	if out, err := t.command(ctx, t.root, filepath.Join(t.dir, "hooks"), "-root", ".", "-out", filepath.Join(t.dir, "out"), "-without", symbol); err != nil {
		return fmt.Errorf("generate without %q: %w\n%s", symbol, err, out)
	}
	// The objects were compiled against these.
	for _, name := range []string{"cuda_hooks.h", "nvml_hooks.h"} {
		want, err := os.ReadFile(filepath.Join(t.root, "cuda-intercept/gen", name))
		if err != nil {
			return err
		}
		got, err := os.ReadFile(filepath.Join(t.gen, name))
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s without %q is not the committed one: run make generate", name, symbol)
		}
	}
	if out, err := t.command(ctx, filepath.Join(t.root, "cuda-intercept"), "make", "x86_64", "GEN="+t.gen, "BUILD="+t.out); err != nil {
		return fmt.Errorf("build without %q: %w\n%s", symbol, err, out)
	}
	return nil
}

func (t *tree) test(ctx context.Context, name string) (string, error) {
	return t.command(ctx, filepath.Join(t.root, "tests/intercept"), filepath.Join(t.dir, "intercept.test"), "-test.run", "^"+name+"$", "-test.timeout", "60s")
}

// mutate takes a wrapper out and runs its test, twice if it fails: a loaded machine
// may fail a test once.
func (t *tree) mutate(ctx context.Context, r row) (result, error) {
	res := result{row: r}
	if err := t.build(ctx, r.symbol); err != nil {
		return res, err
	}
	for range 2 {
		out, err := t.test(ctx, r.test)
		if ctx.Err() != nil {
			return res, ctx.Err()
		}
		if err == nil {
			return res, nil
		}
		res.said = t.reason(out)
	}
	res.red = true
	return res, nil
}

func (t *tree) reason(out string) string {
	for _, r := range reasons {
		if m := r.FindStringSubmatch(strings.ReplaceAll(out, t.root+"/", "")); m != nil {
			if len(m[1]) > 110 {
				return m[1][:110] + " …"
			}
			return m[1]
		}
	}
	return ""
}

// command runs a program and all that it starts; they end with ctx.
func (t *tree) command(ctx context.Context, dir, name string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // ours
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.Env = append(os.Environ(), "GPUSHARE_TEST_GEN="+t.gen, "GPUSHARE_TEST_LIB="+filepath.Join(t.out, "lib"), "TMPDIR="+filepath.Join(t.dir, "tmp"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return out.String(), err
}

// remove takes away the copy, and the mounts that tests have left in it.
func (t *tree) remove() error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for _, line := range strings.Split(string(mounts), "\n") {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], t.dir+"/") {
			err = errors.Join(err, unix.Unmount(f[1], unix.MNT_DETACH))
		}
	}
	return errors.Join(err, os.RemoveAll(t.dir))
}
