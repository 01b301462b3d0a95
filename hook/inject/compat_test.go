// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"
)

const newer = "libcuda.so.1000.1"

// An image ships its own libcuda in each way that a loader finds one, and some
// that only programs find. What is seen at the copy must be ours; which file is
// the real one depends on the policy.
func TestImagesOwnLibcuda(t *testing.T) {
	const compat = "/usr/local/cuda-13.0/compat/"
	for _, c := range []struct {
		name  string
		make  func(w *world)
		copy  string
		route string // what is real with route
		// chosen: a policy of refuse refuses it.
		chosen bool
	}{
		{"LD_LIBRARY_PATH", func(w *world) {
			w.library("rootfs/opt/x/"+newer, "image cuda")
			w.link(newer, "rootfs/opt/x/libcuda.so.1")
			w.Options.LibraryPath = "/nowhere:/opt/x"
		}, "/opt/x/" + newer, "image cuda", true},
		{"LD_LIBRARY_PATH, relative", func(w *world) {
			w.library("rootfs/opt/x/libcuda.so.1", "image cuda")
			w.Options.LibraryPath, w.Options.WorkDir = "x", "/opt"
		}, "/opt/x/libcuda.so.1", "image cuda", true},
		{"LD_LIBRARY_PATH, the working directory", func(w *world) {
			w.library("rootfs/opt/libcuda.so.1", "image cuda")
			w.Options.LibraryPath, w.Options.WorkDir = "/a:", "/opt"
		}, "/opt/libcuda.so.1", "image cuda", true},
		{"LD_LIBRARY_PATH, $LIB", func(w *world) {
			w.library("rootfs/opt/lib/x86_64-linux-gnu/libcuda.so.1", "image cuda")
			w.Options.LibraryPath = "/opt/${LIB}"
		}, "/opt/lib/x86_64-linux-gnu/libcuda.so.1", "image cuda", true},
		{"for better processors", func(w *world) {
			w.library("rootfs/opt/x/glibc-hwcaps/x86-64-v3/libcuda.so.1", "image cuda")
			w.Options.LibraryPath = "/opt/x"
		}, "/opt/x/glibc-hwcaps/x86-64-v3/libcuda.so.1", "image cuda", true},
		{"ld.so.cache", func(w *world) {
			w.library("rootfs/opt/x/"+newer, "image cuda")
			w.link(newer, "rootfs/opt/x/libcuda.so.1")
			w.cache([2]string{"libc.so.6", libDir + "/libc.so.6"}, [2]string{"libcuda.so.1", "/opt/x/libcuda.so.1"})
		}, "/opt/x/" + newer, "image cuda", true},
		{"ld.so.cache, old and new format", func(w *world) {
			w.library("rootfs/opt/x/libcuda.so.1", "image cuda")
			old := append([]byte(cacheOld), 0, 2, 0, 0, 0)
			old = append(old, make([]byte, 2*12)...)
			old = append(old, cacheOf(cacheFlags, [2]string{"libcuda.so.1", "/opt/x/libcuda.so.1"})...)
			w.write("rootfs/etc/ld.so.cache", string(old))
		}, "/opt/x/libcuda.so.1", "image cuda", true},
		{"rpath of the entry point", func(w *world) {
			w.write("rootfs/usr/bin/sh", string(program(dtRpath, "$ORIGIN/../x")))
			w.library("rootfs/usr/x/libcuda.so.1", "image cuda")
		}, "/usr/x/libcuda.so.1", "image cuda", true},
		{"runpath of what the script runs on", func(w *world) {
			w.write("rootfs/usr/bin/python", string(program(dtRunpath, "/opt/x")))
			w.write("rootfs/usr/bin/sh", "#!/usr/bin/env python\n")
			w.library("rootfs/opt/x/libcuda.so.1", "image cuda")
		}, "/opt/x/libcuda.so.1", "image cuda", true},
		{"LD_PRELOAD", func(w *world) {
			w.library("rootfs/opt/x/libcuda.so.1", "image cuda")
			w.Options.Preload = "libc.so.6 /opt/x/libcuda.so.1:/nowhere/x.so"
		}, "/opt/x/libcuda.so.1", "image cuda", true},
		{"LD_PRELOAD under another name", func(w *world) {
			w.write("rootfs/opt/x/mine.so", string(program(dtSoname, "libcuda.so.1"))+"image cuda")
			w.Options.Preload = "/opt/x/mine.so"
		}, "/opt/x/mine.so", "image cuda", true},
		{"LD_PRELOAD under another name, without its directory", func(w *world) {
			w.write("rootfs/opt/x/mine.so", string(program(dtSoname, "libcuda.so.1"))+"image cuda")
			w.Options.Preload, w.Options.LibraryPath = "other.so mine.so", "/opt/y:/opt/x"
		}, "/opt/x/mine.so", "image cuda", true},
		{"LD_PRELOAD under another name, by the cache", func(w *world) {
			w.write("rootfs/opt/x/mine.so", string(program(dtSoname, "libcuda.so.1"))+"image cuda")
			w.cache([2]string{"mine.so", "/opt/x/mine.so"})
			w.Options.Preload = "mine.so"
		}, "/opt/x/mine.so", "image cuda", true},
		{"ld.so.preload", func(w *world) {
			w.library("rootfs/opt/x/libcuda.so.1", "image cuda")
			w.write("rootfs/etc/ld.so.preload", "# ours\n/lib/other.so # /x\n\t/opt/x/libcuda.so.1\n")
		}, "/opt/x/libcuda.so.1", "image cuda", true},
		{"compat directory, newer", func(w *world) {
			w.library("rootfs"+compat+newer, "image cuda")
			w.link(newer, "rootfs"+compat+"libcuda.so.1")
			w.link("cuda-13.0", "rootfs/usr/local/cuda")
		}, "/usr/local/cuda/compat/libcuda.so.1", "image cuda", true},
		{"compat directory, older", func(w *world) {
			w.library("rootfs"+compat+"libcuda.so.550.54.14", "image cuda")
			w.link("libcuda.so.550.54.14", "rootfs"+compat+"libcuda.so.1")
		}, compat + "libcuda.so.1", "host cuda", false},
		{"compat directory, same major version", func(w *world) {
			w.library("rootfs"+compat+"libcuda.so.999.2", "image cuda")
		}, compat + "libcuda.so.999.2", "host cuda", false},
		{"two compat directories", func(w *world) {
			w.library("rootfs/usr/local/cuda-12.0/compat/libcuda.so.1001.1", "image cuda, old")
			w.library("rootfs"+compat+"libcuda.so.1002.1", "image cuda")
		}, "/usr/local/cuda-12.0/compat/libcuda.so.1001.1", "image cuda", true},
		{"LD_LIBRARY_PATH, older than the host's", func(w *world) {
			w.library("rootfs/opt/x/libcuda.so.535.1", "image cuda")
			w.link("libcuda.so.535.1", "rootfs/opt/x/libcuda.so.1")
			w.Options.LibraryPath = "/opt/x"
		}, "/opt/x/libcuda.so.1", "host cuda", false},
		{"known by its full name only", func(w *world) {
			w.library("rootfs"+libDir+"/libcuda.so.1000.1", "image cuda")
		}, libDir + "/libcuda.so.1000.1", "host cuda", false},
		{"a copy of NVML", func(w *world) {
			w.library("rootfs/opt/x/libnvidia-ml.so.1", "image nvml")
			w.Options.LibraryPath = "/opt/x"
		}, "/opt/x/libnvidia-ml.so.1", "host cuda", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, policy := range []string{Route, Host, Refuse} {
				w := newWorld(t)
				c.make(w)
				w.Options.Compat = policy
				w.Look = []string{c.copy, cudaReal, libDir + "/libcuda.so.1", nvmlReal}
				got := w.hook()
				if policy == Refuse && c.chosen {
					if !strings.Contains(got.Error, "[GS-COMPAT]") || !strings.Contains(got.Error, "libcuda") {
						t.Errorf("refuse: hook says %q", got.Error)
					}
					continue
				}
				real := c.route
				if policy != Route {
					real = "host cuda"
				}
				ours := covered
				if strings.Contains(c.copy, "libnvidia-ml") {
					ours = "our nvml"
				}
				want := map[string]string{c.copy: ours, cudaReal: real, libDir + "/libcuda.so.1": covered, nvmlReal: "host nvml"}
				for name := range want {
					if got.Error != "" || got.Seen[name] != want[name] {
						t.Errorf("%s: the container sees %q at %s, want %q; hook says %q", policy, got.Seen[name], name, want[name], got.Error)
					}
				}
			}
		})
	}
}

