// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import "testing"

// What only the newest driver exports, on cards with NVLink and on cards without.
func TestNewest(t *testing.T) {
	up(t, "--gpus", "2", "--driver", "newest").run("newest", "nvlink")
	up(t, "--profile", "2xh100", "--driver", "newest").run("newest", "nvlink", "moves")
	up(t, "--profile", "2xt4", "--driver", "newest").run("newest", "pcie", "moves")
}
