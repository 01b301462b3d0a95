// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
)

// Numbers of the ELF format, 64-bit and little-endian: the only kind that our
// libraries exist for.
const (
	elfHeaderSize  = 64
	elfProgramSize = 56
	maxPrograms    = 128
	maxDynamic     = 64 << 10
	maxText        = 4096

	ptLoad    = 1
	ptDynamic = 2
	ptInterp  = 3

	dtStrtab  = 5
	dtSoname  = 14
	dtRpath   = 15
	dtRunpath = 29
)

// machine is the ELF number of this architecture.
var machine = map[string]uint16{"amd64": 62, "arm64": 183}[runtime.GOARCH]

// platform is the loader's name of this architecture.
var platform = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]

// image is what the loader reads of a program.
type image struct {
	machine        uint16
	interpreter    string // empty: static
	rpath, runpath string
	soname         string
}

var errNotELF = errors.New("not a 64-bit ELF file")

// readImage reads an ELF file; sizes and offsets in it are not believed.
func readImage(r io.ReaderAt) (*image, error) {
	head := make([]byte, elfHeaderSize)
	if _, err := r.ReadAt(head, 0); err != nil {
		return nil, errNotELF
	}
	if string(head[:4]) != "\x7fELF" || head[4] != 2 || head[5] != 1 {
		return nil, errNotELF
	}
	le := binary.LittleEndian
	img := &image{machine: le.Uint16(head[18:])}
	offset, size, count := le.Uint64(head[32:]), le.Uint16(head[54:]), le.Uint16(head[56:])
	if size != elfProgramSize || count > maxPrograms || offset > 1<<40 {
		return img, nil
	}
	table := make([]byte, int(count)*elfProgramSize)
	if _, err := r.ReadAt(table, int64(offset)); err != nil {
		return img, nil // a loader would not take it either
	}
	type segment struct{ kind, offset, address, size uint64 }
	var segments []segment
	for p := table; len(p) > 0; p = p[elfProgramSize:] {
		segments = append(segments, segment{uint64(le.Uint32(p)), le.Uint64(p[8:]), le.Uint64(p[16:]), le.Uint64(p[32:])})
	}
	var dynamic []byte
	for _, s := range segments {
		switch s.kind {
		case ptInterp:
			img.interpreter = textAt(r, s.offset, s.size)
		case ptDynamic:
			if s.offset < 1<<40 {
				dynamic = make([]byte, min(s.size, maxDynamic))
				n, _ := r.ReadAt(dynamic, int64(s.offset))
				dynamic = dynamic[:n]
			}
		}
	}
	values := map[uint64]uint64{}
	for ; len(dynamic) >= 16 && le.Uint64(dynamic) != 0; dynamic = dynamic[16:] {
		values[le.Uint64(dynamic)] = le.Uint64(dynamic[8:])
	}
	text := func(tag uint64) string {
		at, ok := values[tag]
		if !ok {
			return ""
		}
		at += values[dtStrtab]
		for _, s := range segments {
			if s.kind == ptLoad && at >= s.address && at-s.address < s.size {
				return textAt(r, s.offset+(at-s.address), maxText)
			}
		}
		return ""
	}
	img.rpath, img.runpath, img.soname = text(dtRpath), text(dtRunpath), text(dtSoname)
	return img, nil
}

// textAt reads a string that ends with a zero byte, of at most size bytes.
func textAt(r io.ReaderAt, offset, size uint64) string {
	if offset > 1<<40 {
		return ""
	}
	buf := make([]byte, min(size, maxText))
	n, _ := r.ReadAt(buf, int64(offset))
	text, _, ok := bytes.Cut(buf[:n], []byte{0})
	if !ok || strings.ContainsAny(string(text), "\n") {
		return ""
	}
	return string(text)
}

// elf reads the file as a program or library; nil if it is none of this
// architecture.
func (f *file) elf() *image {
	o, err := f.open()
	if err != nil {
		return nil
	}
	defer o.Close()
	img, err := readImage(o)
	if err != nil || img.machine != machine {
		return nil
	}
	return img
}
