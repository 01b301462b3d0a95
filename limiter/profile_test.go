// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/limiter/quantity"
)

// sizes are amounts of usable memory: of real cards, primes, powers of two and
// their neighbours, and random ones.
func sizes() []uint64 {
	out := []uint64{1, 2, 3, 61, 63, 64, 65, 97, 4_000_000_000, 7_999_999_999, 8_000_000_000, 32_000_000_000, 4_294_967_291,
		68_719_476_731, 85_899_345_919, 1<<40 - 87, 1<<64 - 1, 150_754_820_096}
	for shift := range 48 {
		out = append(out, 1<<shift)
	}
	r := rand.New(rand.NewPCG(1, 0))
	for range 500 {
		out = append(out, 1+r.Uint64N(1<<41))
	}
	var all []uint64
	for _, n := range out {
		all = append(all, n-1, n, n+1) // 0 and an overflow to 0 included
	}
	return all
}

func profile(t *testing.T, name string) Profile {
	t.Helper()
	p, err := ParseProfile(name)
	if err != nil || p.String() != name || p.IsZero() {
		t.Fatalf("%s: %+v, %v", name, p, err)
	}
	return p
}

// fill puts the same limit on an empty GPU until it refuses.
func fill(usable uint64, l Limit, most int) int {
	gpu, have := Capacity{UsableBytes: usable}, []Limit{}
	for len(have) <= most && gpu.Admit(Sum(have), l) == nil {
		have = append(have, l)
	}
	return len(have)
}

