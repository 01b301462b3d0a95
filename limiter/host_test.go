// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"errors"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/limiter/quantity"
)

// Host memory stands beside any share and changes nothing of it.
func TestHostMemory(t *testing.T) {
	for _, tc := range []struct {
		in   Words
		host uint64
		want Limit
	}{
		{Words{Memory: "8Gi"}, 0, Limit{8 * gib, 0, 1000}},
		{Words{Memory: "8Gi", HostMemory: "2Gi"}, 2 * gib, Limit{8 * gib, 0, 1000}},
		{Words{Profile: "1of2", HostMemory: "1B"}, 1, Limit{40 * gib, 500, 500}},
		{Words{Memory: "8Gi", Compute: "30%", HostMemory: "0B"}, 0, Limit{8 * gib, 300, 300}},
	} {
		r, err := Parse(tc.in, quantity.Strict)
		if err != nil {
			t.Errorf("%+v: %v", tc.in, err)
			continue
		}
		host, err := r.Host()
		got, limitErr := r.On(80 * gib)
		if host != tc.host || got != tc.want || err != nil || limitErr != nil {
			t.Errorf("%+v: %d and %+v, want %d and %+v (%v, %v)", tc.in, host, got, tc.host, tc.want, err, limitErr)
		}
	}
	var field *FieldError
	if _, err := Parse(Words{Memory: "8Gi", HostMemory: "10%"}, quantity.Strict); !errors.As(err, &field) || field.Field != "host-memory" {
		t.Errorf("a percentage: %v", err)
	}
	if _, err := Parse(Words{HostMemory: "8Gi"}, quantity.Strict); !errors.Is(err, ErrNoMemory) {
		t.Errorf("host memory alone: %v", err)
	}
}

func TestHostMemoryOr(t *testing.T) {
	for _, tc := range []struct{ in, node, want Words }{
		{Words{HostMemory: "1Gi"}, Words{Memory: "4Gi", Compute: "10%", HostMemory: "9Gi"}, Words{Memory: "4Gi", HostMemory: "1Gi"}},
		{Words{HostMemory: "1Gi"}, Words{Profile: "1of4"}, Words{Profile: "1of4", HostMemory: "1Gi"}},
		{Words{Memory: "8Gi"}, Words{Memory: "4Gi", HostMemory: "9Gi"}, Words{Memory: "8Gi"}},
		{Words{}, Words{Profile: "1of4", HostMemory: "9Gi"}, Words{Profile: "1of4", HostMemory: "9Gi"}},
	} {
		if got := tc.in.Or(tc.node); got != tc.want {
			t.Errorf("%+v over %+v: %+v, want %+v", tc.in, tc.node, got, tc.want)
		}
	}
}

func TestHostMemoryCap(t *testing.T) {
	limit, err := ParseCap("cap.env", Words{HostMemory: "2Gi"})
	if err != nil || limit.Empty() {
		t.Fatalf("%+v, %v", limit, err)
	}
	none, err := ParseCap("cap.env", Words{HostMemory: "0B"})
	if err != nil || none.Empty() {
		t.Fatalf("a cap of nothing is one: %+v, %v", none, err)
	}
	open, _ := ParseCap("cap.env", Words{Memory: "4Gi"})
	for _, tc := range []struct {
		limit Cap
		asked string
		want  string
	}{
		{limit, "2Gi", ""},
		{limit, "2147483649B", `2147483649 bytes asked, 2147483648 bytes allowed (cap.env.host_memory = "2Gi")`},
		{limit, "8Gi", `8 GiB asked, 2 GiB allowed`},
		{none, "1Gi", `allowed (cap.env.host_memory = "0B")`},
		{none, "0B", ""},
		{open, "1Ti", ""},
	} {
		r, err := Parse(Words{Memory: "1Gi", HostMemory: tc.asked}, quantity.Strict)
		if err != nil {
			t.Fatal(err)
		}
		r.Caps = []Cap{tc.limit}
		n, err := r.Host()
		if (err == nil) != (tc.want == "") || err != nil && (n != 0 || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %d, %v, want %q", tc.asked, n, err, tc.want)
		}
		if _, err := r.On(80 * gib); err != nil { // the GPU has no part in it
			t.Errorf("%s: %v", tc.asked, err)
		}
	}
	if _, err := ParseCap("cap.env", Words{HostMemory: "25%"}); err == nil {
		t.Error("a cap in per cent of nothing")
	}
}
