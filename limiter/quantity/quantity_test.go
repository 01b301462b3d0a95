// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package quantity

import (
	"errors"
	"strings"
	"testing"
)

const gib = 1 << 30

func TestParseMemory(t *testing.T) {
	const total = 80*gib + 1 // odd on purpose: percentages must round down
	for _, tc := range []struct {
		in   string
		mode Mode
		want uint64
	}{
		{"4Gi", Strict, 4 * gib},
		{"4GiB", Strict, 4 * gib},
		{"4gib", Docker, 4 * gib},
		{"512Mi", Strict, 512 << 20},
		{"512MIB", Strict, 512 << 20},
		{"64Ki", Strict, 64 << 10},
		{"1Ti", Strict, 1 << 40},
		{"1.5Gi", Strict, 3 * gib / 2},
		{"0.1Gi", Strict, 107374182},
		{"1B", Strict, 1},
		{"8000000001B", Strict, 8000000001},
		{"25%", Strict, 20 * gib},
		{"100%", Strict, total},
		{"33.333%", Strict, total * 33333 / 100000},
		{"0.001%", Strict, total / 100000},
		{"8g", Docker, 8 * gib},
		{"8G", Docker, 8 * gib},
		{"8GB", Docker, 8 * gib},
		{"512mb", Docker, 512 << 20},
		{"1.50000000000000000000Gi", Strict, 3 * gib / 2},
		{"18446744073709551615B", Strict, 1<<64 - 1},
	} {
		m, err := ParseMemory(tc.in, tc.mode)
		if err != nil {
			t.Errorf("ParseMemory(%q): %v", tc.in, err)
		} else if got := m.Bytes(total); got != tc.want {
			t.Errorf("ParseMemory(%q) = %d, want %d", tc.in, got, tc.want)
		}
	}
}

func TestParseMemoryRefuses(t *testing.T) {
	for _, tc := range []struct{ in, reason, suggestion string }{
		{"", "empty", "8Gi"},
		{"8", "the unit is missing", "8Gi"},
		{"0", "the unit is missing", "0Gi"},
		{"8G", "decimal in Kubernetes", "8Gi or 8000000000B"},
		{"8g", "decimal in Kubernetes", "8Gi or 8000000000B"},
		{"8GB", "decimal in Kubernetes", "8Gi or 8000000000B"},
		{"4Gb", "bits", "4Gi"},
		{"4Mb", "bits", "4Mi"},
		{"4m", "milli", "4Mi"},
		{"4M", "milli", "4Mi"},
		{"-1Gi", "negative", "8Gi"},
		{"+1Gi", "sign", "8Gi"},
		{"010Gi", "leading zero", "10Gi"},
		{"0x10Gi", "not a decimal", "plain number"},
		{"1e3Mi", "exponent", "plain number"},
		{"NaN", "not a number", "8Gi"},
		{"Inf", "not a number", "8Gi"},
		{"none", "not a number", "8Gi"},
		{"unlimited", "not a number", "8Gi"},
		{"4 Gi", "blank", "4Gi"},
		{"4Gi ", "blank", "4Gi"},
		{" 4Gi", "not a number", "8Gi"},
		{"4Gi\n", "blank", "4Gi"},
		{"4Gi;rm", "unknown unit", "4Gi"},
		{"1.2.3Gi", "one point", "1.2Gi"},
		{"1,5Gi", "one point", "1Gi"},
		{"1.Gi", "after the point", "1Gi"},
		{".5Gi", "not a number", "8Gi"},
		{"0Gi", "zero", "smallest"},
		{"0%", "zero", "smallest"},
		{"0.0000000001Ki", "zero", "smallest"},
		{"1.5B", "fraction of a byte", "1B"},
		{"101%", "more than the whole", "100%"},
		{"0.0001%", "finer", "whole percentage"},
		{"16777216Ti", "too large", "at most"},
		{"18446744073709551616B", "too large", "at most"},
		{"99999999999999999999999Gi", "too many digits", "8Gi"},
		{"4Pi", "unknown unit", "4Gi"},
		{"4GiBB", "unknown unit", "4Gi"},
		{"٤Gi", "not a number", "8Gi"},
		{"4Gi%", "unknown unit", "4Gi"},
	} {
		_, err := ParseMemory(tc.in, Strict)
		checkRefusal(t, tc.in, err, tc.reason, tc.suggestion)
	}
}

