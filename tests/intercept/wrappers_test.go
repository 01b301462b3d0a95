// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"strings"
	"testing"

	"github.com/gpushare/gpushare/limiter/region"
)

// The memory wrappers against a stand-in driver that keeps its own account; the
// cases are in cuda-intercept/test/wrappers.c.
func TestWrappers(t *testing.T) {
	c := newContainer(t, region.GPULimit{
		UUID: standInUUID(0), MemoryLimit: 1024 * mib, ContextBytes: 100 * mib, CeilingMilli: 1000,
	})
	c.driver = standIn(t)
	if out, err := c.run(compile(t, "wrappers.c")); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
}

// The views of NVML, and the guard that keeps them from the real library's own
// questions; the cases are in cuda-intercept/test/nvmlguard.c.
func TestNVMLGuard(t *testing.T) {
	c := newContainer(t, standInLimit())
	c.nvml = standInNVML(t)
	if out, err := c.run(compile(t, "nvmlguard.c")); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
	// No page: nothing of the card is shown.
	c = newContainer(t)
	c.nvml = standInNVML(t)
	out, err := c.run(compile(t, "nvmlguard.c"))
	if err == nil || !strings.Contains(out, "(dev, &m) = 4, want 0") || !strings.Contains(out, "(dev, &n, list) = 4, want 0") {
		t.Errorf("without a page: %v\n%s", err, out)
	}
}
