// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
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
