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

	"github.com/gpushare/gpushare/tests/node"
)

// ctr's own word for GPUs enters a hook that calls NVIDIA's program, which would
// give the container the whole card: it is refused, or replaced by a share.
func TestCtrGPUs(t *testing.T) {
	dir := t.TempDir()
	called := filepath.Join(dir, "called")
	if err := os.WriteFile(filepath.Join(dir, "nvidia-container-cli"), []byte("#!/bin/sh\ntouch "+called+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", os.Getenv("PATH")+":"+dir)
	generations(t, node.Options{}, func(t *testing.T, n *node.Node) {
		for name, flags := range map[string][]string{
			"wrapper": {"--runc-binary", n.Bin("gpushare-runtime")},
			"shim":    {"--runtime", n.Bin("containerd-shim-gpushare-v1")},
		} {
			run := func(id string, more []string, args ...string) node.Result {
				argv := append([]string{"run", "--rm", "--cgroup", n.Cgroup(id), "--env", "PATH=/usr/bin:/bin", "--gpus", "0", "--rootfs"}, flags...)
				return n.Ctr(within(t), append(append(append(argv, more...), image(n), id), args...)...)
			}
			r := run("open"+name, nil, "echo", "started")
			if r.Code == 0 || strings.Contains(r.Stdout, "started") {
				t.Errorf("%s: started: %q", name, r.Stdout)
			}
			if strings.Contains(r.Stderr, "GPU vendor") {
				t.Logf("%s: containerd 2.4 finds no GPU by itself: %s", name, r.Stderr)
				continue
			}
			refused(t, r, "GPUSHARE_MEMORY")
			r = run("share"+name, []string{"--env", "GPUSHARE_MEMORY=1Gi"}, "alloc-link", "--fill")
			if r.Err != nil || !strings.Contains(r.Stdout, fmt.Sprintf("total %d device %d", gib, gib)) {
				t.Errorf("%s, with a share: %q %v", name, r.Stdout, r.Err)
			}
			if _, err := os.Stat(called); err == nil {
				t.Errorf("%s: NVIDIA's program was called", name)
			}
		}
	})
}
