// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

// usable fails the test unless the container can use its GPU up to limit bytes,
// and no more: the program of an exec gets memory, and the device nodes can still
// be opened as far as the container's cgroup decides it.
func usable(t *testing.T, n *node.Node, c container, limit uint64, after string) {
	t.Helper()
	r := c.exec(within(t), "alloc-link", "--fill")
	if r.Err != nil || !strings.Contains(r.Stdout, fmt.Sprintf("total %d device %d", limit, limit)) || !strings.Contains(r.Stdout, "OUT_OF_MEMORY (2)") {
		t.Errorf("after %s: %s %v", after, r.Stdout, r.Err)
	}
	if got := high(t, n, c); got != limit {
		t.Errorf("after %s: limit %d, the simulator counts at most %d", after, limit, got)
	}
	// The simulated nodes have no driver behind them: who may open one is told so,
	// who may not is told that instead.
	if r := c.exec(within(t), "dd", "if=/dev/nvidiactl", "of=/dev/null"); !strings.Contains(r.Stderr, "No such device") {
		t.Errorf("after %s the device node cannot be opened: %q", after, r.Stderr)
	}
	if r := c.exec(within(t), "sh", "-c", "mknod /tmp/other c 195 1 && dd if=/tmp/other of=/dev/null; rm -f /tmp/other"); !strings.Contains(r.Stderr, "not permitted") {
		t.Errorf("after %s another GPU's node can be opened: %q", after, r.Stderr)
	}
}

// A running container keeps its GPU and its limit through everything that Docker
// does to it: exec, update of other limits, pause, restart, and dockerd's own end.
func TestDockerLife(t *testing.T) {
	generations(t, node.Options{GPUs: 2, EditDaemon: func(n *node.Node, daemon map[string]any) {
		daemon["live-restore"] = true
	}}, func(t *testing.T, n *node.Node) {
		c := createDocker(t, n, []string{"-e", "GPUSHARE_MEMORY=1Gi", "-e", "GPUSHARE_GPU=0", "--memory", "512m", "--restart", "always"}, "sleep", "100000")
		do := func(args ...string) {
			t.Helper()
			if r := n.Docker(within(t), args...); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		do("start", c.id)
		usable(t, n, c, gib, "start")
		do("update", "--cpus", "0.5", "--memory", "256m", "--memory-swap", "-1", "--pids-limit", "100", c.id)
		usable(t, n, c, gib, "update")
		do("pause", c.id)
		do("unpause", c.id)
		usable(t, n, c, gib, "pause")
		do("rename", c.id, "renamed")
		do("restart", "-t", "0", c.id)
		usable(t, n, c, gib, "restart")

		t.Run("dockerd killed", func(t *testing.T) {
			holder := c.enter(t, "alloc", "--fill", "--hold", "stdin")
			expect(t, holder, "holding pid ")
			for i := range 2 {
				if err := n.Dockerd().Kill(); err != nil {
					t.Fatal(err)
				}
				if got := account(t, n, c); got.MemoryBytes != gib {
					t.Errorf("without dockerd the program holds %d bytes", got.MemoryBytes)
				}
				if i == 1 { // our own daemon as well
					if err := n.Daemon().Kill(); err != nil {
						t.Fatal(err)
					}
					if err := n.StartDaemon(within(t)); err != nil {
						t.Fatal(err)
					}
				}
				if err := n.StartDockerd(within(t)); err != nil {
					t.Fatal(err)
				}
				if r := n.Docker(within(t), "inspect", "-f", "{{.State.Running}} {{.RestartCount}}", c.id); r.Stdout != "true 0\n" {
					t.Errorf("with live-restore the container is not running as before: %q %v", r.Stdout, r.Err)
				}
				// What it holds is still counted.
				if r := c.exec(within(t), "alloc", "--take", "512B"); strings.Contains(r.Stdout, "took 512 bytes: CUDA_SUCCESS") {
					t.Errorf("memory beyond the limit: %s", r.Stdout)
				}
			}
			pid := strings.TrimSpace(n.Docker(within(t), "inspect", "-f", "{{.State.Pid}}", c.id).Stdout)
			if _, err := os.Stat(filepath.Join("/proc", pid)); err != nil {
				t.Errorf("the container's process: %v", err)
			}
		})
		do("restart", "-t", "0", c.id)
		usable(t, n, c, gib, "the second restart")
		// It must end for good although it is always started again.
		do("rm", "-f", c.id)
		soon(t, 2*time.Second, "share released", func() bool {
			return strings.TrimSpace(n.CLI(within(t), "ps", "-q").Stdout) == ""
		})
		if m := n.Mounts("/run/c/"); m != 0 {
			t.Errorf("%d mounts of ended containers are left", m)
		}
	})
}
