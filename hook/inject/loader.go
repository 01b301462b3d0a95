// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"io"
	"path"
	"runtime"
	"strings"
)

// maxLoader bounds a dynamic loader, in bytes; glibc's has 200 KiB.
const maxLoader = 8 << 20

// Where the loaders of this and other architectures lie, as programs name them.
var (
	glibcLoader = map[string]string{"amd64": "/lib64/ld-linux-x86-64.so.2", "arm64": "/lib/ld-linux-aarch64.so.1"}[runtime.GOARCH]
	muslLoader  = map[string]string{"amd64": "/lib/ld-musl-x86_64.so.1", "arm64": "/lib/ld-musl-aarch64.so.1"}[runtime.GOARCH]

	foreignLoaders = []string{
		"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-linux.so.2", "/lib/ld-linux-armhf.so.3",
		"/lib64/ld64.so.2", "/lib/ld64.so.1", "/lib/ld-linux-riscv64-lp64d.so.1", "/lib64/ld-linux-loongarch-lp64d.so.1",
	}
)

// loader is the container's dynamic loader.
type loader struct {
	path string
	// dirs are the directories compiled into it.
	dirs []string
}

// entry is the program that the container starts.
type entry struct {
	path  string
	image *image
}

// findEntry follows the spec's first argument through PATH and "#!" lines. It
// returns an entry without an image if that leads to no program we can read:
// the container may then still have others.
func (r *root) findEntry(o *Options) entry {
	name := o.Arg0
	dirs := strings.Split(o.SearchPath, ":")
	for range 4 {
		f := r.findProgram(name, dirs, o.WorkDir)
		if f == nil {
			return entry{}
		}
		img := f.elf()
		found := entry{r.inside(f), img}
		line := ""
		if img == nil {
			line = f.firstLine()
		}
		f.close()
		if img != nil {
			return found
		}
		words := strings.Fields(strings.TrimPrefix(line, "#!"))
		if !strings.HasPrefix(line, "#!") || len(words) == 0 {
			return entry{}
		}
		if name = words[0]; path.Base(name) == "env" && len(words) > 1 && !strings.HasPrefix(words[1], "-") {
			name = words[1]
		}
	}
	return entry{}
}

func (r *root) findProgram(name string, dirs []string, workDir string) *file {
	if name == "" {
		return nil
	}
	if strings.Contains(name, "/") {
		name, dirs = below(workDir, name), []string{""}
	}
	for i, d := range dirs {
		if i == maxPlaces {
			break
		}
		p := name
		if d != "" {
			p = join(below(workDir, d), name)
		}
		f, err := r.file(p)
		if err != nil {
			continue
		}
		if f.regular() {
			return f
		}
		f.close()
	}
	return nil
}

// below makes a path absolute that may be relative to dir.
func below(dir, name string) string {
	if path.IsAbs(name) {
		return name
	}
	return "/" + join(dir, name)
}

func (f *file) firstLine() string {
	o, err := f.open()
	if err != nil {
		return ""
	}
	defer o.Close()
	buf := make([]byte, 256)
	n, _ := io.ReadFull(o, buf)
	line, _, _ := bytes.Cut(buf[:n], []byte("\n"))
	return string(line)
}

// findLoader returns the glibc loader of the image, or the reason why our
// libraries, which need one, cannot work in it.
func (r *root) findLoader(e entry) (*loader, error) {
	names := []string{}
	if e.image != nil && path.IsAbs(e.image.interpreter) {
		names = append(names, e.image.interpreter)
	}
	for _, name := range append(names, glibcLoader) {
		if l := r.glibc(name); l != nil {
			return l, nil
		}
	}
	if name := muslLoader; r.exists(name) {
		return nil, refuse(CodeImage, "its image has musl's loader (%s), and the driver's library needs glibc: use an image based on Debian, Ubuntu or UBI instead of Alpine", name)
	}
	for _, name := range foreignLoaders {
		if r.exists(name) {
			return nil, refuse(CodeImage, "its image has %s, but no glibc loader for %s: use an image for this machine's architecture", name, runtime.GOARCH)
		}
	}
	return nil, refuse(CodeImage, "its image has no dynamic loader (%s), and a static program cannot load the driver's library: use an image with glibc", glibcLoader)
}

func (r *root) exists(name string) bool {
	f, err := r.file(name)
	if err != nil {
		return false
	}
	defer f.close()
	return f.regular()
}

// glibc returns the loader at name if it is glibc's, for this architecture.
func (r *root) glibc(name string) *loader {
	f, err := r.file(name)
	if err != nil {
		return nil
	}
	defer f.close()
	if !f.regular() || f.elf() == nil {
		return nil
	}
	data, err := f.read(maxLoader)
	if err != nil || !bytes.Contains(data, []byte("\x00GLIBC_PRIVATE\x00")) {
		return nil
	}
	return &loader{path: name, dirs: systemDirs(data)}
}

// systemDirs reads the directories that a loader looks in without being told:
// one string after the other, each with a slash at its end.
func systemDirs(data []byte) []string {
	var best []string
	for _, start := range []string{"/lib", "/usr/lib", "/nix/store/", "/gnu/store/"} {
		for from := 1; from < len(data); from++ {
			at := bytes.Index(data[from:], []byte(start))
			if at < 0 {
				break
			}
			if from += at; data[from-1] != 0 {
				continue // in the middle of a text
			}
			if dirs := textsAt(data[from:]); len(dirs) > len(best) {
				best = dirs
			}
		}
	}
	return best
}

func textsAt(data []byte) []string {
	var dirs []string
	for len(dirs) < 16 {
		n := bytes.IndexByte(data[:min(len(data), maxText)], 0)
		if n < 2 || data[0] != '/' || data[n-1] != '/' {
			break
		}
		dirs = append(dirs, path.Clean(string(data[:n])))
		data = data[n+1:]
	}
	return dirs
}
