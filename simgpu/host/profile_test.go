// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpushare/gpushare/simgpu/kernel"
	"github.com/gpushare/gpushare/simgpu/profile"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// field is a value in a profile, by its name in the file.
type field struct {
	name string
	v    reflect.Value
	tag  reflect.StructTag
}

// fields lists all values below v, which is a struct.
func fields(v reflect.Value, at string) (out []field) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := f.Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		if v.Field(i).Kind() == reflect.Struct {
			out = append(out, fields(v.Field(i), at+name+".")...)
			continue
		}
		out = append(out, field{at + name, v.Field(i), f.Tag})
	}
	return out
}

// others are values of a field that differ from the one it has.
func (f field) others() (out []reflect.Value) {
	add := func(x any) {
		if v := reflect.ValueOf(x).Convert(f.v.Type()); !reflect.DeepEqual(v.Interface(), f.v.Interface()) {
			out = append(out, v)
		}
	}
	switch {
	case f.v.Type() == reflect.TypeFor[time.Duration]():
		add(time.Duration(f.v.Int()) + 10*time.Millisecond)
	case f.v.Kind() == reflect.String && f.tag.Get("oneof") != "":
		for _, word := range strings.Split(f.tag.Get("oneof"), ",") {
			add(word)
		}
	case f.v.Kind() == reflect.String:
		for _, text := range []string{"77us", "GPU-11111111-2222-3333-4444-555555555555", "0001:77:05.0"} {
			add(text)
		}
	case f.v.Type() == reflect.TypeFor[map[string]string]():
		add(map[string]string{"image_version": "1", "oem_object": "2", "ecc_object": "3", "pwr_object": "4"})
	case f.v.Type() == reflect.TypeFor[map[string]int]():
		add(map[string]int{"PAGEABLE_MEMORY_ACCESS": 1})
	case f.v.Kind() == reflect.Bool:
		add(!f.v.Bool())
	case f.v.CanUint():
		add(f.v.Uint() + 4<<20)
		add(f.v.Uint() + 1)
		add(f.v.Uint() / 2)
	case f.v.CanInt():
		for _, d := range []int64{1, 40, 2000, -1, -20} {
			add(f.v.Int() + d)
		}
	}
	return out
}

// look is what clients, the node's files and the model of the GPU get of a card.
// How the model then runs is the business of simgpu/test.
func look(p profile.GPU) (string, error) {
	rules, err := kernel.ParseRules([]string{"stuck=hang", "varies=1ms~20%"})
	if err != nil {
		return "", err
	}
	h, err := New(Config{GPUs: []profile.GPU{p}, Kernels: rules, Clock: Clock{Virtual: true, QueryCost: time.Microsecond}, Seed: "test"},
		slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		return "", err
	}
	g := h.gpus[0]
	out := fmt.Sprintf("%+v %+v %+v", h.node.GPU[0], h.NodeGPUs(), h.read(g))
	cc := &clientContext{}
	k := h.names.intern("stuck")
	out += fmt.Sprintf("%+v %+v %+v %d", simGPU(p.Engine, 4), g.nvml.sampling, h.kernelOp(cc, h.names.intern("other"), 1),
		h.contextCost(&client{use: []usage{{contexts: 1}}}, 0))
	out += fmt.Sprintf(" %+v %+v", h.kernelOp(cc, k, 1), h.kernelOp(cc, h.names.intern("varies"), 1))
	for _, way := range []uint32{wire.CopyHtoD, wire.CopyDtoH, wire.CopyDtoD, wire.CopyPeer} {
		for _, pinned := range []uint32{0, wire.CopyPinned} {
			out += fmt.Sprintf(" %+v", h.copyOp(cc, &wire.Entry{Kind: wire.EntryCopy, Arg: way | pinned, Arg64: 1 << 30}))
		}
	}
	busy := h.after(600, 0.9)
	return out + fmt.Sprintf("%+v %d", busy, len(h.samples(g, 0, queryRoom))), nil
}

// Each field that a profile can have changes something for clients, for the files
// of the node or for the model of the GPU.
func TestEveryFieldOfAProfile(t *testing.T) {
	seen := map[string]bool{}
	var all []string
	for _, card := range []string{"h100", "rtx4090", "t4"} {
		p, err := profile.Load(card)
		if err != nil {
			t.Fatal(err)
		}
		base, err := look(p.GPU)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fields(reflect.ValueOf(&p.GPU).Elem(), "") {
			if !slices.Contains(all, f.name) {
				all = append(all, f.name)
			}
			if seen[f.name] {
				continue
			}
			before := reflect.New(f.v.Type()).Elem()
			before.Set(f.v)
			for _, v := range f.others() {
				f.v.Set(v)
				if got, err := look(p.GPU); err == nil && got != base {
					seen[f.name] = true
					break
				}
			}
			f.v.Set(before)
		}
	}
	for _, name := range all {
		if !seen[name] {
			t.Errorf("%s: nothing changes with it", name)
		}
	}
	if len(all) < 100 {
		t.Errorf("%d fields: %v", len(all), all)
	}
}
