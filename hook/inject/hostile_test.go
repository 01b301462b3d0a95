// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	fine    = ""
	covered = "our cuda"
)

// hostile are root file systems and settings, with what the hook must say: fine,
// or a part of its reason. seen maps paths to what the container must see there.
var hostile = []struct {
	name string
	make func(w *world)
	want string
	seen map[string]string
}{
	{"nothing special", func(*world) {}, fine, map[string]string{libDir + "/libcuda.so.1": covered, cudaReal: "host cuda"}},
	{"absolute link to a host directory", func(w *world) {
		w.link(w.path("outside"), "rootfs/opt/x")
		w.Options.LibraryPath = "/opt/x"
	}, fine, nil},
	{"relative link out of the root", func(w *world) {
		w.link("../../../../../../../../.."+w.path("outside"), "rootfs/opt/x")
		w.Options.LibraryPath = "/opt/x"
	}, fine, nil},
	{"dots out of the root", func(w *world) {
		w.Options.LibraryPath = "/../../../../.." + w.path("outside")
	}, fine, nil},
	{"dots behind a link", func(w *world) {
		w.link("/a/b/c", "rootfs/opt/x")
		w.mkdir("rootfs/a/b/c")
		w.library("rootfs/a/b/lib/libcuda.so.1", "behind")
		w.Options.LibraryPath = "/opt/x/../lib"
	}, fine, map[string]string{"/a/b/lib/libcuda.so.1": covered, cudaReal: "behind"}},
	{"library links to a host file", func(w *world) {
		w.link(w.path("outside/libcuda.so.1"), "rootfs/opt/x/libcuda.so.1")
		w.Options.LibraryPath = "/opt/x"
	}, fine, nil},
	{"library links up and out", func(w *world) {
		w.link("../../../../../../../../../.."+w.path("outside/libcuda.so.1"), "rootfs/opt/x/libcuda.so.1")
		w.Options.LibraryPath = "/opt/x"
	}, fine, nil},
	{"same path inside the root as the link's on the host", func(w *world) {
		w.library("rootfs"+w.path("outside/libcuda.so.1"), "inside")
		w.link(w.path("outside/libcuda.so.1"), "rootfs/opt/x/libcuda.so.1")
		w.Options.LibraryPath = "/opt/x"
	}, fine, map[string]string{"/opt/x/libcuda.so.1": covered, cudaReal: "inside"}},
	{"link in a circle", func(w *world) {
		w.link("libcuda.so.1", "rootfs/opt/x/libcuda.so.1")
		w.Options.LibraryPath = "/opt/x"
	}, "in a circle", nil},
	{"directories in a circle", func(w *world) {
		w.link("/opt/y", "rootfs/opt/x")
		w.link("/opt/x", "rootfs/opt/y")
		w.Options.LibraryPath = "/opt/x"
	}, "cannot be followed", nil},
	{"circle in a compat directory", func(w *world) {
		w.link("libcuda.so.1", "rootfs/usr/local/cuda/compat/libcuda.so.1")
		w.link("/usr/local/cuda-2", "rootfs/usr/local/cuda-1")
		w.link("/usr/local/cuda-1", "rootfs/usr/local/cuda-2")
	}, fine, nil},
	{"dangling link", func(w *world) {
		w.link("/nowhere/libcuda.so.1", "rootfs/opt/x/libcuda.so.1")
		w.Options.LibraryPath = "/opt/x:/nowhere"
	}, fine, nil},
	{"through /proc", func(w *world) {
		w.procfs()
		w.link("/proc/self/root"+w.path("outside"), "rootfs/opt/x")
		w.Options.LibraryPath = "/opt/x"
	}, "cannot be followed", nil},
	{"library through /proc", func(w *world) {
		w.procfs()
		w.link("/proc/self/root"+w.path("outside/libcuda.so.1"), "rootfs/opt/x/libcuda.so.1")
		w.Options.LibraryPath = "/opt/x"
	}, "in a circle or through /proc", nil},
	{"pipe", func(w *world) {
		w.node("rootfs/opt/x/libcuda.so.1", unix.S_IFIFO, 0)
		w.Options.LibraryPath = "/opt/x"
	}, "no regular file", nil},
	{"pipe under a name that no loader takes", func(w *world) {
		w.node("rootfs/opt/x/libcuda.so.550.1", unix.S_IFIFO, 0)
		w.Options.LibraryPath = "/opt/x"
	}, fine, nil},
	{"device", func(w *world) {
		w.node("rootfs/opt/x/libcuda.so.1", unix.S_IFCHR, unix.Mkdev(1, 5))
		w.Options.LibraryPath = "/opt/x"
	}, "no regular file", nil},
	{"socket", func(w *world) {
		w.mkdir("rootfs/opt/x")
		l, err := net.Listen("unix", w.path("rootfs/opt/x/libcuda.so.1"))
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { l.Close() })
		w.Options.LibraryPath = "/opt/x"
	}, "no regular file", nil},
	{"directory", func(w *world) {
		w.mkdir("rootfs/opt/x/libcuda.so.1")
		w.Options.LibraryPath = "/opt/x"
	}, "no regular file", nil},
	{"directory of many names", func(w *world) {
		w.mkdir("rootfs/opt/x")
		for i := range maxEntries + 1 {
			if err := os.Link(w.path("rootfs/usr/bin/sh"), w.path(fmt.Sprintf("rootfs/opt/x/%d", i))); err != nil {
				// A file system may allow fewer links of one file.
				w.write(fmt.Sprintf("rootfs/opt/x/%d", i), "")
			}
		}
		w.Options.LibraryPath = "/opt/x"
	}, "more than", nil},
	{"many copies", func(w *world) {
		for i := range maxFiles + 1 {
			w.write(fmt.Sprintf("rootfs/opt/x/libcuda.so.%d", i+1000), "x")
		}
		w.Options.LibraryPath = "/opt/x"
	}, "more than", nil},
	{"many directories", func(w *world) { w.Options.LibraryPath = strings.Repeat("/a:", 5000) }, "more than", nil},
	{"long path", func(w *world) { w.Options.LibraryPath = "/" + strings.Repeat("a/", 4000) }, fine, nil},
	{"deep tree", func(w *world) {
		w.mkdir("rootfs" + strings.Repeat("/d", 1000))
		w.library("rootfs"+strings.Repeat("/d", 1000)+"/libcuda.so.1", "deep")
		w.Options.LibraryPath = strings.Repeat("/d", 1000)
	}, fine, map[string]string{strings.Repeat("/d", 1000) + "/libcuda.so.1": covered}},
	{"special directories within each other", func(w *world) {
		w.library("rootfs/opt/x/"+strings.Repeat("tls/", 3)+"libcuda.so.1", "special")
		w.mkdir("rootfs/opt/x/" + strings.Repeat("tls/", 200))
		w.Options.LibraryPath = "/opt/x"
	}, fine, map[string]string{"/opt/x/tls/tls/tls/libcuda.so.1": covered}},
	{"special directory links to itself", func(w *world) {
		w.link(".", "rootfs/opt/x/tls")
		w.link("..", "rootfs/opt/x/glibc-hwcaps")
		w.Options.LibraryPath = "/opt/x"
	}, fine, nil},
	{"names with newlines and escapes", func(w *world) {
		w.library("rootfs/opt/x\n\x1b[2J/libcuda.so.1\n", "odd")
		w.Options.LibraryPath = "/opt/x\n\x1b[2J"
	}, fine, nil},
	{"sparse cache of 1 GiB", func(w *world) {
		w.cache()
		if err := os.Truncate(w.path("rootfs/etc/ld.so.cache"), 1<<30); err != nil {
			w.t.Fatal(err)
		}
	}, "larger than is ever needed", nil},
	{"cache links out of the root", func(w *world) {
		w.link(w.path("outside/ld.so.cache"), "rootfs/etc/ld.so.cache")
	}, fine, nil},
	{"ld.so.preload is a pipe", func(w *world) { w.node("rootfs/etc/ld.so.preload", unix.S_IFIFO, 0) }, "not a regular file", nil},
	{"ld.so.preload is huge", func(w *world) {
		w.write("rootfs/etc/ld.so.preload", "")
		if err := os.Truncate(w.path("rootfs/etc/ld.so.preload"), 1<<40); err != nil {
			w.t.Fatal(err)
		}
	}, "larger than is ever needed", nil},
	{"preloads the host's files", func(w *world) {
		w.write("rootfs/etc/ld.so.preload", w.path("outside/libcuda.so.1")+" /../../../../../../.."+w.path("outside/libcuda.so.1"))
		w.Options.Preload = w.path("outside/libnvidia-ml.so.1") + ":/x.so"
	}, fine, nil},
	{"preloads through /proc", func(w *world) {
		w.procfs()
		w.write("rootfs/opt/mine.so", string(program(dtSoname, "libcuda.so.1")))
		w.Options.Preload = "/proc/self/root/opt/mine.so"
	}, "LD_PRELOAD names", nil},
	{"ld.so.preload through /proc", func(w *world) {
		w.procfs()
		w.write("rootfs/etc/ld.so.preload", "/proc/self/cwd/opt/mine.so\n")
	}, "ld.so.preload names", nil},
	{"preloads very many names", func(w *world) {
		w.Options.Preload, w.Options.LibraryPath = strings.Repeat("a.so ", 20000), strings.Repeat("/a:", 100)
	}, "more than", nil},
	{"preloads the real driver", func(w *world) {
		w.link(cudaReal, "rootfs/opt/libcuda.so.1")
		w.Options.Preload = "/opt/libcuda.so.1"
	}, "leads to the real driver", nil},
	{"cache is a pipe", func(w *world) { w.node("rootfs/etc/ld.so.cache", unix.S_IFIFO, 0) }, "no regular file", nil},
	{"cache is a device", func(w *world) { w.node("rootfs/etc/ld.so.cache", unix.S_IFCHR, unix.Mkdev(1, 5)) }, "no regular file", nil},
	{"cache is garbage", func(w *world) { w.write("rootfs/etc/ld.so.cache", cacheNew+strings.Repeat("\xff", 4096)) }, fine, nil},
	{"cache names host files", func(w *world) {
		w.cache([2]string{"libcuda.so.1", w.path("outside/libcuda.so.1")}, [2]string{"libcuda.so.1", "/../../.." + w.path("outside/libcuda.so.1")})
	}, fine, nil},
	{"cache names a directory with many dots", func(w *world) {
		w.library("rootfs/opt/libcuda.so.1", "dots")
		w.cache([2]string{"libcuda.so.1", "/" + strings.Repeat("../", 500) + "opt/libcuda.so.1"})
	}, fine, map[string]string{"/opt/libcuda.so.1": covered, cudaReal: "dots"}},
	{"usr/lib links out of the root", func(w *world) {
		w.NoDriver = true
		w.remove("rootfs/usr/lib")
		w.link("../../../../../../../.."+w.path("outside"), "rootfs/usr/lib")
	}, "would not find", nil},
	{"loader links out of the root", func(w *world) {
		w.remove("rootfs/lib64")
		w.link("/lib/../../../../../../../../lib64", "rootfs/lib64")
	}, "no dynamic loader", nil},
	{"loader is a pipe", func(w *world) {
		w.remove("rootfs/lib64/ld-linux-x86-64.so.2")
		w.node("rootfs/lib64/ld-linux-x86-64.so.2", unix.S_IFIFO, 0)
	}, "no dynamic loader", nil},
	{"loader is huge", func(w *world) {
		if err := os.Truncate(w.path("rootfs/lib64/ld-linux-x86-64.so.2"), 1<<33); err != nil {
			w.t.Fatal(err)
		}
	}, "no glibc loader", nil},
	{"loader is half a file", func(w *world) { w.write("rootfs/lib64/ld-linux-x86-64.so.2", "\x7fELF\x02\x01") }, "no glibc loader", nil},
	{"entry point is a weird ELF file", func(w *world) {
		data := make([]byte, 64+128*56)
		for i := range data {
			data[i] = 0xff
		}
		copy(data, "\x7fELF\x02\x01\x01")
		copy(data[18:], "\x3e\x00")
		copy(data[32:], "\x40\x00\x00\x00\x00\x00\x00\x00")
		copy(data[54:], "\x38\x00\x80\x00")
		for i := range 128 {
			copy(data[64+i*56:], []byte{byte(1 + i%3), 0, 0, 0})
		}
		w.write("rootfs/usr/bin/sh", string(data))
	}, fine, nil},
	{"entry point is a device", func(w *world) {
		w.remove("rootfs/usr/bin/sh")
		w.node("rootfs/usr/bin/sh", unix.S_IFCHR, unix.Mkdev(1, 5))
	}, fine, nil},
	{"entry point interprets itself", func(w *world) { w.write("rootfs/usr/bin/sh", "#!/usr/bin/sh\n") }, fine, nil},
	{"entry point on the host", func(w *world) { w.Options.Arg0 = "/../../../../../../../../.." + w.path("outside/libcuda.so.1") }, fine, nil},
	{"working directory on the host", func(w *world) {
		w.Options.WorkDir = "/../../../../../../.." + w.path("outside")
		w.Options.LibraryPath = ":lib/deep"
	}, fine, nil},
	{"copy leads to the real driver", func(w *world) {
		w.link(cudaReal, "rootfs/opt/x/libcuda.so.1")
		w.Options.LibraryPath = "/opt/x"
	}, "leads to the real driver", nil},
	{"search path is gpushare's own directory", func(w *world) {
		w.write("c/libcuda.so.1", "x")
		w.Options.LibraryPath = ContainerDir
	}, "leads to the real driver", nil},
	{"copy is our other library", func(w *world) {
		w.link(libDir+"/libnvidia-ml.so.1", "rootfs/opt/x/libcuda.so.1")
		w.Options.LibraryPath = "/opt/x"
	}, "is still not our library", nil},
	{"copy on a mount that is shared", func(w *world) {
		w.library("rootfs/vol/libcuda.so.1", "volume")
		w.Options.LibraryPath = "/vol"
		w.Shared = "/vol"
	}, "shared with the host", nil},
	{"/usr/local links out of the root", func(w *world) {
		w.library("outside/cuda/compat/libcuda.so.2000.1", "outside compat")
		w.link("../../../../../../../../.."+w.path("outside"), "rootfs/usr/local")
	}, fine, map[string]string{cudaReal: "host cuda"}},
}

