// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter"
	"github.com/gpushare/gpushare/limiter/quantity"
)

const gib = 1 << 30

func uuid(i int) string { return fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", i) }

// node has n GPUs of 24 GiB.
func node(n int) []GPU {
	var out []GPU
	for i := range n {
		out = append(out, GPU{Index: i, UUID: uuid(i), Name: "Test", UsableBytes: 24 * gib, ContextBytes: 400 << 20, Measured: true})
	}
	return out
}

func request(t *testing.T, w limiter.Words) limiter.Request {
	t.Helper()
	r, err := limiter.Parse(w, quantity.Strict)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestChoose(t *testing.T) {
	gpus := node(4)
	gpus[1].Promised = limiter.Promised{MemoryBytes: 8 * gib, ComputeMilli: 500}
	gpus[2].Promised = limiter.Promised{MemoryBytes: 20 * gib, ComputeMilli: 100}
	gpus[3].Err = errors.New("lost")
	for _, tc := range []struct {
		selector string
		words    limiter.Words
		want     []int
		code     string
	}{
		{"", limiter.Words{Memory: "4Gi"}, []int{2}, ""},                     // the fullest that fits
		{"auto", limiter.Words{Memory: "5Gi"}, []int{1}, ""},                 //
		{"AUTO", limiter.Words{Memory: "5Gi", Compute: "60%"}, []int{0}, ""}, // GPU 1 has 50 %
		{"", limiter.Words{Memory: "100%"}, []int{0}, ""},
		{"", limiter.Words{Memory: "25Gi"}, nil, v1.CodeNoFit},
		{"2", limiter.Words{Memory: "5Gi"}, nil, v1.CodeNoFit},
		{"1", limiter.Words{Memory: "5Gi", Compute: "50.1%"}, nil, v1.CodeNoFit},
		{"1,0", limiter.Words{Memory: "5Gi"}, []int{1, 0}, ""},
		{uuid(1), limiter.Words{Memory: "5Gi"}, []int{1}, ""},
		{strings.ToLower(uuid(1)), limiter.Words{Memory: "5Gi"}, []int{1}, ""},
		{"", limiter.Words{Memory: "300Mi"}, nil, v1.CodeMemTooSmall},
		{"0", limiter.Words{Memory: "1B"}, nil, v1.CodeMemTooSmall},
		{"3", limiter.Words{Memory: "1Gi"}, nil, v1.CodeNoGPU},
		{"4", limiter.Words{Memory: "1Gi"}, nil, v1.CodeGPUUnknown},
		{uuid(9), limiter.Words{Memory: "1Gi"}, nil, v1.CodeGPUUnknown},
		{"1,1", limiter.Words{Memory: "1Gi"}, nil, v1.CodeRequest},
		{"1,", limiter.Words{Memory: "1Gi"}, nil, v1.CodeRequest},
		{"-1", limiter.Words{Memory: "1Gi"}, nil, v1.CodeRequest},
		{"+1", limiter.Words{Memory: "1Gi"}, nil, v1.CodeRequest},
		{"01", limiter.Words{Memory: "1Gi"}, nil, v1.CodeRequest},
		{"all", limiter.Words{Memory: "1Gi"}, nil, v1.CodeRequest},
		{strings.Repeat("0,", 50) + "0", limiter.Words{Memory: "1Gi"}, nil, v1.CodeRequest},
	} {
		got, err := Choose(gpus, tc.selector, request(t, tc.words), tc.words)
		if v1.Code(err) != tc.code {
			t.Errorf("%q %+v: %v, want code %q", tc.selector, tc.words, err, tc.code)
			continue
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("%q: several lines: %q", tc.selector, err)
		}
		if len(got) != len(tc.want) {
			t.Errorf("%q %+v: %d GPUs, want %v", tc.selector, tc.words, len(got), tc.want)
			continue
		}
		for i := range got {
			if got[i].GPU.Index != tc.want[i] {
				t.Errorf("%q %+v: GPU %d, want %d", tc.selector, tc.words, got[i].GPU.Index, tc.want[i])
			}
		}
	}
}

// Whatever order requests come in, no GPU promises more than it has.
func TestNeverOvercommits(t *testing.T) {
	gpus := node(3)
	placed := 0
	for i := range 200 {
		w := limiter.Words{Memory: fmt.Sprintf("%dMi", 500+(i*7919)%5000), Compute: fmt.Sprintf("%d%%", 1+(i*31)%40)}
		grants, err := Choose(gpus, "", request(t, w), w)
		if err != nil {
			continue
		}
		placed++
		g := &gpus[grants[0].GPU.Index]
		g.Promised.MemoryBytes += grants[0].Limit.MemoryBytes
		g.Promised.ComputeMilli += grants[0].Limit.ComputeMilli
		if g.Promised.MemoryBytes > g.UsableBytes || g.Promised.ComputeMilli > 1000 {
			t.Fatalf("GPU %d promises %+v", g.Index, g.Promised)
		}
	}
	if placed < 10 {
		t.Errorf("only %d placed", placed)
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	gpus := node(2)
	gpus[0].Promised = limiter.Promised{MemoryBytes: 22 * gib, ComputeMilli: 800}
	gpus[1].Promised = limiter.Promised{MemoryBytes: 20 * gib, ComputeMilli: 500}
	_, err := Choose(gpus, "", request(t, limiter.Words{Memory: "10Gi", Compute: "50%"}), limiter.Words{Memory: "10Gi"})
	want := "no GPU has 10 GiB and 50% to give: GPU 0: 2 GiB, 20% · GPU 1: 4 GiB, 50%; the largest that fits now is memory 4Gi with compute 50%; who holds what: gpushare ps  [GS-NO-FIT]"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = Choose(gpus, "1", request(t, limiter.Words{Memory: "256Mi"}), limiter.Words{Memory: "256Mi"})
	want = `memory "256Mi" is too small on GPU 1: a CUDA context alone takes 400 MiB here (Test); write at least 448Mi  [GS-MEM-TOO-SMALL]`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err = Choose(nil, "", request(t, limiter.Words{Memory: "1Gi"}), limiter.Words{}); v1.Code(err) != v1.CodeNoGPU {
		t.Errorf("no GPUs: %v", err)
	}
}

// A profile is what it says of each GPU, whatever its size.
func TestProfileOnEachGPU(t *testing.T) {
	gpus := node(3)
	gpus[0].UsableBytes, gpus[1].UsableBytes = 7*gib+1, 3_900_000_000
	half, slice := limiter.Words{Profile: "1of2"}, limiter.Words{Profile: "slice-4g"}
	grants, err := Choose(gpus, "0,1,2", request(t, half), half)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint64{3*gib + gib/2, 1_950_000_000, 12 * gib} {
		if l := grants[i].Limit; l.MemoryBytes != want || l.ComputeMilli != 500 || l.CeilingMilli != 500 {
			t.Errorf("GPU %d: %+v, want %d bytes", i, l, want)
		}
	}
	// Too small for it is not a place to be, and no reason to refuse.
	gpus[0].Promised, gpus[2].Promised = limiter.Promised{MemoryBytes: 5 * gib}, limiter.Promised{MemoryBytes: 1 * gib}
	if grants, err = Choose(gpus, "", request(t, slice), slice); err != nil || grants[0].GPU.Index != 2 {
		t.Errorf("%+v, %v", grants, err)
	}
	if grants[0].Limit.ComputeMilli != 155 { // 1000 × 4e9 / 24 GiB
		t.Errorf("%+v", grants[0].Limit)
	}
	for _, tc := range []struct {
		selector, profile, code, want string
	}{
		{"1", "slice-4g", v1.CodeNoFit, "profile slice-4g is 3.73 GiB, the whole GPU has 3.63 GiB to give (3900000000 of 4000000000 bytes)"},
		{"1", "1of64", v1.CodeMemTooSmall, `profile "1of64" is too small on GPU 1: a CUDA context alone takes 400 MiB here (Test); write at least 448Mi of memory instead`},
		{"0", "1of2", v1.CodeNoFit, "GPU 0 has not profile 1of2 (3.50 GiB and 50%) to give"},
	} {
		w := limiter.Words{Profile: tc.profile}
		if _, err := Choose(gpus, tc.selector, request(t, w), w); v1.Code(err) != tc.code || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s on %s: %v, want %s with %q", tc.profile, tc.selector, err, tc.code, tc.want)
		}
	}
}

// A cap in per cent is of each GPU; GPUs on which the request is above it are no
// place for it.
func TestCapOnEachGPU(t *testing.T) {
	gpus := node(2)
	gpus[1].UsableBytes = 80 * gib
	c, err := limiter.ParseCap("cap.env", limiter.Words{Memory: "25%", ComputeMax: "50%"})
	if err != nil {
		t.Fatal(err)
	}
	w := limiter.Words{Memory: "10Gi"}
	want := request(t, w)
	want.Caps = []limiter.Cap{c}
	grants, err := Choose(gpus, "", want, w)
	if err != nil || grants[0].GPU.Index != 1 || grants[0].Limit.CeilingMilli != 500 {
		t.Errorf("%+v, %v", grants, err)
	}
	for _, selector := range []string{"0", "1,0"} {
		_, err := Choose(gpus, selector, want, w)
		if v1.Code(err) != v1.CodeCap || !strings.Contains(err.Error(), `memory of GPU 0: 10 GiB asked, 6 GiB allowed (cap.env.memory = "25%")`) {
			t.Errorf("%s: %v", selector, err)
		}
	}
}

func TestResize(t *testing.T) {
	g := node(1)[0]
	g.Promised = limiter.Promised{MemoryBytes: 20 * gib, ComputeMilli: 900}
	old := limiter.Limit{MemoryBytes: 4 * gib, ComputeMilli: 100, CeilingMilli: 100}
	for _, tc := range []struct {
		bytes uint64
		milli uint32
		code  string
	}{
		{4 * gib, 100, ""}, {2 * gib, 50, ""}, {4*gib + 1, 100, v1.CodeNoFit}, {4 * gib, 101, v1.CodeNoFit},
		{1 << 20, 100, v1.CodeMemTooSmall},
	} {
		err := Resize(g, old, limiter.Limit{MemoryBytes: tc.bytes, ComputeMilli: tc.milli, CeilingMilli: 1000}, limiter.Words{})
		if v1.Code(err) != tc.code {
			t.Errorf("%d, %d: %v, want code %q", tc.bytes, tc.milli, err, tc.code)
		}
	}
	// A node that promised too much already still lets limits go down.
	g.Promised = limiter.Promised{MemoryBytes: 30 * gib, ComputeMilli: 1500}
	if err := Resize(g, old, limiter.Limit{MemoryBytes: 3 * gib, ComputeMilli: 90, CeilingMilli: 90}, limiter.Words{}); err != nil {
		t.Errorf("lowering on an overcommitted GPU: %v", err)
	}
}
