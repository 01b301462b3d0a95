// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// The bound of the blocks that small arrays occupy, against allocators that choose
// their holes by different rules: cuda-intercept/test/crowd.c.
func TestCrowd(t *testing.T) {
	src := filepath.Join(root(t), "cuda-intercept/src")
	program := compile(t, "crowd.c", "-I", src, filepath.Join(src, "crowd.c"))
	if out, err := exec.Command(program).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// Green contexts hold the primary context of their device, charge nothing else, and
// their work goes through the gate of their GPU: cuda-intercept/test/green.c.
func TestGreenContexts(t *testing.T) {
	n := simulateGPUs(t, 2)
	program := compile(t, "green.c")
	for dev := range 2 {
		c := n.containerOn(n.limit(1, 1024*mib), n.limit(0, 1024*mib)) // the page's order is not the driver's
		out, err := c.run(program, fmt.Sprint(contextBytes), fmt.Sprint(dev), fmt.Sprint(1-dev))
		if err != nil {
			t.Errorf("device %d: %v\n%s", dev, err, out)
		}
	}
}
