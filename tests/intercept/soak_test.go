// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import "os"

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
