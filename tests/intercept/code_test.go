// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"path/filepath"
	"testing"

	"github.com/gpushare/gpushare/limiter/region"
)

// growing starts a node whose card takes memory for code, stacks and graphs, as
// hardware does.
func growing(t *testing.T) *node {
	t.Helper()
	return simulateGPUs(t, 1, "--profile", "h100")
}

// growingLimit is the limit on that card, with what a calibration finds there.
func (n *node) growingLimit(bytes uint64) region.GPULimit {
	g := n.limit(0, bytes)
	g.BlockBytes, g.ModuleBytes, g.StackThreads, g.GraphNodeBytes = 2*mib, 2*mib, 270336, 10486
	return g
}

// What calls make the driver take without saying how much, at the limit:
// cuda-intercept/test/code.c.
func TestCode(t *testing.T) {
	n := growing(t)
	program := compile(t, "code.c")
	for _, mode := range []string{"LAZY", "EAGER"} {
		c := n.containerOn(n.growingLimit(2048 * mib))
		c.env = append(c.env, "CUDA_MODULE_LOADING="+mode)
		args := []string{filepath.Join(t.TempDir(), "k.ptx")}
		if mode == "EAGER" {
			args = append(args, "eager")
		}
		if out, err := c.run(program, args...); err != nil || out != "" {
			t.Errorf("%s: %v\n%s", mode, err, out)
		}
	}
}
