// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxPlaces bounds the directories that are looked into.
const maxPlaces = 256

// library is one of the two driver libraries that ours stand for.
type library struct{ stem, soname string }

var (
	cuda = &library{"libcuda.so", "libcuda.so.1"}
	nvml = &library{"libnvidia-ml.so", "libnvidia-ml.so.1"}
)

// called returns the library that a file name stands for; nil if neither.
func called(name string) *library {
	for _, l := range []*library{cuda, nvml} {
		if name == l.stem || strings.HasPrefix(name, l.stem+".") {
			return l
		}
	}
	return nil
}

// place is a directory that may hold a copy, or one file that ld.so.cache names.
type place struct {
	path   string
	origin string // who names it, for people
	loader bool   // the loader looks there by itself
	single bool   // path is that of a file
	maybe  bool   // the loader looks there on some processors only
	// preload: the file is loaded before all others, and whatever its name is, it
	// then stands for its SONAME.
	preload bool
}

// candidate is a file that a program may take for one of the two libraries.
type candidate struct {
	*file
	lib   *library
	place place
	// exact: the loader finds it when it is asked for the SONAME.
	exact bool
}

// places lists where the loader looks, in its order, and then where programs
// look by themselves.
func (r *root) places(o *Options, e entry, l *loader) ([]place, error) {
	var all []place
	dirs := func(origin, list string, loader bool) {
		for _, d := range expand(list, e, l, o.WorkDir) {
			all = append(all, place{path: d, origin: origin, loader: loader})
		}
	}
	preloads, plain, err := r.preloads(o)
	if err != nil {
		return nil, err
	}
	for _, p := range preloads {
		for _, d := range expand(p.path, e, l, o.WorkDir) {
			p.path = d
			all = append(all, p)
		}
	}
	if e.image != nil && e.image.runpath == "" && e.image.rpath != "" {
		dirs("the rpath of "+e.path, e.image.rpath, true)
	}
	if o.LibraryPath != "" {
		dirs("LD_LIBRARY_PATH", o.LibraryPath, true)
	}
	if e.image != nil && e.image.runpath != "" {
		dirs("the runpath of "+e.path, e.image.runpath, true)
	}
	entries, err := r.cache(func(name string) bool { return called(name) != nil })
	if err != nil {
		return nil, err
	}
	for _, c := range entries {
		all = append(all, place{path: c.path, origin: cachePath, loader: true, single: true, maybe: !c.plain})
	}
	for _, d := range l.dirs {
		all = append(all, place{path: d, origin: l.path, loader: true})
	}
	// What a plain name of a preload leads to is loaded before all others.
	searched, err := r.searched(plain, all)
	if err != nil {
		return nil, err
	}
	all = append(searched, all...)
	for _, c := range entries {
		all = append(all, place{path: parent(c.path), origin: cachePath})
	}
	all = append(all, r.known()...)
	if len(all) > maxPlaces {
		return nil, refuse(CodeLoader, "its image and environment name more than %d directories of libraries: shorten LD_LIBRARY_PATH, or LD_PRELOAD", maxPlaces)
	}
	return all, nil
}

// cache returns the entries of ld.so.cache whose names wanted takes.
func (r *root) cache(wanted func(name string) bool) ([]cacheEntry, error) {
	f, err := r.file(cachePath)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, refuse(CodeImage, "%s of its image cannot be followed: %v: mend it with ldconfig", cachePath, err)
	}
	defer f.close()
	if !f.regular() {
		return nil, refuse(CodeImage, "%s of its image is no regular file: mend it with ldconfig", cachePath)
	}
	data, err := f.read(maxCache)
	if err != nil {
		return nil, refuse(CodeImage, "%s of its image cannot be read: %v: mend it with ldconfig", cachePath, err)
	}
	return readCache(data, wanted), nil
}

// conventional is the origin of places that nothing in the container names.
const conventional = "CUDA's directories"

// known are the directories in which CUDA images keep copies that the
// loader is told of later, or that programs open by their absolute names.
func (r *root) known() []place {
	var all []place
	add := func(dirs ...string) {
		for _, d := range dirs {
			all = append(all, place{path: d, origin: conventional})
		}
	}
	add("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib")
	versions, err := r.list("/usr/local", nil, func(name string) bool { return strings.HasPrefix(name, "cuda") })
	if err != nil {
		return all
	}
	slices.Sort(versions)
	for _, v := range versions {
		if len(all) > maxPlaces {
			break
		}
		dir := path.Join("/usr/local", v)
		add(path.Join(dir, "lib64"))
		names, err := r.list(dir, nil, func(name string) bool { return strings.HasPrefix(name, "compat") })
		if err != nil {
			continue
		}
		for _, n := range names {
			c := path.Join(dir, n)
			add(c, path.Join(c, "lib"), path.Join(c, "lib.real"))
		}
	}
	return all
}

