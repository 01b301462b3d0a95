// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/gpushare/gpushare/simgpu/api"
	"github.com/gpushare/gpushare/simgpu/fault"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// Whatever a client asks about calls that are to fail, it gets an answer that
// fits into a message, and what it is not told does not grow.
func TestFaultQuestionsOfAnyKind(t *testing.T) {
	var word uint32
	f := faultState{word: &word}
	f.Set = fault.NewSet(api.Default, func(n int) { f.rules = n; f.publish() })
	cuda, _ := api.Default.Names()
	for i, name := range cuda[:250] {
		if _, err := f.Add(fault.Spec{Call: "=" + name, RC: "1", PerProcess: i%2 == 0}); err != nil {
			t.Fatal(err)
		}
	}
	if word == 0 {
		t.Error("clients are not told that there are rules")
	}
	c := fault.Caller{PID: 1}
	for _, a := range []uint64{0, 1, 249, 250, 251, math.MaxInt64, math.MaxUint64} {
		for _, kind := range []uint64{wire.KindCUDA, wire.KindNVML, 0, math.MaxUint64} {
			_, out := f.answer(c, &wire.Request{Op: wire.OpFaultNames, A: a, B: kind}, nil)
			if len(out)+replySize >= wire.MaxMessage || (a >= 250 && len(out) != 0) {
				t.Errorf("%d bytes from %d", len(out), a)
			}
		}
	}
	// By pages, all of them.
	seen := 0
	for {
		_, out := f.answer(c, &wire.Request{Op: wire.OpFaultNames, A: uint64(seen), B: wire.KindCUDA}, nil)
		if len(out) == 0 {
			break
		}
		seen += bytes.Count(out, []byte{0})
	}
	if seen != 250 {
		t.Errorf("%d names of 250", seen)
	}
	for _, name := range []string{"", "cuNothing", string(bytes.Repeat([]byte("x"), wire.MaxMessage)), "cu\x00Init"} {
		if r, out := f.answer(c, &wire.Request{Op: wire.OpFault, GPU: math.MaxUint32}, []byte(name)); r.A != wire.FaultNone || out != nil {
			t.Errorf("%.20q: %+v", name, r)
		}
	}
	// Processes without number that a rule counts apart are not remembered for ever.
	for pid := range uint32(200_000) {
		f.answer(fault.Caller{PID: pid}, &wire.Request{Op: wire.OpFault}, []byte(cuda[0]))
	}
	if r := f.List()[0]; r.Calls != 200_000 || fmt.Sprint(r.Names) != fmt.Sprint([]string{cuda[0]}) {
		t.Errorf("rule: %+v", r)
	}
	if err := f.Remove(0); err != nil || word != 0 {
		t.Errorf("%v, word %d after all rules are gone", err, word)
	}
}
