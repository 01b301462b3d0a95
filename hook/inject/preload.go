// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"unicode"
)

const preloadPath = "/etc/ld.so.preload"

// maxPreload bounds ld.so.preload, in bytes.
const maxPreload = 64 << 10

// preloads lists the files that every program of the container loads first. Of
// plain names the loader makes an ordinary search.
func (r *root) preloads(o *Options) ([]place, error) {
	var all []place
	add := func(origin, list string) {
		for _, p := range strings.FieldsFunc(list, func(c rune) bool { return c == ':' || unicode.IsSpace(c) }) {
			if strings.Contains(p, "/") {
				all = append(all, place{path: p, origin: origin, loader: true, single: true, maybe: true, preload: true})
			}
		}
	}
	add("LD_PRELOAD", o.Preload)
	f, err := r.file(preloadPath)
	if absent(err) {
		return all, nil
	}
	var data []byte
	if err == nil {
		defer f.close()
		data, err = f.read(maxPreload)
	}
	if err != nil {
		return nil, refuse(CodeImage, "%s of its image cannot be read: %v: mend it, or take it out", preloadPath, err)
	}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		add(preloadPath, line)
	}
	return all, nil
}

// stands returns the library whose SONAME the file at name carries; nil if none.
func (r *root) stands(name string) *library {
	f, err := r.file(name)
	if err != nil {
		return nil
	}
	defer f.close()
	if img := f.elf(); img != nil {
		return called(img.soname)
	}
	return nil
}