// expand splits a list of directories as the loader does.
func expand(list string, e entry, l *loader, workDir string) []string {
	lib := "lib64"
	if len(l.dirs) > 0 {
		lib = strings.TrimPrefix(l.dirs[0], "/")
	}
	replace := strings.NewReplacer(
		"$ORIGIN", parent(e.path), "${ORIGIN}", parent(e.path),
		"$LIB", lib, "${LIB}", lib,
		"$PLATFORM", platform, "${PLATFORM}", platform,
	)
	var dirs []string
	for _, d := range strings.FieldsFunc(list+":", func(c rune) bool { return c == ':' || c == ';' }) {
		dirs = append(dirs, below(workDir, replace.Replace(d)))
	}
	// An empty part is the working directory.
	if list == "" || strings.ContainsAny(list[:1]+list[len(list)-1:], ":;") || strings.Contains(list, "::") {
		dirs = append(dirs, below(workDir, "."))
	}
	return dirs
}

// special are the directories below one of libraries that the loader prefers on
// processors that have the feature.
var special = []string{"glibc-hwcaps", "tls", platform, "haswell", "xeon_phi", "avx512_1", "atomics"}

// seek collects every candidate of every place. Its caller closes them.
func (r *root) seek(places []place) (found []candidate, err error) {
	defer func() {
		if err != nil {
			closeAll(found)
			found = nil
		}
	}()
	seen := map[spot]bool{}
	for _, p := range places {
		if p.single {
			if found, err = r.take(found, p, p.path); err != nil {
				return found, err
			}
			continue
		}
		if found, err = r.within(found, p, p.path, seen, 0); err != nil {
			return found, err
		}
	}
	return found, nil
}

// within collects the candidates of one directory.
func (r *root) within(found []candidate, p place, dir string, seen map[spot]bool, depth int) ([]candidate, error) {
	all := path.Base(dir) == "glibc-hwcaps"
	isSpecial := func(name string) bool { return all || slices.Contains(special, name) }
	names, err := r.list(dir, seen, func(name string) bool { return called(name) != nil || isSpecial(name) })
	if err != nil {
		if p.loader {
			return found, refuse(CodeLoader, "%s names %q, which cannot be followed: %v: leave it out", p.origin, dir, err)
		}
		return found, nil
	}
	// What the loader prefers comes first.
	below := p
	below.maybe = true
	for _, n := range names {
		if depth < 4 && isSpecial(n) {
			if found, err = r.within(found, below, join(dir, n), seen, depth+1); err != nil {
				return found, err
			}
		}
	}
	for _, n := range names {
		if called(n) != nil {
			if found, err = r.take(found, p, join(dir, n)); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// take looks at one file. What a loader would stumble over is refused where it
// would stumble, and left alone elsewhere.
func (r *root) take(found []candidate, p place, name string) ([]candidate, error) {
	lib := called(path.Base(name))
	if lib == nil && p.preload {
		var err error
		if lib, err = r.stands(p, name); err != nil {
			return found, err
		}
	}
	if lib == nil {
		return found, nil
	}
	exact := p.loader && (path.Base(name) == lib.soname || p.preload)
	bad := func(why string) ([]candidate, error) {
		if !exact {
			return found, nil
		}
		return found, refuse(CodeLoader, "%s leads to %q, which %s: take it out of the image, or out of the search path", p.origin, name, why)
	}
	f, err := r.file(name)
	switch {
	case absent(err):
		return found, nil
	case errors.Is(err, unix.ELOOP):
		return bad("is a link in a circle or through /proc")
	case err != nil:
		return bad("cannot be looked at (" + err.Error() + ")")
	}
	if !f.regular() {
		f.close()
		return bad("is no regular file")
	}
	if path.Base(path.Dir(name)) == "stubs" || path.Base(path.Dir(f.real())) == "stubs" {
		f.close()
		return bad("is a stub for building programs, not a driver")
	}
	if len(found) >= maxFiles {
		f.close()
		return found, refuse(CodeLoader, "its image has more than %d copies of the driver's libraries: take them out", maxFiles)
	}
	return append(found, candidate{f, lib, p, exact}), nil
}

func closeAll(list []candidate) {
	for _, c := range list {
		c.close()
	}
}
