// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

var everyEngine = flag.Bool("engines", false, "try every case with every engine that is there, which takes long")

// current is the directory of a current Docker's programs; a test that needs one
// is skipped where none has been built, and without -engines: what a run tries must
// not depend on what another has built.
func current(t *testing.T) string {
	t.Helper()
	if !*everyEngine {
		t.Skip("a current Docker is tried by make test-engines")
	}
	found, _ := filepath.Glob(filepath.Join(root, ".cache/engines/docker-*/bin"))
	for _, dir := range found {
		if !slices.ContainsFunc([]string{"dockerd", "containerd", "runc", "docker"}, func(program string) bool {
			_, err := os.Stat(filepath.Join(dir, program))
			return err != nil
		}) {
			return dir
		}
	}
	t.Skip("no current Docker is built here: tests/setup/engines-docker.sh builds one, as make test-engines does")
	return ""
}

// withCurrent are options for a node with a current Docker, containerd and runc.
func withCurrent(t *testing.T, opts node.Options) node.Options {
	t.Helper()
	dir := current(t)
	opts.Runc = filepath.Join(dir, "runc")
	if opts.EnginePath != "" {
		dir += string(filepath.ListSeparator) + opts.EnginePath
	}
	opts.EnginePath = dir
	return opts
}

// generations runs a test on a node with this machine's engines, and on one with
// current ones if they are built. Each has Docker, containerd and runc.
func generations(t *testing.T, opts node.Options, test func(t *testing.T, n *node.Node)) {
	t.Run("this machine's", func(t *testing.T) {
		n := up(t, opts)
		versions(t, n)
		test(t, n)
	})
	t.Run("current", func(t *testing.T) {
		n := up(t, withCurrent(t, opts))
		versions(t, n)
		test(t, n)
	})
}

// versions logs which engines these are.
func versions(t *testing.T, n *node.Node) {
	t.Helper()
	_, containerd, _ := strings.Cut(n.Ctr(within(t), "version").Stdout, "Server:")
	_, containerd, _ = strings.Cut(containerd, "Version:")
	containerd, _, _ = strings.Cut(strings.TrimSpace(containerd), "\n")
	t.Logf("docker %s, containerd %s", strings.TrimSpace(n.Docker(within(t), "version", "--format", "{{.Server.Version}}").Stdout), containerd)
}

// program is what is run in an image, its directory / unless it says another.
type program struct {
	env, args []string
	cwd       string
}

// imageOf makes an image of a root file system known to an engine. What it
// returns runs a program in it, by gpushare, to its end; id is a part of the
// container's cgroup.
//
//	runc    the wrapper, without an engine
//	docker  the wrapper, by path
//	ctr     containerd's own shim, the wrapper as its low-level runtime
//	shim    containerd with our shim
//	podman  the wrapper, by path
func imageOf(t *testing.T, n *node.Node, engine, rootfs string) func(*testing.T, program) (id string, r node.Result) {
	t.Helper()
	next := func() string { return fmt.Sprintf("%s%d", engine, serial.Add(1)) }
	switch engine {
	case "runc":
		return func(t *testing.T, p program) (string, node.Result) {
			id := next()
			b, err := n.NewBundle(within(t), id, node.Spec{Rootfs: rootfs, Args: p.args, Env: p.env, Edit: func(spec map[string]any) {
				if p.cwd != "" {
					spec["process"].(map[string]any)["cwd"] = p.cwd
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			return id, b.Run(within(t))
		}
	case "docker":
		image := next()
		if err := n.Import(within(t), rootfs, image); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Docker(context.Background(), "rmi", "-f", image) })
		return func(t *testing.T, p program) (string, node.Result) {
			argv := append([]string{"create"}, docker{n}.args(p.env)...)
			if p.cwd != "" {
				argv = append(argv, "--workdir", p.cwd)
			}
			r := n.Docker(within(t), append(append(argv, image), p.args...)...)
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			id := strings.TrimSpace(r.Stdout)
			t.Cleanup(func() { n.Docker(context.Background(), "rm", "-f", id) })
			return id, n.Docker(within(t), "start", "-a", id)
		}
	case "podman":
		image := next()
		if err := n.PodmanImport(within(t), rootfs, image); err != nil {
			t.Fatal(err)
		}
		return func(t *testing.T, p program) (string, node.Result) {
			flags := variables(p.env)
			if p.cwd != "" {
				flags = append(flags, "--workdir", p.cwd)
			}
			c := podman{n, image}.create(t, flags, p.args...)
			return c.id, n.Podman(within(t), "start", "-a", c.id)
		}
	case "ctr", "shim":
		flags := []string{"--runc-binary", n.Bin("gpushare-runtime")}
		if engine == "shim" {
			shim := n.Bin("containerd-shim-gpushare-v1")
			if _, err := os.Stat(shim); err != nil {
				t.Skipf("there is no shim: %v", err)
			}
			flags = []string{"--runtime", shim}
		}
		return func(t *testing.T, p program) (string, node.Result) {
			id := next()
			argv := append([]string{"run", "--rm", "--cgroup", n.Cgroup(id), "--rootfs"}, flags...)
			for _, e := range append([]string{"PATH=/usr/bin:/bin"}, p.env...) {
				argv = append(argv, "--env", e)
			}
			if p.cwd != "" {
				argv = append(argv, "--cwd", p.cwd)
			}
			return id, n.Ctr(within(t), append(append(argv, rootfs, id), p.args...)...)
		}
	}
	t.Fatalf("no engine is called %s", engine)
	return nil
}
