// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package quantity

import (
	"strings"
	"testing"
)

func TestParseHostMemory(t *testing.T) {
	for in, want := range map[string]uint64{
		"8Gi": 8 << 30, "8gib": 8 << 30, "1.5Mi": 3 << 19, "1B": 1, "8000000001B": 8000000001,
		"0B": 0, "0Gi": 0, "0.0Gi": 0, "18446744073709551615B": 1<<64 - 1,
	} {
		if got, err := ParseHostMemory(in, Strict); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", in, got, err, want)
		}
	}
	if got, err := ParseHostMemory("8g", Docker); got != 8<<30 || err != nil {
		t.Errorf("8g on a command line: %d, %v", got, err)
	}
	for in, want := range map[string]string{
		"":                      "empty; write 8Gi",
		"8":                     "the unit is missing; write 8Gi or 8Mi",
		"0":                     "the unit is missing; write 0B for none",
		"8G":                    "write 8Gi or 8000000000B",
		"8Gb":                   "small b means bits; write 8Gi",
		"25%":                   "host memory is not counted in parts of anything; write bytes like 8Gi",
		"0%":                    "not counted in parts",
		"0X":                    "not a decimal number",
		"0Z":                    "unknown unit; write 0B for none",
		"0G":                    "unknown unit; write 0B for none",
		"none":                  "not a number",
		"-1Gi":                  "negative",
		"99999999999999999999B": "too large; write less than the host has",
	} {
		if n, err := ParseHostMemory(in, Strict); err == nil || n != 0 || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "percent") {
			t.Errorf("%q: %d, %v, want %q", in, n, err, want)
		}
	}
}
