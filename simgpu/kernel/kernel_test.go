// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

const us = int64(1000)

func TestSpec(t *testing.T) {
	for text, want := range map[string]Spec{
		"5ms":                  {Fixed: 5 * time.Millisecond},
		"0s":                   {},
		"2us/block-wave":       {PerWave: 2 * time.Microsecond},
		"3us + 2us/wave ~ 10%": {}, // spaces only around terms
		"3us+2us/wave~10%":     {Fixed: 3 * time.Microsecond, PerWave: 2 * time.Microsecond, Sigma: 0.1},
		"1ms+trap":             {Fixed: time.Millisecond, End: Trap},
		"trap":                 {End: Trap},
		"hang":                 {End: Hang},
	} {
		got, err := ParseSpec(text)
		if text == "3us + 2us/wave ~ 10%" {
			if err == nil {
				t.Errorf("%q was accepted", text)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: %+v %v, want %+v", text, got, err, want)
		}
		if again, err := ParseSpec(got.String()); err != nil || again != got {
			t.Errorf("%q written as %q reads as %+v %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "5", "-1ms", "x", "5ms+", "25h", "23h+2h", "5ms~", "5ms~-1%", "5ms~NaN", "1us/block"} {
		if s, err := ParseSpec(text); err == nil {
			t.Errorf("%q was accepted as %+v", text, s)
		}
	}
}

// Equal times with different grids, and the other way round: what tells a
// limiter that counts blocks from one that counts time.
func TestLengthFollowsWaves(t *testing.T) {
	s := Spec{Fixed: 3 * time.Microsecond, PerWave: 2 * time.Microsecond}
	for _, c := range []struct {
		blocks   uint64
		resident uint32
		want     int64
		sms      uint32
	}{
		{1, 8, 5 * us, 1}, {8, 8, 5 * us, 1}, {9, 8, 5 * us, 2}, {1056, 8, 5 * us, 132}, {1057, 8, 7 * us, 132},
		{16384, 8, 35 * us, 132}, {132, 1, 5 * us, 132}, {1056, 1, 19 * us, 132}, {1, 0, 5 * us, 1},
		{math.MaxUint64, 1, MaxLength.Nanoseconds(), 132},
	} {
		sh := Shape{Blocks: c.blocks, Resident: c.resident}
		if got := s.Length(sh, 132); got != c.want {
			t.Errorf("%d blocks, %d a multiprocessor: %d ns, want %d", c.blocks, c.resident, got, c.want)
		}
		if got := sh.SMs(132); got != c.sms {
			t.Errorf("%d blocks, %d a multiprocessor: on %d, want %d", c.blocks, c.resident, got, c.sms)
		}
	}
	if got := (Spec{Fixed: time.Millisecond}).Length(Shape{Blocks: 1 << 40}, 1); got != 1000*us {
		t.Errorf("fixed length %d", got)
	}
}

func TestMostSpecificRuleHolds(t *testing.T) {
	var tab Table
	if s, ok := tab.Find("k"); ok {
		t.Errorf("an empty table knows %+v", s)
	}
	rules, err := ReadRules(strings.NewReader("# comment\n\n*=2ns\nvoid *=3ns\nvoid gemm*=4ns\n*gemm_f16=5ns\nexact=6ns\nvoid gemm*=7ns\n*=8ns\na=b=9ns\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if err := tab.Set(r); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]time.Duration{
		"other": 8, "exact": 6, "exactly": 8, "void k": 3, "void gemm": 7, "x_gemm_f16": 5, "a=b": 9,
		"void gemm_f16": 7, // both patterns have nine letters: the newer one
	} {
		if got, ok := tab.Find(name); !ok || got.Fixed != want {
			t.Errorf("%q: rule %d, want %d", name, got.Fixed, want)
		}
	}
	if fits("ab*ba", "aba") || !fits("ab*ba", "abba") || !fits("a*b*c", "axbxbc") || fits("a*b*c", "acb") {
		t.Error("a pattern fits what it should not, or not what it should")
	}
	if _, err := ReadRules(strings.NewReader("a=1us\nb\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a bad line: %v", err)
	}
}

func TestVaryIsSeededAndLogNormal(t *testing.T) {
	s := Spec{Fixed: time.Millisecond, Sigma: 0.2}
	var v []int64
	sum, sum2 := 0.0, 0.0
	for k := range uint64(20000) {
		n := s.Vary(1000*us, 7, "k", k)
		if n != s.Vary(1000*us, 7, "k", k) {
			t.Fatal("the same launch has two lengths")
		}
		v = append(v, n)
		l := math.Log(float64(n) / 1e6)
		sum += l
		sum2 += l * l
	}
	slices.Sort(v)
	sigma := math.Sqrt(sum2/20000 - sum/20000*sum/20000)
	if m := float64(v[10000]) / 1e6; m < 0.99 || m > 1.01 || sigma < 0.19 || sigma > 0.21 {
		t.Errorf("median %.3f, sigma %.3f; want 1 and 0.2", m, sigma)
	}
	if s.Vary(1000*us, 7, "k", 1) == s.Vary(1000*us, 8, "k", 1) || s.Vary(1000*us, 7, "k", 1) == s.Vary(1000*us, 7, "l", 1) {
		t.Error("seed or name do not count")
	}
}