// In a user namespace the hook is root only there; that does.
func TestUserNamespace(t *testing.T) {
	w := newWorld(t)
	w.library("rootfs/opt/x/libcuda.so.1", "image cuda")
	w.Options.LibraryPath = "/opt/x"
	w.UserNamespace = true
	w.Look = []string{"/opt/x/libcuda.so.1", cudaReal}
	if got := w.hook(); got.Error != "" || got.Seen[w.Look[0]] != covered || got.Seen[cudaReal] != "image cuda" {
		t.Errorf("%+v", got)
	}
}

// Engines put images together as overlays, and may make them read-only.
func TestOverlay(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		w := newWorld(t)
		w.mkdir("upper")
		w.mkdir("work")
		w.library("rootfs/opt/x/"+newer, "image cuda")
		w.link(newer, "rootfs/opt/x/libcuda.so.1")
		w.Options.LibraryPath = "/opt/x"
		w.Overlay, w.ReadOnly = true, readOnly
		w.Look = []string{"/opt/x/libcuda.so.1", cudaReal}
		if got := w.hook(); got.Error != "" || got.Seen[w.Look[0]] != covered || got.Seen[cudaReal] != "image cuda" {
			t.Errorf("read-only %v: %+v", readOnly, got)
		}
		if names, err := os.ReadDir(w.path("upper")); err != nil || len(names) != 0 {
			t.Errorf("the hook left %v in the image (%v)", names, err)
		}
	}
}

