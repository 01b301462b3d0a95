// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"os"
	"path/filepath"

	"github.com/gpushare/gpushare/limiter/region"
)

// soaking tells whether to make the full count of what else is a sample: some
// minutes in all. `make soak-intercept` does.
func soaking() bool { return os.Getenv("GPUSHARE_TEST_SOAK") != "" }

// often is how often to do a thing: few times, or the full count.
func often(few, full int) int {
	if soaking() {
		return full
	}
	return few
}

// swept is the sum of the ledger of the first GPU after a look for the dead, as the
// daemon takes it.
func (c *container) swept() uint64 {
	c.t.Helper()
	l, err := region.OpenLedger(filepath.Join(c.dir, "ledger"), c.limits.GPUs())
	if err != nil {
		c.t.Fatal(err)
	}
	defer l.Close()
	u, err := l.Sweep()
	if err != nil {
		c.t.Fatal(err)
	}
	return u.GPU[0].Bytes
}
