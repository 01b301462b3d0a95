// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"
)

// The memory limit under containerd, by each way from it to our code.
func TestMemoryLimitContainerd(t *testing.T) {
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		k.each(t, func(t *testing.T, w way) {
			for _, c := range byLookup {
				t.Run(c.name, func(t *testing.T) { c.check(t, k.n, w) })
			}
		})
	})
}
