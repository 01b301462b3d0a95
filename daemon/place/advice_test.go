// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"math/rand/v2"
	"regexp"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter"
	"github.com/gpushare/gpushare/limiter/quantity"
)

var fitsNow = regexp.MustCompile(`the largest that fits now is memory (\S+?)(?: with compute (\S+?%)| without compute)?;`)

// What a refusal says fits now, does fit; and a refusal that says nothing of the
// kind is right, too.
func TestAdviceFits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	advised, nothing := 0, 0
	for range 3000 {
		gpus := node(1 + rng.IntN(4))
		for i := range gpus {
			gpus[i].Promised = limiter.Promised{MemoryBytes: uint64(rng.Int64N(24*gib + 1)), ComputeMilli: uint32(rng.IntN(1001))}
			if rng.IntN(4) == 0 {
				gpus[i].Promised.MemoryBytes = 24*gib - uint64(rng.IntN(1<<20))
			}
			if rng.IntN(5) == 0 {
				gpus[i].Promised.ComputeMilli = 1000
			}
		}
		words := limiter.Words{Memory: quantity.FormatShare(uint32(100 + rng.IntN(901)))}
		if rng.IntN(3) > 0 {
			words.Compute = quantity.FormatShare(uint32(1 + rng.IntN(1000)))
		}
		_, err := Choose(gpus, "", request(t, words), words)
		if v1.Code(err) != v1.CodeNoFit {
			continue
		}
		m := fitsNow.FindStringSubmatch(err.Error())
		if m == nil {
			nothing++
			least := limiter.Words{Memory: "400Mi"}
			if _, err := Choose(gpus, "", request(t, least), least); err == nil {
				t.Fatalf("%v, but %s fit", err, least.Memory)
			}
			continue
		}
		advised++
		try := limiter.Words{Memory: m[1], Compute: m[2]}
		if _, again := Choose(gpus, "", request(t, try), try); again != nil {
			t.Fatalf("%v\nand of that advice: %v", err, again)
		}
	}
	if advised < 100 || nothing < 10 {
		t.Errorf("%d refusals with advice, %d without: too few", advised, nothing)
	}
}

// A GPU with all of the compute share goes before one with more memory, and no
// more memory is offered than was asked for.
func TestAdviceKeepsToTheRequest(t *testing.T) {
	gpus := node(2)
	gpus[0].Promised = limiter.Promised{MemoryBytes: 4 * gib, ComputeMilli: 900}
	gpus[1].Promised = limiter.Promised{MemoryBytes: 21 * gib, ComputeMilli: 100}
	for _, tc := range []struct{ memory, compute, want string }{
		{"10Gi", "50%", "memory 3Gi with compute 50%"},
		{"10Gi", "95%", "memory 10Gi with compute 10%"},
		{"23Gi", "", "memory 20Gi"},
	} {
		words := limiter.Words{Memory: tc.memory, Compute: tc.compute}
		_, err := Choose(gpus, "", request(t, words), words)
		if m := fitsNow.FindString(err.Error()); m != "the largest that fits now is "+tc.want+";" {
			t.Errorf("%+v: %v, want %s", words, err, tc.want)
		}
	}
}
