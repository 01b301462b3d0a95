// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// limited fails the test unless a program's output shows a card of limit bytes and
// the simulator never counted more for its container.
func limited(t *testing.T, n *node.Node, c container, r node.Result, limit uint64) {
	t.Helper()
	if r.Err != nil {
		t.Error(r.Err)
		return
	}
	if !strings.Contains(r.Stdout, fmt.Sprintf("total %d device %d", limit, limit)) || !strings.Contains(r.Stdout, "OUT_OF_MEMORY (2)") {
		t.Errorf("not limited to %d: %s", limit, r.Stdout)
	}
	if got := high(t, n, c); got != limit {
		t.Errorf("limit %d, the simulator counts at most %d", limit, got)
	}
}

// A driver's CDI spec with hooks, as NVIDIA's toolkit writes it, serves as well.
func TestSpecWithHooks(t *testing.T) {
	each(t, node.Options{CDIHooks: true}, func(t *testing.T, n *node.Node, e engine) {
		c, r := e.run(t, share("2Gi"), "alloc-link", "--fill")
		limited(t, n, c, r, 2*gib)
	})
}

// A container that asks for a GPU but no share gets the node's default.
func TestDefaultShare(t *testing.T) {
	n := up(t, node.Options{DefaultMemory: "3Gi", EnginePath: fakeHook(t)})
	d := docker{n}
	c := d.create(t, nil, []string{"--gpus", "all"}, "alloc", "--fill")
	t.Cleanup(c.remove)
	limited(t, n, c, n.Docker(within(t), "start", "-a", c.id), 3*gib)
	// Its own words go first.
	c = d.create(t, share("1Gi"), []string{"--gpus", "all"}, "alloc", "--fill")
	t.Cleanup(c.remove)
	limited(t, n, c, n.Docker(within(t), "start", "-a", c.id), gib)
}

// Neither rights nor the lack of them change the limit, and a container that is
// started again has it again.
func TestRightsAndRestart(t *testing.T) {
	generations(t, node.Options{}, rightsAndRestart)
}

func rightsAndRestart(t *testing.T, n *node.Node) {
	d := docker{n}
	for name, flags := range map[string][]string{
		"no rights at all": {"--user", "1000:1000", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only"},
		"all capabilities": {"--cap-add", "ALL"},
		"no seccomp":       {"--security-opt", "seccomp=unconfined"},
		"own /dev/shm":     {"--ipc", "private", "--shm-size", "16m"},
		"init":             {"--init"},
	} {
		t.Run(name, func(t *testing.T) {
			c := d.create(t, share("1Gi"), flags, "alloc", "--fill")
			t.Cleanup(c.remove)
			r := n.Docker(within(t), "start", "-a", c.id)
			if r.Err != nil && name != "no rights at all" {
				refused(t, r) // refused with a reason is fine, free is not
				return
			}
			limited(t, n, c, r, gib)
			if name != "no rights at all" {
				return
			}
			for range 3 {
				limited(t, n, c, n.Docker(within(t), "start", "-a", c.id), gib)
			}
		})
	}
}

// A container sees the GPUs that it was granted and no other, each with its limit.
func TestTwoGPUs(t *testing.T) {
	each(t, node.Options{GPUs: 2}, func(t *testing.T, n *node.Node, e engine) {
		for _, c := range []struct {
			gpu  string
			want int
		}{{"0", 1}, {"1", 1}, {"0,1", 2}, {"auto", 1}} {
			t.Run(c.gpu, func(t *testing.T) {
				k, r := e.run(t, append(share("1Gi"), "GPUSHARE_GPU="+c.gpu), "nvml")
				if r.Err != nil {
					t.Fatal(r.Err)
				}
				if got := strings.Count(r.Stdout, fmt.Sprintf("memory total %d ", gib)); got != c.want || strings.Count(r.Stdout, "gpu ") != c.want {
					t.Errorf("want %d GPUs of %d bytes: %s", c.want, gib, r.Stdout)
				}
				k.remove()
			})
		}
		c, r := e.run(t, append(share("1Gi"), "GPUSHARE_GPU=0,1"), "sh", "-c", "alloc --fill --gpu 0 && alloc --fill --gpu 1")
		if r.Err != nil || strings.Count(r.Stdout, fmt.Sprintf("filled %d bytes", gib-300*mib)) != 2 {
			t.Errorf("each GPU has the limit: %s %v", r.Stdout, r.Err)
		}
		if got := high(t, n, c); got != 2*gib {
			t.Errorf("two GPUs with %d each, the simulator counts at most %d", gib, got)
		}
	})
}
