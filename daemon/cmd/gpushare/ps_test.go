// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// A limit that was taken back while it was in use does not turn the column into bytes.
func TestPart(t *testing.T) {
	for _, c := range []struct {
		used, limit uint64
		want        string
	}{
		{1 << 29, 8 << 30, "0.5/8.0 GiB"},
		{2 << 30, 0, "2.0/0.0 GiB"},
		{3 << 30, 1 << 20, "3072.0/1.0 MiB"},
		{0, 0, "0/0 B"},
	} {
		if got := part(c.used, c.limit); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.used, c.limit, got, c.want)
		}
	}
}
