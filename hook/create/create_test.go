// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package create

import (
	"strings"
	"testing"
)

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"0123abc": true, "a_b+c-d.e": true, "": false, ".": false, "..": false, "a/b": false,
		"a b": false, "a\nb": false, "ä": false, strings.Repeat("x", 256): false,
	} {
		if got := ValidID(id); got != want {
			t.Errorf("%q: %v, want %v", id, got, want)
		}
	}
}
