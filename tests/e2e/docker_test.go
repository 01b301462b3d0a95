// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// currentDocker is a node with two GPUs and a current Docker that knows the driver's CDI
// specification and, as far as it is asked to, our shim.
func currentDocker(t *testing.T) *node.Node {
	return up(t, withCurrent(t, node.Options{GPUs: 2, EditDaemon: func(n *node.Node, daemon map[string]any) {
		daemon["cdi-spec-dirs"] = []string{n.DriverCDI()}
		daemon["live-restore"] = true
		runtimes := daemon["runtimes"].(map[string]any)
		runtimes["shim"] = map[string]any{"runtimeType": n.Bin("containerd-shim-gpushare-v1")}
	}}))
}

// ways of naming our runtime to a current Docker. The node's shim lies on the PATH
// of its containerd.
var dockerRuntimes = map[string]string{
	"path":                 node.Runtime,
	"runtimeType":          "shim",
	"the shim by its name": "io.containerd.gpushare.v1",
}

// runLimited runs a program that fills its share and checks that it got limit bytes.
func runLimited(t *testing.T, n *node.Node, limit uint64, flags ...string) {
	t.Helper()
	c := createDocker(t, n, flags, "alloc-link", "--fill")
	limited(t, n, c, n.Docker(within(t), "start", "-a", c.id), limit)
}

// createDocker makes a container with flags; without --runtime among them, with
// our runtime by path.
func createDocker(t *testing.T, n *node.Node, flags []string, args ...string) container {
	t.Helper()
	if !strings.Contains(strings.Join(flags, " "), "--runtime") {
		flags = append([]string{"--runtime", node.Runtime}, flags...)
	}
	r := n.Docker(within(t), append(append(append([]string{"create", "--network", "none"}, flags...), "small"), args...)...)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	c := container{id: strings.TrimSpace(r.Stdout)}
	c.remove = func() { n.Docker(context.Background(), "rm", "-f", c.id) }
	c.exec = func(ctx context.Context, args ...string) node.Result {
		return n.Docker(ctx, append([]string{"exec", c.id}, args...)...)
	}
	c.enter = func(t *testing.T, args ...string) *node.Session {
		return talk(t, n.DockerEnv(), append([]string{n.DockerCommand(), "exec", "-i", c.id}, args...)...)
	}
	t.Cleanup(c.remove)
	return c
}

// startRefused fails the test unless a container with these flags is refused with
// a reason.
func startRefused(t *testing.T, n *node.Node, flags []string, words ...string) {
	t.Helper()
	c := createDocker(t, n, flags, "echo", "started")
	refused(t, n.Docker(within(t), "start", "-a", c.id), words...)
	c.remove()
}

// namedDocker is a current Docker with our runtime under one of its names.
type namedDocker struct {
	docker
	runtime string
}

func (d namedDocker) run(t *testing.T, env []string, args ...string) (container, node.Result) {
	t.Helper()
	flags := []string{"--runtime", d.runtime}
	for _, e := range env {
		flags = append(flags, "-e", e)
	}
	c := createDocker(t, d.n, flags, args...)
	return c, d.n.Docker(within(t), "start", "-a", c.id)
}

// The memory limit under a current Docker, to the byte. Path mode is TestMemoryLimit's.
func TestMemoryLimitDocker(t *testing.T) {
	n := currentDocker(t)
	versions(t, n)
	for _, name := range slices.Sorted(maps.Keys(dockerRuntimes)) {
		if name == "path" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for _, c := range byLookup {
				t.Run(c.name, func(t *testing.T) { c.check(t, n, namedDocker{docker{n}, dockerRuntimes[name]}) })
			}
		})
	}
}

// A current Docker holds containers to their share, however our runtime is named
// to it.
func TestDockerRuntimes(t *testing.T) {
	n := currentDocker(t)
	versions(t, n)
	for name, runtime := range dockerRuntimes {
		t.Run(name, func(t *testing.T) {
			runLimited(t, n, gib, "--runtime", runtime, "-e", "GPUSHARE_MEMORY=1Gi")
			startRefused(t, n, []string{"--runtime", runtime, "-e", "GPUSHARE_MEMORY=8G"}, "8Gi")
			startRefused(t, n, []string{"--runtime", runtime, "--privileged", "-e", "GPUSHARE_MEMORY=1Gi"}, "privileged")
			startRefused(t, n, []string{"--runtime", runtime, "--device", "nvidia.com/gpu=0"}, "GPUSHARE_MEMORY")
			r := n.Docker(within(t), "run", "--rm", "--runtime", runtime, "--network", "none", "small", "echo", "plain")
			if r.Stdout != "plain\n" || r.Stderr != "" {
				t.Errorf("a container without a GPU: %q %q %v", r.Stdout, r.Stderr, r.Err)
			}
		})
	}
}