func TestPartsAlwaysFit(t *testing.T) {
	for n := 1; n <= MaxParts; n++ {
		p := profile(t, fmt.Sprintf("1of%d", n))
		for _, usable := range sizes() {
			l, err := p.On(usable)
			if usable < uint64(n) {
				if err == nil {
					t.Fatalf("%s of %d bytes: %+v", p, usable, l)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s of %d bytes: %v", p, usable, err)
			}
			if l.ComputeMilli == 0 || l.ComputeMilli != l.CeilingMilli || l.MemoryBytes == 0 {
				t.Fatalf("%s of %d bytes: %+v", p, usable, l)
			}
			// One share more would be a share for nothing: at most n bytes and n-1
			// milli-GPU are left over.
			if usable-l.MemoryBytes*uint64(n) >= uint64(n) || 1000-l.ComputeMilli*uint32(n) >= uint32(n) {
				t.Fatalf("%s of %d bytes wastes: %+v", p, usable, l)
			}
			if got := fill(usable, l, n); got < n {
				t.Fatalf("%s of %d bytes: %d fit", p, usable, got)
			}
		}
	}
}

// N is the most that fit, on every size that leaves less than one share over.
func TestNoMoreThanNFit(t *testing.T) {
	for _, n := range []int{2, 4, 6} {
		p := profile(t, fmt.Sprintf("1of%d", n))
		for _, usable := range sizes() {
			if l, err := p.On(usable); err == nil && usable >= uint64(n*n) {
				if got := fill(usable, l, n+1); got != n {
					t.Fatalf("%s of %d bytes: %d fit", p, usable, got)
				}
			}
		}
	}
}

func TestSlicesThatFitByMemoryFitByCompute(t *testing.T) {
	p := profile(t, "slice-4g")
	for _, usable := range sizes() {
		l, err := p.On(usable)
		switch {
		case usable < 4_000_000_000:
			var small *ProfileError
			if !errors.As(err, &small) || !strings.Contains(err.Error(), fmt.Sprint(usable)) || !strings.Contains(err.Error(), "4000000000") {
				t.Fatalf("%d bytes: %+v, %v", usable, l, err)
			}
		case usable > 4_000_000_000_000:
			if err == nil {
				t.Fatalf("%d bytes: %+v would be no share of time", usable, l)
			}
		case err != nil || l.MemoryBytes != 4_000_000_000 || l.ComputeMilli == 0 || l.ComputeMilli != l.CeilingMilli:
			t.Fatalf("%d bytes: %+v, %v", usable, l, err)
		default:
			if got, want := fill(usable, l, 2000), int(usable/4_000_000_000); got != want {
				t.Fatalf("%d bytes: %d fit, %d by memory", usable, got, want)
			}
		}
	}
	if l, _ := p.On(32_000_000_000); l.ComputeMilli != 125 {
		t.Errorf("an eighth of 32 GB: %+v", l)
	}
}

func TestParseProfileRefuses(t *testing.T) {
	for _, text := range []string{"", "1of0", "1of65", "1of064", "1of02", "1of", "1of-2", "1of+2", "1of 2", "2of4", "1OF2", "1of2 ", " 1of2",
		"half", "slice-8g", "slice-4G", "1of18446744073709551618", "1of٢", strings.Repeat("1of2", 100)} {
		if p, err := ParseProfile(text); err == nil || !strings.Contains(err.Error(), "1of2, 1of4, 1of6") || len(err.Error()) > 200 {
			t.Errorf("%.20q: %+v, %v", text, p, err)
		}
	}
}

func TestCap(t *testing.T) {
	whole := Words{Memory: "8Gi", Compute: "30%", ComputeMax: "50%"}
	for _, tc := range []struct {
		name     string
		cap, ask Words
		want     Limit
		err      string
	}{
		{"nothing capped", Words{}, Words{Memory: "80Gi"}, Limit{80 * gib, 0, 1000}, ""},
		{"at each cap", whole, whole, Limit{8 * gib, 300, 500}, ""},
		{"a byte above", Words{Memory: "8Gi"}, Words{Memory: "8589934593B"}, Limit{}, `8589934593 bytes asked, 8589934592 bytes allowed (cap.env.memory = "8Gi")`},
		{"memory above", Words{Memory: "8Gi"}, Words{Memory: "9Gi"}, Limit{}, `9 GiB asked, 8 GiB allowed (cap.env.memory = "8Gi")`},
		{"percentages are of the GPU", Words{Memory: "10%"}, Words{Memory: "8Gi"}, Limit{8 * gib, 0, 1000}, ""},
		{"percentage above", Words{Memory: "8Gi"}, Words{Memory: "11%"}, Limit{}, "asked, 8 GiB allowed"},
		{"guarantee above", Words{Compute: "30%"}, Words{Memory: "1Gi", Compute: "30.1%"}, Limit{}, `30.1% asked, 30% allowed (cap.env.compute = "30%")`},
		{"no ceiling asked for", Words{ComputeMax: "50%"}, Words{Memory: "1Gi"}, Limit{1 * gib, 0, 500}, ""},
		{"none asked for", Words{ComputeMax: "50%"}, Words{Memory: "1Gi", ComputeMax: "none"}, Limit{}, `100% asked, 50% allowed (cap.env.compute_max = "50%")`},
		{"ceiling above", Words{ComputeMax: "50%"}, Words{Memory: "1Gi", ComputeMax: "51%"}, Limit{}, "51% asked, 50% allowed"},
		{"guarantee above the ceiling's cap", Words{ComputeMax: "50%"}, Words{Memory: "1Gi", Compute: "60%"}, Limit{}, "60% asked, 50% allowed"},
		{"profile within", Words{Memory: "50%", Compute: "50%", ComputeMax: "50%"}, Words{Profile: "1of2"}, Limit{40 * gib, 500, 500}, ""},
		{"profile above", Words{Memory: "8Gi"}, Words{Profile: "1of2"}, Limit{}, "40 GiB asked, 8 GiB allowed"},
		{"profile's time above", Words{ComputeMax: "25%"}, Words{Profile: "1of2"}, Limit{}, "50% asked, 25% allowed"},
	} {
		r, err := Parse(tc.ask, quantity.Strict)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ParseCap("cap.env", tc.cap)
		if err != nil || c.Empty() != (tc.cap == Words{}) {
			t.Fatalf("%s: %+v, %v", tc.name, c, err)
		}
		r.Caps = []Cap{c}
		got, err := r.On(80 * gib)
		switch {
		case tc.err == "" && (err != nil || got != tc.want):
			t.Errorf("%s: %+v, %v, want %+v", tc.name, got, err, tc.want)
		case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
			t.Errorf("%s: %+v, %v, want %q", tc.name, got, err, tc.err)
		}
	}
}

// A request under two caps keeps both.
func TestBothCapsHold(t *testing.T) {
	wide, _ := ParseCap("cap.annotation", Words{Memory: "50%", ComputeMax: "70%"})
	narrow, _ := ParseCap("cap.env", Words{Memory: "8Gi", ComputeMax: "30%"})
	r, err := Parse(Words{Memory: "8Gi"}, quantity.Strict)
	if err != nil {
		t.Fatal(err)
	}
	for _, caps := range [][]Cap{{wide, narrow}, {narrow, wide}} {
		r.Caps = caps
		if got, err := r.On(80 * gib); err != nil || got.CeilingMilli != 300 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	r.Memory, _ = quantity.ParseMemory("9Gi", quantity.Strict)
	if _, err := r.On(80 * gib); err == nil || !strings.Contains(err.Error(), "cap.env.memory") {
		t.Errorf("above the narrower: %v", err)
	}
}

func TestParseCapRefuses(t *testing.T) {
	for _, tc := range []struct {
		in   Words
		want string
	}{
		{Words{Memory: "8"}, "memory \"8\": the unit is missing"},
		{Words{Memory: "none"}, "memory \"none\""},
		{Words{Compute: "none"}, "compute \"none\""},
		{Words{ComputeMax: "0"}, "compute-max \"0\": zero"},
		{Words{Compute: "50%", ComputeMax: "40%"}, "compute-max 40% is below compute 50%"},
	} {
		if _, err := ParseCap("x", tc.in); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.in, err, tc.want)
		}
	}
}