// A routed libcuda gets the compiler of its own version.
func TestRouteTakesCompanions(t *testing.T) {
	w := newWorld(t)
	w.library("rootfs/usr/local/cuda/compat/"+newer, "image cuda")
	w.library("rootfs/usr/local/cuda/compat/libnvidia-ptxjitcompiler.so.1000.1", "image jit")
	w.link("libnvidia-ptxjitcompiler.so.1000.1", "rootfs/usr/local/cuda/compat/libnvidia-ptxjitcompiler.so.1")
	w.Look = []string{libDir + "/libnvidia-ptxjitcompiler.so.1", cudaReal}
	got := w.hook()
	if got.Error != "" || got.Seen[w.Look[0]] != "image jit" || got.Seen[cudaReal] != "image cuda" {
		t.Errorf("%+v", got)
	}
}

// Stubs are for linking; they are neither covered nor taken for a driver.
func TestStubsStay(t *testing.T) {
	w := newWorld(t)
	w.library("rootfs/usr/local/cuda/lib64/stubs/libcuda.so", "stub")
	w.link("stubs/libcuda.so", "rootfs/usr/local/cuda/lib64/libcuda.so")
	w.Options.LibraryPath = "/usr/local/cuda/lib64/stubs"
	w.Look = []string{"/usr/local/cuda/lib64/stubs/libcuda.so", "/usr/local/cuda/lib64/libcuda.so"}
	if got := w.hook(); got.Error != "" || got.Seen[w.Look[0]] != "stub" || got.Seen[w.Look[1]] != "stub" {
		t.Errorf("%+v", got)
	}
	w.link("libcuda.so", "rootfs/usr/local/cuda/lib64/stubs/libcuda.so.1")
	if got := w.hook(); !strings.Contains(got.Error, "is a stub") {
		t.Errorf("a stub that the loader would choose: %+v", got)
	}
}

// Images that cannot use our library are refused, each with its reason.
func TestUnusableImages(t *testing.T) {
	for name, c := range map[string]struct {
		make func(w *world)
		want string
	}{
		"musl": {func(w *world) {
			w.remove("rootfs/lib64")
			w.library("rootfs/lib/ld-musl-x86_64.so.1", "musl")
		}, "musl's loader (/lib/ld-musl-x86_64.so.1)"},
		"musl under glibc's name": {func(w *world) {
			w.remove("rootfs/lib64")
			w.library("rootfs/lib/ld-musl-x86_64.so.1", "musl")
			w.link("/lib/ld-musl-x86_64.so.1", "rootfs/lib64/ld-linux-x86-64.so.2")
		}, "musl's loader"},
		"static": {func(w *world) { w.remove("rootfs/lib64") }, "no dynamic loader"},
		"empty":  {func(w *world) { w.remove("rootfs/lib64"); w.remove("rootfs/usr/bin") }, "no dynamic loader"},
		"arm64": {func(w *world) {
			w.remove("rootfs/lib64")
			w.library("rootfs/lib/ld-linux-aarch64.so.1", "arm")
		}, "/lib/ld-linux-aarch64.so.1, but no glibc loader for amd64"},
		"no libc": {func(w *world) { w.remove("rootfs" + libDir + "/libc.so.6") }, "no libc.so.6"},
		"driver in a directory that no loader knows": {func(w *world) {
			w.NoDriver = true
			w.remove("rootfs" + libDir + "/libcuda.so.1")
			w.library("rootfs/opt/driver/libcuda.so.1", "x")
		}, "would not find libcuda.so.1"},
		"cache of another architecture only": {func(w *world) {
			w.NoDriver = true
			w.remove("rootfs" + libDir + "/libcuda.so.1")
			w.library("rootfs/opt/driver/libcuda.so.1", "x")
			w.write("rootfs/etc/ld.so.cache", string(cacheOf(3, [2]string{"libcuda.so.1", "/opt/driver/libcuda.so.1"})))
		}, "would not find libcuda.so.1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.make(w)
			if got := w.hook(); !strings.Contains(got.Error, c.want) || !strings.Contains(got.Error, "[GS-") {
				t.Errorf("hook says %q, want %q", got.Error, c.want)
			}
		})
	}
}

