// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/gpushare/gpushare/simgpu/wire"
)

func encodeParts(t *testing.T, parts ...wire.GraphPart) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := binary.Write(&b, binary.NativeEndian, parts); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestGraphPartsAreBounded defines graphs as a hostile client would.
func TestGraphPartsAreBounded(t *testing.T) {
	h := &Host{}
	c := &client{graphs: map[uint32]*graph{}}
	define := func(op uint32, id uint64, data []byte) wire.Reply {
		rep, _, _ := h.defineGraph(c, &wire.Request{Op: op, A: id}, data)
		return rep
	}
	for name, bad := range map[string]wire.GraphPart{
		"kind":   {Kind: wire.PartJoin + 1},
		"branch": {Branch: wire.PartBranches},
		"other":  {Kind: wire.PartJoin, Other: 1 << 31},
	} {
		if rep := define(wire.OpGraphDefine, 0, encodeParts(t, bad)); rep.Status != wire.CUDAInvalidValue {
			t.Errorf("%s: status %d", name, rep.Status)
		}
	}
	if rep := define(wire.OpGraphDefine, 0, make([]byte, graphPartSize-1)); rep.Status != wire.CUDAInvalidValue {
		t.Errorf("half a part: status %d", rep.Status)
	}
	if len(c.graphs) != 0 || c.graphParts != 0 {
		t.Fatalf("%d graphs and %d parts of refused requests", len(c.graphs), c.graphParts)
	}
	rep := define(wire.OpGraphDefine, 0, encodeParts(t, wire.GraphPart{Count: 1}))
	if rep.Status != 0 || rep.A == 0 {
		t.Fatalf("good graph: %+v", rep)
	}
	chunk := make([]byte, 100*graphPartSize)
	var status int32
	for range maxGraphParts/100 + 2 {
		status = define(wire.OpGraphAppend, rep.A, chunk).Status
	}
	if status != wire.CUDAOutOfMemory || c.graphParts > maxGraphParts {
		t.Errorf("status %d, %d parts, at most %d are wanted", status, c.graphParts, maxGraphParts)
	}
	if n := len(c.graphs[uint32(rep.A)].parts); n != c.graphParts {
		t.Errorf("%d parts are counted, the only graph has %d", c.graphParts, n)
	}
}

func TestRepeatedGraphIsBounded(t *testing.T) {
	if got := repeated(10, 5); got != 50 {
		t.Errorf("5 runs of 10 ns take %d", got)
	}
	if got := repeated(1e9, 1<<40); got != maxKernelTime.Nanoseconds() {
		t.Errorf("an endless loop takes %d", got)
	}
	for arg, want := range map[uint64]uint64{0: 1, 1: 1, 7: 7, 1 << 63: maxGraphRepeats} {
		if got := graphTimes(&wire.Entry{Arg64: arg}); got != want {
			t.Errorf("argument %d runs %d times, want %d", arg, got, want)
		}
	}
}

func TestConditionsByFunction(t *testing.T) {
	n, err := newNameTable(nil)
	if err != nil {
		t.Fatal(err)
	}
	var x conditions
	if rep := x.answer([]byte{1, 0, 0, 0}); rep.B != 0 {
		t.Errorf("an answer without any rule: %+v", rep)
	}
	x.set(n, map[string]uint64{"loop": 5})
	other, loop := n.intern("other"), n.intern("loop")
	ask := func(fs ...uint32) wire.Reply {
		var b []byte
		for _, f := range fs {
			b = binary.NativeEndian.AppendUint32(b, f)
		}
		return x.answer(b)
	}
	if rep := ask(other, loop); rep.A != 5 || rep.B != 1 {
		t.Errorf("loop: %+v", rep)
	}
	if rep := ask(other); rep.B != 0 {
		t.Errorf("other: %+v", rep)
	}
}
