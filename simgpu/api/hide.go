// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"
)

// Hide returns a copy of a built library without the given exports, as if the
// driver were older or broken: neither the dynamic linker nor cuGetProcAddress
// finds them. Names that the library does not export are passed over.
//
// A name becomes an undefined weak symbol, which look-ups skip and a call of
// the library itself to it does not need; the section .sg_absent has a byte for
// each name of the table.
func Hide(library []byte, names []string) ([]byte, error) {
	f, err := elf.NewFile(bytes.NewReader(library))
	if err != nil {
		return nil, fmt.Errorf("read library: %w", err)
	}
	defer f.Close() //nolint:errcheck // memory
	table, absent := f.Section(".dynsym"), f.Section(".sg_absent")
	symbols, err := f.DynamicSymbols()
	if err != nil || table == nil || absent == nil || f.Class != elf.ELFCLASS64 {
		return nil, fmt.Errorf("read library: no table of its names (%w)", err)
	}
	out := bytes.Clone(library)
	for i, s := range symbols {
		if !slices.Contains(names, s.Name) || s.Section == elf.SHN_UNDEF {
			continue
		}
		const size, info, section, value = elf.Sym64Size, 4, 6, 8
		at := table.Offset + uint64(i+1)*size // DynamicSymbols leaves out the first
		out[at+info] = byte(elf.STB_WEAK)<<4 | byte(elf.STT_NOTYPE)
		clear(out[at+section : at+section+2])
		clear(out[at+value : at+value+16])
	}
	for _, all := range [][]Name{CUDA(), NVML()} {
		if uint64(len(all)) != absent.Size {
			continue // the other library's
		}
		for i, n := range all {
			if slices.Contains(names, n.Symbol) {
				out[absent.Offset+uint64(i)] = 1
			}
		}
	}
	return out, nil
}
