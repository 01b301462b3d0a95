// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"strings"
	"testing"
)

func TestShortID(t *testing.T) {
	digits := strings.Repeat("0123456789abcdef", 4)
	for id, want := range map[string]string{
		digits:                                  digits[:12],
		"training-job-1":                        "training-job-1",
		"0123456789abcdef":                      "0123456789abcdef",
		strings.Repeat("training-job-", 5)[:64]: strings.Repeat("training-job-", 5)[:64],
		"":                                      "",
	} {
		if got := ShortID(id); got != want {
			t.Errorf("ShortID(%q) = %q, want %q", id, got, want)
		}
	}
}
