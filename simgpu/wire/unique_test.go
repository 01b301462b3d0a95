// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"os"
	"regexp"
	"testing"
)

// Two requests, kinds of connections or ring entries with one number would be
// taken for each other without any error.
func TestNumbersAreUnique(t *testing.T) {
	define := regexp.MustCompile(`(?m)^#define (SG_(OP|KIND|ENTRY|MODE)_\w+) (\d+)u`)
	seen := map[string]string{}
	for _, file := range []string{"../lib/wire.h", "../lib/wire_nvml.h"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range define.FindAllStringSubmatch(string(b), -1) {
			key := m[2] + " " + m[3]
			if o := seen[key]; o != "" && o != m[1] {
				t.Errorf("%s and %s are both %s", o, m[1], m[3])
			}
			seen[key] = m[1]
		}
	}
	if len(seen) < 40 {
		t.Errorf("only %d numbers found", len(seen))
	}
}
