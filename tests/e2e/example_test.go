// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// The example for Docker does what it says.
func TestDockerExample(t *testing.T) {
	n := up(t, node.Options{})
	env := append(n.DockerEnv(), "IMAGE=small", "PROBE=nvml")
	r := node.Run(within(t), env, filepath.Join(root, "examples/docker/two-tenants.sh"))
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	for _, limit := range []uint64{6 * gib, 2 * gib} {
		if want := fmt.Sprintf("memory total %d ", limit); !strings.Contains(r.Stdout, want) {
			t.Errorf("no %q in:\n%s", want, r.Stdout)
		}
	}
}
