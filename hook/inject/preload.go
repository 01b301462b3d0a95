// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"strings"
	"unicode"
)

const preloadPath = "/etc/ld.so.preload"

// maxPreload bounds ld.so.preload, in bytes.
const maxPreload = 64 << 10

// preloads lists the files that every program of the container loads first. Plain
// names, which the loader searches for as for any library, are returned apart.
func (r *root) preloads(o *Options) (files, plain []place, err error) {
	add := func(origin, list string) {
		for _, p := range strings.FieldsFunc(list, func(c rune) bool { return c == ':' || unicode.IsSpace(c) }) {
			found := place{path: p, origin: origin, loader: true, single: true, maybe: true, preload: true}
			if strings.Contains(p, "/") {
				files = append(files, found)
			} else {
				plain = append(plain, found)
			}
		}
	}
	add("LD_PRELOAD", o.Preload)
	f, err := r.file(preloadPath)
	if absent(err) {
		return files, plain, nil
	}
	var data []byte
	if err == nil {
		defer f.close()
		data, err = f.read(maxPreload)
	}
	if err != nil {
		return nil, nil, refuse(CodeImage, "%s of its image cannot be read: %v: mend it, or take it out", preloadPath, err)
	}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		add(preloadPath, line)
	}
	return files, plain, nil
}

// searched are the files that the plain names of preloads may stand for, by the
// cache and in the directories that the loader searches.
func (r *root) searched(plain, among []place) ([]place, error) {
	var all []place
	if len(plain) == 0 {
		return nil, nil
	}
	cached, err := r.cache(func(name string) bool {
		return slices.ContainsFunc(plain[:min(len(plain), maxPlaces)], func(p place) bool { return p.path == name })
	})
	if err != nil {
		return nil, err
	}
	for _, p := range plain {
		found := p
		for _, c := range cached {
			if found.path = c.path; c.name == p.path {
				all = append(all, found)
			}
		}
		for _, d := range among {
			if found.path = join(d.path, p.path); d.loader && !d.single {
				all = append(all, found)
			}
			if len(all) > maxPlaces {
				return all, nil // which will be refused
			}
		}
	}
	return all, nil
}

// stands returns the library whose SONAME the file at name carries; nil if none.
// A file that we cannot look at, but the loader may, is refused.
func (r *root) stands(p place, name string) (*library, error) {
	f, err := r.file(name)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, refuse(CodeLoader, "%s names %q, which cannot be followed: %v: leave it out", p.origin, name, err)
	}
	defer f.close()
	if img := f.elf(); img != nil {
		return called(img.soname), nil
	}
	return nil, nil
}
