// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// version is a driver's, 550.54.14; nil if unknown.
type version []int

// versionOf reads the version out of a file name. SONAME links such as .so.1
// have none.
func versionOf(name string) version {
	_, text, ok := strings.Cut(name, ".so.")
	if !ok {
		return nil
	}
	var v version
	for _, part := range strings.Split(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil
		}
		v = append(v, n)
	}
	if v[0] < 100 {
		return nil
	}
	return v
}

// choose returns the copy of libcuda that the bare driver's programs would use
// instead of the host's: the one that the loader finds first, unless it is known
// to be no newer than the host's, which the kernel's driver would not serve; or
// the newest of a compat directory, if of a newer major version.
func (w *work) choose(found []candidate) *candidate {
	host, hostID := w.hostVersion, w.hostReal.id
	for i := range found {
		c := &found[i]
		if c.lib != cuda || !c.exact {
			continue
		}
		if w.isOurs(*c) {
			break // the host's comes first
		}
		if c.id == hostID || c.elf() == nil {
			continue
		}
		v := versionOf(path.Base(c.real()))
		if v == nil || host == nil || slices.Compare(v, host) > 0 {
			return c
		}
		break
	}
	var newest *candidate
	var best version
	for i := range found {
		c := &found[i]
		if c.lib != cuda || host == nil || w.isOurs(*c) || c.place.origin != conventional || !strings.Contains(c.path, "/compat") || c.id == hostID || c.elf() == nil {
			continue
		}
		if v := versionOf(path.Base(c.real())); v != nil && v[0] > host[0] && slices.Compare(v, best) > 0 {
			newest, best = c, v
		}
	}
	return newest
}

// companion matches what libcuda itself loads by SONAME and what must be of its
// own version.
var companion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^lib(cudadebugger|nvidia-(ptxjitcompiler|nvvm|nvvm70|gpucomp|tileiras))\.so\.[0-9]+$`)
})

// route makes the copy the private real libcuda, and its companions the ones
// that the loader finds.
func (w *work) route(c *candidate) error {
	place, err := w.root.file(cudaReal)
	if err != nil {
		return fmt.Errorf("look at %s in the container: %w", cudaReal, err)
	}
	defer place.close()
	if err := cover(c.file, place); err != nil {
		return err
	}
	dir := parent(c.path)
	names, err := w.root.list(dir, nil, companion().MatchString)
	if err != nil {
		return nil // a directory that cannot be listed has no companions
	}
	for _, name := range names {
		target := w.find(name)
		if target == nil {
			continue
		}
		err := w.companion(join(dir, name), target)
		target.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *work) companion(name string, target *file) error {
	f, err := w.root.file(name)
	if err != nil || !f.regular() || f.id == target.id || w.shared[target.mount] || f.elf() == nil {
		if err == nil {
			f.close()
		}
		return nil
	}
	defer f.close()
	return cover(f, target)
}

// find returns the first file that the loader would find by that name, through
// LD_LIBRARY_PATH and the like, ld.so.cache or its own directories; nil if none.
func (w *work) find(name string) *file {
	cached := false
	for _, p := range w.places {
		if !p.loader || p.preload {
			continue
		}
		dir := p.path
		if p.single || (!cached && p.origin == w.loader.path) {
			cached = true
			if f := w.findCached(name); f != nil {
				return f
			}
			if p.single {
				continue
			}
		}
		if f := w.regular(join(dir, name)); f != nil {
			return f
		}
	}
	return nil
}

func (w *work) findCached(name string) *file {
	f, err := w.root.file(cachePath)
	if err != nil {
		return nil
	}
	defer f.close()
	data, err := f.read(maxCache)
	if err != nil {
		return nil
	}
	for _, e := range readCache(data, func(n string) bool { return n == name }) {
		if !e.plain {
			continue
		}
		if f := w.regular(e.path); f != nil {
			return f
		}
	}
	return nil
}

func (w *work) regular(name string) *file {
	f, err := w.root.file(name)
	if err != nil {
		return nil
	}
	if !f.regular() || f.elf() == nil {
		f.close()
		return nil
	}
	return f
}
