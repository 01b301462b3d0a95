// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"errors"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/limiter/quantity"
)

const gib = 1 << 30

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   Words
		want Limit
	}{
		{"memory alone", Words{Memory: "8Gi"}, Limit{8 * gib, 0, 1000}},
		{"compute is its own ceiling", Words{Memory: "8Gi", Compute: "30%"}, Limit{8 * gib, 300, 300}},
		{"burst", Words{Memory: "50%", Compute: "30%", ComputeMax: "60%"}, Limit{40 * gib, 300, 600}},
		{"no ceiling", Words{Memory: "8Gi", Compute: "30%", ComputeMax: "none"}, Limit{8 * gib, 300, 1000}},
		{"ceiling alone", Words{Memory: "8Gi", ComputeMax: "30%"}, Limit{8 * gib, 0, 300}},
		{"half", Words{Profile: "1of2"}, Limit{40 * gib, 500, 500}},
	} {
		r, err := Parse(tc.in, quantity.Strict)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		} else if got, err := r.On(80 * gib); got != tc.want || err != nil {
			t.Errorf("%s: %+v, %v, want %+v", tc.name, got, err, tc.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct {
		in   Words
		want string
	}{
		{Words{Compute: "30%"}, "no memory limit"},
		{Words{Memory: "none"}, "memory \"none\""},
		{Words{Memory: "8Gi", Compute: "none"}, "compute \"none\": only compute-max"},
		{Words{Memory: "8Gi", Compute: "30%", ComputeMax: "20%"}, "compute-max 20% is below the guaranteed 30%"},
		{Words{Memory: "8Gi", ComputeMax: "0%"}, "compute-max \"0%\": zero"},
		{Words{Profile: "half"}, "profile \"half\" is no profile: write 1of2, 1of4, 1of6"},
		{Words{Profile: "1of2", Memory: "8Gi"}, "profile \"1of2\" sets memory and compute by itself"},
		{Words{Profile: "1of2", ComputeMax: "none"}, "leave out the other words"},
	} {
		if _, err := Parse(tc.in, quantity.Strict); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Parse(%+v): %v, want %q", tc.in, err, tc.want)
		}
	}
}

func TestOr(t *testing.T) {
	node := Words{Memory: "4Gi", Compute: "10%"}
	for _, tc := range []struct{ in, want Words }{
		{Words{}, node},
		{Words{Memory: "8Gi"}, Words{Memory: "8Gi"}},
		{Words{Compute: "50%"}, Words{Memory: "4Gi", Compute: "50%"}},
		{Words{Profile: "1of2"}, Words{Profile: "1of2"}},
	} {
		if got := tc.in.Or(node); got != tc.want {
			t.Errorf("%+v.Or = %+v, want %+v", tc.in, got, tc.want)
		}
	}
}

func TestAdmit(t *testing.T) {
	gpu := Capacity{UsableBytes: 80 * gib}
	have := Sum([]Limit{{30 * gib, 600, 600}, {10 * gib, 200, 1000}})
	for _, tc := range []struct {
		name   string
		want   Limit
		memory bool
		short  uint64 // what is available, if refused
		ok     bool
	}{
		{"to the byte", Limit{40 * gib, 0, 1000}, false, 0, true},
		{"one byte more", Limit{40*gib + 1, 0, 1000}, true, 40 * gib, false},
		{"to the milli-GPU", Limit{1, 200, 200}, false, 0, true},
		{"one more", Limit{1, 201, 201}, false, 200, false},
		{"would wrap", Limit{1<<64 - 1, 0, 1000}, true, 40 * gib, false},
	} {
		err := gpu.Admit(have, tc.want)
		var short *CapacityError
		switch {
		case tc.ok && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case !tc.ok && (!errors.As(err, &short) || short.Memory != tc.memory || short.Available != tc.short):
			t.Errorf("%s: %v, want available %d", tc.name, err, tc.short)
		}
	}
	full := Sum([]Limit{{100 * gib, 2000, 1000}})
	if err := gpu.Admit(full, Limit{1, 0, 1000}); err == nil {
		t.Error("a GPU that has promised too much admits more")
	}
}

func TestLessPrefersTheFullerGPU(t *testing.T) {
	empty, half := Promised{}, Promised{MemoryBytes: gib}
	if !half.Less(empty) || empty.Less(half) || empty.Less(empty) {
		t.Error("the fuller GPU must come first, strictly")
	}
}
