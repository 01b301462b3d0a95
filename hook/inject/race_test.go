// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"flag"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var raceFor = flag.Duration("race-for", 10*time.Second, "how long the renamer works against the hook")

// Somebody who shares a volume with the container exchanges files and
// directories for links to the host while the hook looks at them. Whatever the
// hook then says, it must not read, change or mount anything outside.
func TestRacingRenamer(t *testing.T) {
	w := newWorld(t)
	w.mkdir("rootfs/opt/a/b/c")
	w.library("rootfs/opt/x/libcuda.so.1", "image cuda")
	w.library("rootfs/opt/x/"+newer, "image cuda")
	w.library("rootfs/opt/a/libcuda.so.1", "image cuda")
	w.library("rootfs/usr/local/cuda/compat/"+newer, "image cuda")
	swaps := [][2]string{
		{"rootfs/opt/x", "rootfs/opt/x.out"},
		{"rootfs/opt/x/libcuda.so.1", "rootfs/opt/x/out"},
		{"rootfs/opt/a/b", "rootfs/opt/d"},
		{"rootfs/usr/local/cuda", "rootfs/usr/local/out"},
		{"rootfs/etc/ld.so.cache", "rootfs/etc/out"},
	}
	w.link(w.path("outside"), "rootfs/opt/x.out")
	w.link("../../../../../../../../../.."+w.path("outside/libcuda.so.1"), "rootfs/opt/x/out")
	w.mkdir("rootfs/opt/d")
	w.link("../../../../../../../.."+w.path("outside"), "rootfs/usr/local/out")
	w.cache([2]string{"libcuda.so.1", "/opt/x/libcuda.so.1"})
	w.link(w.path("outside/ld.so.cache"), "rootfs/etc/out")
	w.Options.LibraryPath = "/opt/x:/opt/a/b/c/../..:/opt/a/b/c/../../../../../.." + w.path("outside")

	var stop atomic.Bool
	var renames atomic.Int64
	var done sync.WaitGroup
	done.Add(1)
	go func() {
		defer done.Done()
		for i := 0; !stop.Load(); i++ {
			s := swaps[i%len(swaps)]
			if unix.Renameat2(unix.AT_FDCWD, w.path(s[0]), unix.AT_FDCWD, w.path(s[1]), unix.RENAME_EXCHANGE) == nil {
				renames.Add(1)
			}
		}
	}()
	runs, good, bad := 0, 0, map[string]int{}
	for end := time.Now().Add(*raceFor); time.Now().Before(end) && !t.Failed(); {
		// Once routed, another file is the real one, and later turns say so.
		w.Options.Compat, w.Times = Host, 20
		if runs%3 == 0 {
			w.Options.Compat, w.Times = Route, 1
		}
		runs += w.Times
		if got := w.hook(); got.Error == "" {
			good++
		} else {
			bad[got.Error]++
		}
	}
	stop.Store(true)
	done.Wait()
	t.Logf("%d renames, %d runs of the hook; of those looked at %d were content, refusals: %v", renames.Load(), runs, good, bad)
	if renames.Load() < 1000 || runs < 40 {
		t.Error("there was no race")
	}
}
