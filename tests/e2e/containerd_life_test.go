// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/tests/node"
)

// holder is a container that holds all of its share, and a program in it.
type holder struct {
	container
	limit uint64
	s     *node.Session
}

func hold(t *testing.T, c container, limit uint64) holder {
	t.Helper()
	s := c.enter(t, "alloc", "--fill", "--hold", "stdin")
	expect(t, s, "holding")
	return holder{c, limit, s}
}

// full checks that the program is still there and holds all: one beside it gets
// the driver's out-of-memory error.
func (h holder) full(t *testing.T, when string) {
	t.Helper()
	if r := h.exec(within(t), "alloc", "--take", "512B"); !strings.Contains(r.Stdout+r.Stderr, "OUT_OF_MEMORY") {
		t.Errorf("%s: a second program in %s beside a full one: %q %v", when, h.id, r.Stdout, r.Err)
	}
}

// inPS says whether ps shows the container.
func inPS(t *testing.T, n *node.Node, id string) bool {
	t.Helper()
	r := n.CLI(within(t), "ps", "-q", "--no-trunc")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return strings.Contains(r.Stdout, id)
}

// nothingLeft waits until ps is empty, the simulator's accounts of the containers
// too, and no mount or directory of a container is left.
func nothingLeft(t *testing.T, k *containerdNode, ids ...string) {
	t.Helper()
	soon(t, 2*time.Second, "every share released", func() bool {
		return strings.TrimSpace(k.n.CLI(within(t), "ps", "-q").Stdout) == ""
	})
	soon(t, 2*time.Second, "every byte free", func() bool {
		for _, id := range ids {
			if account(t, k.n, container{id: id}).MemoryBytes != 0 {
				return false
			}
		}
		return true
	})
	soon(t, 2*time.Second, "no directory left", func() bool {
		left, err := os.ReadDir(k.n.RunDir() + "/c")
		return err == nil && len(left) == 0 && k.n.Mounts("/run/c/") == 0
	})
}

// Shares outlive containerd: limits and ps are right while it is dead and after its
// restart, and its containers can be entered and removed then.
func TestContainerdKilled(t *testing.T) {
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		var all []holder
		for _, w := range k.ways() {
			if c, ok := w.engine.(ctrEngine); ok {
				all = append(all, hold(t, c.background(t, share("2Gi")...), 2*gib))
				continue
			}
			e := w.engine.(criEngine)
			p := e.pod(t, map[string]string{"gpushare.io/memory.one": "1Gi", "gpushare.io/memory.two": "3Gi"})
			for name, limit := range map[string]uint64{"one": gib, "two": 3 * gib} {
				c := e.start(t, p, node.CRIContainer{Name: name, Args: []string{"sleep", "100000"}})
				all = append(all, hold(t, c, limit))
			}
		}
		right := func(when string) {
			t.Helper()
			for _, h := range all {
				if got := account(t, k.n, h.container).MemoryBytes; got != h.limit {
					t.Errorf("%s: %d bytes in use in %s, limit %d", when, got, h.id, h.limit)
				}
				if !inPS(t, k.n, h.id) {
					t.Errorf("%s: ps does not show %s", when, h.id)
				}
			}
		}
		right("before")
		if err := k.c.Process().Kill(); err != nil {
			t.Fatal(err)
		}
		right("containerd dead")
		if err := k.c.Start(within(t)); err != nil {
			t.Fatal(err)
		}
		right("containerd back")
		var ids []string
		for _, h := range all {
			h.full(t, "after containerd's restart")
			ids = append(ids, h.id)
		}
		for _, h := range all {
			h.remove()
			h.s.End()
		}
		nothingLeft(t, k, ids...)
		if left := bundles(k); len(left) != 0 {
			t.Errorf("bundles are left: %v", left)
		}
	})
}

// bundles are the containers that containerd keeps state of.
func bundles(k *containerdNode) []string {
	left, _ := filepath.Glob(k.c.BundleFile("*", "*", ""))
	return left
}