// program is an ELF file with one dynamic entry.
func program(tag uint64, text string) []byte {
	le := binary.LittleEndian
	data := make([]byte, 512)
	copy(data, "\x7fELF\x02\x01\x01")
	le.PutUint16(data[18:], machine)
	le.PutUint64(data[32:], elfHeaderSize)
	le.PutUint16(data[54:], elfProgramSize)
	le.PutUint16(data[56:], 2)
	segment := func(i int, kind uint32, offset, address, size uint64) {
		p := data[elfHeaderSize+i*elfProgramSize:]
		le.PutUint32(p, kind)
		le.PutUint64(p[8:], offset)
		le.PutUint64(p[16:], address)
		le.PutUint64(p[32:], size)
	}
	segment(0, ptLoad, 0, 0x1000, 512)
	segment(1, ptDynamic, 256, 0x1100, 48)
	le.PutUint64(data[256:], dtStrtab)
	le.PutUint64(data[264:], 0x1180)
	le.PutUint64(data[272:], tag)
	le.PutUint64(data[280:], 1)
	copy(data[384+1:], text)
	return data
}

func TestSystemDirs(t *testing.T) {
	data, err := os.ReadFile("/lib64/ld-linux-x86-64.so.2")
	if err != nil {
		t.Skipf("needs this machine's glibc loader: %v", err)
	}
	if got := systemDirs(data); !slices.Contains(got, "/usr/lib/x86_64-linux-gnu") && !slices.Contains(got, "/usr/lib64") {
		t.Errorf("this machine's loader looks in %q", got)
	}
	red := []byte("\x00\x07\x00/lib64/\x00/usr/lib64/\x00\x00\x00")
	if got := systemDirs(red); !slices.Equal(got, []string{"/lib64", "/usr/lib64"}) {
		t.Errorf("a loader as Red Hat builds it: %q", got)
	}
}

// The parser agrees with what ldconfig wrote on this machine.
func TestCacheOfThisMachine(t *testing.T) {
	data, err := os.ReadFile(cachePath)
	if err != nil {
		t.Skipf("needs an ld.so.cache: %v", err)
	}
	found := readCache(data, func(name string) bool { return name == "libc.so.6" })
	if !slices.ContainsFunc(found, func(e cacheEntry) bool {
		_, err := os.Stat(e.path)
		return e.plain && err == nil
	}) {
		t.Errorf("libc.so.6 is not in the cache: %+v", found)
	}
}

func FuzzReadCache(f *testing.F) {
	f.Add(cacheOf(cacheFlags, [2]string{"libcuda.so.1", "/x"}))
	f.Add([]byte(cacheOld + "\x00\xff\xff\xff\xff" + cacheNew))
	f.Fuzz(func(t *testing.T, data []byte) {
		if n := len(readCache(data, func(string) bool { return true })); n > maxFiles {
			t.Errorf("%d entries", n)
		}
	})
}

func FuzzReadImage(f *testing.F) {
	f.Add(program(dtRpath, "/x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		img, err := readImage(strings.NewReader(string(data)))
		if err == nil && len(img.interpreter)+len(img.rpath)+len(img.runpath) > 3*maxText {
			t.Errorf("%d bytes of text", len(img.interpreter)+len(img.rpath)+len(img.runpath))
		}
		systemDirs(data)
	})
}
