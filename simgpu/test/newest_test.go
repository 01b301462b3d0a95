// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"testing"
)

// What only the newest driver exports, on cards with NVLink and on cards without.
func TestNewest(t *testing.T) {
	up(t, "--gpus", "2", "--driver", "newest").run("newest", "nvlink")
	up(t, "--profile", "2xh100", "--driver", "newest").run("newest", "nvlink", "moves")
	up(t, "--profile", "2xt4", "--driver", "newest").run("newest", "pcie", "moves")
}

// A process that is checkpointed has no device memory, and gets it back.
func TestCheckpoint(t *testing.T) {
	for _, card := range []string{"exact", "t4"} {
		n := up(t, "--profile", card, "--kernel-time", "slow=1s")
		n.run("checkpoint")
		eventually(t, func() error {
			if u := n.used(); u != 0 {
				return fmt.Errorf("%d bytes in use after all ended", u)
			}
			return nil
		})
	}
}