// When a shim is killed its containers die, and their shares are back in 2 s.
func TestShimKilledUnderLoad(t *testing.T) {
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		k.each(t, func(t *testing.T, w way) {
			var all []holder
			shim := ""
			switch e := w.engine.(type) {
			case ctrEngine:
				c := e.background(t, share("2Gi")...)
				all, shim = append(all, hold(t, c, 2*gib)), c.id
			case criEngine:
				p := e.pod(t, map[string]string{"gpushare.io/memory.one": "1Gi", "gpushare.io/memory.two": "3Gi"})
				shim = p.ID
				for _, name := range []string{"one", "two"} {
					c := e.start(t, p, node.CRIContainer{Name: name, Args: []string{"sleep", "100000"}})
					all = append(all, hold(t, c, 0))
				}
			}
			if there, err := k.c.KillShim(shim); err != nil || !there {
				t.Fatalf("kill the shim of %s: found %v, %v", shim, there, err)
			}
			took := soon(t, 2*time.Second, "shares back after the shim's death", func() bool {
				return strings.TrimSpace(k.n.CLI(within(t), "ps", "-q").Stdout) == ""
			})
			t.Logf("after the shim's death: %d shares back in %v", len(all), took.Round(time.Millisecond))
			var ids []string
			for _, h := range all {
				ids = append(ids, h.id)
			}
			nothingLeft(t, k, ids...)
			for _, h := range all {
				h.s.End()
				h.remove()
			}
		})
	})
}

// With the daemon dead a GPU container is refused, with the code in the words of
// the engine's own command; anything else starts as ever. What runs keeps its share.
func TestDaemonDownContainerd(t *testing.T) {
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		running := map[string]holder{}
		for _, w := range k.ways() {
			running[w.name] = hold(t, w.background(t, share("1Gi")...), gib)
		}
		if err := k.n.Daemon().Kill(); err != nil {
			t.Fatal(err)
		}
		k.each(t, func(t *testing.T, w way) {
			_, r := w.run(t, share("1Gi"), "echo", "started")
			refused(t, r, "gpushared", "GS-DAEMON-DOWN")
			_, r = w.run(t, nil, "echo", "started")
			if r.Stdout != "started\n" || r.Err != nil {
				t.Errorf("a container without a GPU: %q %q %v", r.Stdout, r.Stderr, r.Err)
			}
			running[w.name].full(t, "without the daemon")
		})
		if err := k.n.StartDaemon(within(t)); err != nil {
			t.Fatal(err)
		}
		for way, h := range running {
			if !inPS(t, k.n, h.id) {
				t.Errorf("%s: a restarted daemon does not know %s", way, h.id)
			}
			h.s.End()
			h.remove()
		}
		nothingLeft(t, k)
	})
}

// made says whether the daemon knows a first process of the container.
func made(t *testing.T, n *node.Node, id string) bool {
	t.Helper()
	var list v1.ContainerList
	r := n.CLI(within(t), "ps", "-o", "json")
	if err := json.Unmarshal([]byte(r.Stdout), &list); err != nil {
		t.Fatalf("ps: %v: %s%s", err, r.Stdout, r.Stderr)
	}
	return slices.ContainsFunc(list.Containers, func(c v1.Container) bool { return c.ID == id && c.PID != 0 })
}

// containerd is killed at moments all over the start and the end of containers:
// after its restart they are gone with all their bytes, and their shares are free,
// whatever became of their shims. A shim that containerd has forgotten may have made
// the container; as long as that is there, its share is its own.
func TestContainerdKilledAnywhere(t *testing.T) {
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		k.ctrs(t, func(t *testing.T, e ctrEngine) {
			begin := time.Now()
			c, r := e.run(t, share("1Gi"), "alloc", "--take", "1MiB")
			whole := time.Since(begin)
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			c.remove()
			const tries = 6
			for i := range tries {
				c, s := e.talk(t, share("1Gi"), "alloc", "--take", "1MiB")
				// Not a wait for something: the moment is what is tried.
				time.Sleep(whole * time.Duration(i+1) / (tries + 1))
				if err := k.c.Process().Kill(); err != nil {
					t.Fatal(err)
				}
				s.End()
				if err := k.c.Start(within(t)); err != nil {
					t.Fatal(err)
				}
				c.remove()
				soon(t, 2*time.Second, "the share released, or the container made", func() bool {
					return !inPS(t, k.n, c.id) || made(t, k.n, c.id)
				})
				// containerd forgets a shim, its own too, if it dies before it knows
				// whether the shim has made the task: that is not ours to judge.
				if left, err := k.c.KillShim(c.id); err != nil {
					t.Error(err)
				} else if left {
					t.Logf("kill %d of %d: containerd %s left the shim", i+1, tries, k.c.Version)
				}
				nothingLeft(t, k, c.id)
				if r := k.c.Ctr(context.Background(), "container", "list", "--quiet"); strings.Contains(r.Stdout, c.id) {
					t.Errorf("kill %d of %d: the container is still there", i+1, tries)
				}
			}
		})
	})
}
