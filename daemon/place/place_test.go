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
		got, err := Choose(gpus, tc.selector, request(t, tc.words), tc.words.Memory)
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
		grants, err := Choose(gpus, "", request(t, w), w.Memory)
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
	_, err := Choose(gpus, "", request(t, limiter.Words{Memory: "10Gi", Compute: "50%"}), "10Gi")
	want := "no GPU has 10 GiB and 50% to give: GPU 0: 2 GiB, 20% · GPU 1: 4 GiB, 50%; the largest that fits now is memory 4Gi with compute 50%; who holds what: gpushare ps  [GS-NO-FIT]"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = Choose(gpus, "1", request(t, limiter.Words{Memory: "256Mi"}), "256Mi")
	want = `memory "256Mi" is too small on GPU 1: a CUDA context alone takes 400 MiB here (Test); write at least 448Mi  [GS-MEM-TOO-SMALL]`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err = Choose(nil, "", request(t, limiter.Words{Memory: "1Gi"}), "1Gi"); v1.Code(err) != v1.CodeNoGPU {
		t.Errorf("no GPUs: %v", err)
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
		err := Resize(g, old, limiter.Limit{MemoryBytes: tc.bytes, ComputeMilli: tc.milli, CeilingMilli: 1000}, "x")
		if v1.Code(err) != tc.code {
			t.Errorf("%d, %d: %v, want code %q", tc.bytes, tc.milli, err, tc.code)
		}
	}
	// A node that promised too much already still lets limits go down.
	g.Promised = limiter.Promised{MemoryBytes: 30 * gib, ComputeMilli: 1500}
	if err := Resize(g, old, limiter.Limit{MemoryBytes: 3 * gib, ComputeMilli: 90, CeilingMilli: 90}, "x"); err != nil {
		t.Errorf("lowering on an overcommitted GPU: %v", err)
	}
}
