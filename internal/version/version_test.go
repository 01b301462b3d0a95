// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"regexp"
	"testing"
)

func TestStringIsSemantic(t *testing.T) {
	if !regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`).MatchString(String()) {
		t.Fatalf("version is %q, want MAJOR.MINOR.PATCH", String())
	}
}