// procfs puts a procfs into the root, as every container has one.
func (w *world) procfs() {
	w.t.Helper()
	if err := unix.Mount("proc", w.path("rootfs/proc"), "proc", 0, ""); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := unix.Unmount(w.path("rootfs/proc"), unix.MNT_DETACH); err != nil {
			w.t.Error(err)
		}
	})
}

func TestHostileRoots(t *testing.T) {
	if len(hostile) < 31 {
		t.Errorf("only %d root file systems", len(hostile))
	}
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.make(w)
			for name := range c.seen {
				w.Look = append(w.Look, name)
			}
			got := w.hook()
			if (c.want == "") != (got.Error == "") || !strings.Contains(got.Error, c.want) {
				t.Errorf("hook says %q, want %q", got.Error, c.want)
			}
			if got.Error != "" && !strings.Contains(got.Error, "[GS-") {
				t.Errorf("%q has no code", got.Error)
			}
			for name, want := range c.seen {
				if got.Seen[name] != want {
					t.Errorf("the container sees %q at %s, want %q", got.Seen[name], name, want)
				}
			}
		})
	}
}

// The check of the tests above must itself be able to fail.
func TestOutsideNoticesReaders(t *testing.T) {
	w := newWorld(t)
	w.outside()
	before := w.outside()
	if _, err := os.ReadFile(w.path("outside/libcuda.so.1")); err != nil {
		t.Fatal(err)
	}
	if after := w.outside(); after == before {
		t.Skip("this file system keeps no access times: reads outside of the root would not be noticed")
	}
}

// Many directories, each below its bound, end at the bound of all.
func TestListedInAll(t *testing.T) {
	dir := t.TempDir()
	for i := range 10 {
		if err := os.WriteFile(fmt.Sprintf("%s/%d", dir, i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := openRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	lists := 0
	for ; lists < maxListed; lists++ {
		if _, err = r.list("/", nil, func(string) bool { return false }); err != nil {
			break
		}
	}
	if want := maxListed / (16 + 12); err == nil || lists != want {
		t.Errorf("%d lists of 12 entries, then %v; want %d", lists, err, want)
	}
}
