// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"slices"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// The memory limit under containerd, by each way from it to our code.
func TestMemoryLimitContainerd(t *testing.T) {
	builds := containerdBuilds
	if *everyEngine {
		builds = slices.Concat(builds, olderBuilds)
	}
	containerds(t, builds, func(t *testing.T, k *containerdNode) {
		k.each(t, func(t *testing.T, w way) {
			for _, c := range byLookup {
				t.Run(c.name, func(t *testing.T) { c.check(t, k.n, w) })
			}
		})
	})
}

// What is exec'd into a container has its limit too, whatever its environment, and
// every byte is back a second after its last holder is gone.
func TestExecContainerd(t *testing.T) {
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		k.each(t, func(t *testing.T, w way) {
			if w.name == "ctr, wrapper" || w.name == "cri, shim by path" {
				return // they differ from the others only before the container runs
			}
			c := w.background(t, share("2Gi")...)
			processes(t, k.n, c)
			c.remove()
		})
	})
}

// On a containerd that forgets runtime_path, a handler with our shim's path runs
// plain runc without a word: nobody may rely on that key there.
func TestRuntimePathIgnored(t *testing.T) {
	k := containerdOf(t, "apt")
	if !k.ignoresRuntimePath() {
		t.Skipf("containerd %s honours runtime_path", k.c.Version)
	}
	e := criEngine{k, node.HandlerShimPath}
	_, r := e.run(t, share("1Gi"), "sh", "-c", "ls /run/gpushare 2>/dev/null; echo plain")
	if r.Stdout != "plain\n" {
		t.Errorf("containerd %s honours runtime_path now, take the exception out: %q %v", k.c.Version, r.Stdout, r.Err)
	}
}