// Requests come by annotation too; what is not understood, or contradicts the
// environment, starts nothing.
func TestDockerAnnotations(t *testing.T) {
	n := currentDocker(t)
	for name, runtime := range dockerRuntimes {
		t.Run(name, func(t *testing.T) {
			with := func(flags ...string) []string { return append([]string{"--runtime", runtime}, flags...) }
			runLimited(t, n, 2*gib, with("--annotation", "gpushare.io/memory=2Gi")...)
			runLimited(t, n, 2*gib, with("--annotation", "gpushare.io/memory=2Gi", "--annotation", "gpushare.io/gpu=1", "--annotation", "example.com/x=y")...)
			runLimited(t, n, 2*gib, with("--annotation", "gpushare.io/memory=2Gi", "-e", "GPUSHARE_MEMORY=2Gi")...)
			startRefused(t, n, with("--annotation", "gpushare.io/memory=2Gi", "-e", "GPUSHARE_MEMORY=1Gi"), "GPUSHARE_MEMORY", "gpushare.io/memory", "2Gi", "1Gi")
			startRefused(t, n, with("--annotation", "gpushare.io/memroy=2Gi"), "did you mean", "gpushare.io/memory")
			startRefused(t, n, with("--annotation", "gpushare.io/memroy=2Gi", "--annotation", "gpushare.io/memory=2Gi"), "did you mean")
			startRefused(t, n, with("--annotation", "gpushare.io/memory.web=2Gi"), "gpushare.io/memory")
			startRefused(t, n, with("--annotation", "gpushare.io/memory="), "empty")
			startRefused(t, n, with("--annotation", "gpushare.io/compute=30%"), "memory")
			// A mark of ours in the request proves nothing.
			runLimited(t, n, gib, with("--annotation", "gpushare.io/claim=x sha256:0123456789abcdef", "-e", "GPUSHARE_MEMORY=1Gi")...)
			startRefused(t, n, with("--annotation", "gpushare.io/claim=x", "--device", "nvidia.com/gpu=0"), "GPUSHARE_MEMORY")
		})
	}
	if r := n.CLI(within(t), "ps", "-q"); strings.TrimSpace(r.Stdout) != "" || r.Err != nil {
		t.Errorf("ended and refused containers left shares: %q %v", r.Stdout, r.Err)
	}
}

// Docker's own words for GPUs give no more than the share, and only the granted
// GPU, whether or not NVIDIA's programs are where dockerd looks for them.
func TestDockerGPUs(t *testing.T) {
	for name, programs := range map[string][]string{
		"no program of NVIDIA's": nil,
		"nvidia-cdi-hook":        {"nvidia-cdi-hook"},
		"both hooks":             {"nvidia-cdi-hook", "nvidia-container-runtime-hook"},
		"the old hook":           {"nvidia-container-runtime-hook"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, p := range programs {
				if err := os.WriteFile(filepath.Join(dir, p), []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			n := up(t, withCurrent(t, node.Options{GPUs: 2, EnginePath: dir, EditDaemon: func(n *node.Node, daemon map[string]any) {
				daemon["cdi-spec-dirs"] = []string{n.DriverCDI()}
			}}))
			for _, flags := range [][]string{
				{"--gpus", "all"}, {"--gpus", "1"}, {"--gpus", `"device=1"`}, {"--gpus", "all,capabilities=graphics"},
				{"--device", "nvidia.com/gpu=0"}, {"--device", "nvidia.com/gpu=all"},
			} {
				asks := strings.Join(flags, " ")
				c := createDocker(t, n, flags, "echo", "started")
				r := n.Docker(within(t), "start", "-a", c.id)
				// Where dockerd knows no such GPU, it says so itself.
				if flags[0] != "--gpus" || len(programs) > 0 {
					refused(t, r, "GPUSHARE_MEMORY")
				} else if r.Code == 0 {
					t.Errorf("%s was started: %q", asks, r.Stdout)
				}
				flags = append(flags, "-e", "GPUSHARE_MEMORY=1Gi", "-e", "GPUSHARE_GPU=0")
				c = createDocker(t, n, flags, "sh", "-c", "ls /dev/nvidia[0-9]* && nvml && alloc-link --fill")
				r = n.Docker(within(t), "start", "-a", c.id)
				if r.Err != nil {
					if len(programs) > 0 {
						t.Errorf("%s with a share: %v", asks, r.Err)
					}
					continue
				}
				limited(t, n, c, r, gib)
				if strings.Count(r.Stdout, "/dev/nvidia") != 1 || strings.Count(r.Stdout, "gpu ") != 1 {
					t.Errorf("%s with GPU 0 sees %s", asks, r.Stdout)
				}
			}
		})
	}
}
