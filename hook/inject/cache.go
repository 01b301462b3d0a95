// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"encoding/binary"
	"path"
	"runtime"
)

const (
	cachePath = "/etc/ld.so.cache"
	// maxCache bounds it, in bytes; that of a large desktop system has 300 KiB.
	maxCache = 16 << 20

	cacheOld        = "ld.so-1.7.0"
	cacheNew        = "glibc-ld.so.cache1.1"
	cacheHeaderSize = 48
	cacheEntrySize  = 24
)

// cacheFlags marks the entries for this architecture's 64-bit glibc.
var cacheFlags = map[string]uint32{"amd64": 0x0303, "arm64": 0x0a03}[runtime.GOARCH]

// cacheEntry is one library that ld.so.cache names. plain is one that the loader
// takes on every processor of this architecture.
type cacheEntry struct {
	name, path string
	plain      bool
}

// readCache returns the entries of an ld.so.cache whose names wanted takes, in
// the order of the file. A file that the loader would not use has none.
func readCache(data []byte, wanted func(name string) bool) []cacheEntry {
	le := binary.LittleEndian
	if bytes.HasPrefix(data, []byte(cacheOld)) && len(data) >= 16 {
		// The old format comes first, the new one after it at a multiple of 8.
		count := uint64(le.Uint32(data[12:]))
		at := (16 + count*12 + 7) &^ 7
		if at > uint64(len(data)) {
			return nil
		}
		data = data[at:]
	}
	if !bytes.HasPrefix(data, []byte(cacheNew)) || len(data) < cacheHeaderSize {
		return nil
	}
	text := func(at uint32) string {
		if uint64(at) >= uint64(len(data)) {
			return ""
		}
		rest := data[at:min(uint64(len(data)), uint64(at)+maxText)]
		t, _, ok := bytes.Cut(rest, []byte{0})
		if !ok {
			return ""
		}
		return string(t)
	}
	count := uint64(le.Uint32(data[20:]))
	count = min(count, uint64(len(data)-cacheHeaderSize)/cacheEntrySize)
	var entries []cacheEntry
	for i := range count {
		e := data[cacheHeaderSize+i*cacheEntrySize:]
		name := text(le.Uint32(e[4:]))
		if !wanted(name) {
			continue
		}
		if p := text(le.Uint32(e[8:])); path.IsAbs(p) && len(entries) < maxFiles {
			entries = append(entries, cacheEntry{name, p, le.Uint32(e) == cacheFlags && le.Uint64(e[16:]) == 0})
		}
	}
	return entries
}
