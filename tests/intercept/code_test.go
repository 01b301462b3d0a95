// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// growing starts a node whose card takes memory for code, stacks and graphs, as
// hardware does.
func growing(t *testing.T) *node {
	t.Helper()
	return simulateGPUs(t, 1, "--profile", "h100")
}

// What calls make the driver take without saying how much, at the limit:
// cuda-intercept/test/code.c.
func TestCode(t *testing.T) {
	n := growing(t)
	program := compile(t, "code.c")
	for _, mode := range []string{"LAZY", "EAGER"} {
		c := n.container(2048 * mib)
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

// What an image tells of its size: cuda-intercept/test/image.c.
func TestImages(t *testing.T) {
	src := filepath.Join(root(t), "cuda-intercept/src")
	program := compile(t, "image.c", "-I", src, filepath.Join(src, "image.c"))
	if out, err := exec.Command(program).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
