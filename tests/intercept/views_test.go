// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import "testing"

// How busy NVML says that the card is: as busy as the container keeps it, whatever
// others do: cuda-intercept/test/use.c.
func TestOwnUse(t *testing.T) {
	c := newContainer(t, standInLimit())
	c.driver, c.nvml = standIn(t), standInNVML(t)
	c.limits.SetBusy(0, 372)
	if out, err := c.run(compile(t, "use.c")); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
}