func TestParseShare(t *testing.T) {
	for in, want := range map[string]uint32{
		"30%": 300, "0.3": 300, "33.3%": 333, "0.333": 333, "100%": 1000, "1": 1000,
		"1.0": 1000, "0.1%": 1, "0.001": 1, "12.50%": 125,
	} {
		if got, err := ParseShare(in); err != nil || got != want {
			t.Errorf("ParseShare(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	if got, err := ParseCeiling("none"); err != nil || got != 1000 {
		t.Errorf("ParseCeiling(none) = %d, %v; want 1000", got, err)
	}
}

func TestParseShareRefuses(t *testing.T) {
	for _, tc := range []struct{ in, reason, suggestion string }{
		{"30", "more than one GPU", "did you mean 30%?"},
		{"100", "more than one GPU", "100%"},
		{"101%", "more than one GPU", "100%"},
		{"1.0001", "more than one GPU", "100%"},
		{"0", "zero", "0.1%"},
		{"0%", "zero", "0.1%"},
		{"0.05%", "finer", "multiple"},
		{"33.33%", "finer", "multiple"},
		{"0.3333", "finer", "multiple"},
		{"300m", "milli", "30%"},
		{"none", "only compute-max", "30%"},
		{"-5%", "negative", "30%"},
		{"30 %", "blank", "30%"},
		{"30%%", "trailing", "30%"},
		{"1e-1", "exponent", "plain number"},
		{"", "empty", "30%"},
		{"half", "not a number", "30%"},
		{"030%", "leading zero", "30%"},
	} {
		_, err := ParseShare(tc.in)
		checkRefusal(t, tc.in, err, tc.reason, tc.suggestion)
	}
}

func checkRefusal(t *testing.T, in string, err error, reason, suggestion string) {
	t.Helper()
	var e *Error
	switch {
	case !errors.As(err, &e):
		t.Errorf("%q: error %v, want *Error", in, err)
	case !strings.Contains(e.Reason, reason):
		t.Errorf("%q: reason %q, want one with %q", in, e.Reason, reason)
	case !strings.Contains(e.Suggestion, suggestion):
		t.Errorf("%q: suggestion %q, want one with %q", in, e.Suggestion, suggestion)
	case strings.ContainsAny(e.Error(), "\n\r"):
		t.Errorf("%q: error has several lines: %q", in, e.Error())
	}
}

// A value that the parser accepts is never zero and never more than the whole;
// one that it refuses says why, on one line. No text makes it panic.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"4Gi", "25%", "8G", "1.5GiB", "0", "-1", "1e9", "99999999999999999999Ti", "30", "0.3", "none"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, mode := range []Mode{Strict, Docker} {
			m, err := ParseMemory(s, mode)
			if err != nil {
				var e *Error
				if !errors.As(err, &e) || e.Reason == "" || e.Suggestion == "" || strings.ContainsAny(e.Error(), "\n\r") {
					t.Errorf("ParseMemory(%q): bad error %q", s, err)
				}
				e.Caret()
			} else if m.Bytes(1<<40) == 0 || m.IsPercent() && m.Bytes(1<<40) > 1<<40 {
				t.Errorf("ParseMemory(%q) = %d bytes", s, m.Bytes(1<<40))
			}
		}
		milli, err := ParseCeiling(s)
		if err == nil && (milli == 0 || milli > 1000) {
			t.Errorf("ParseCeiling(%q) = %d", s, milli)
		}
	})
}

func TestFormat(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 B", 512: "512 B", 4 * gib: "4 GiB", 7*gib + 912*(1<<20): "7.89 GiB",
		300 << 20: "300 MiB", 1<<30 + 1: "1.00 GiB", 1<<40 - 1: "1024 GiB",
	} {
		if got := FormatBytes(n); got != want {
			t.Errorf("FormatBytes(%d) = %q, want %q", n, got, want)
		}
	}
	for milli, want := range map[uint32]string{300: "30%", 333: "33.3%", 1000: "100%", 1: "0.1%"} {
		if got := FormatShare(milli); got != want {
			t.Errorf("FormatShare(%d) = %q, want %q", milli, got, want)
		}
	}
}
