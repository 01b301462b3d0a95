// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/gpushare/gpushare/limiter/region"
)

// Another container's memory is charged here in full once its size shows, and there as
// long as anybody there holds it.
func TestSharesOfAnotherContainer(t *testing.T) {
	for _, way := range []string{"ipc", "descriptor", "external", "pool"} {
		t.Run(way, func(t *testing.T) {
			s := newSharing(t, 256*mib)
			other := s.node.container(256 * mib)
			e, i := s.sharerIn(other), s.sharer()
			sharingWays[way].share(e, i)
			want := uint64(contextBytes + 64*mib)
			both := func(when string, here, there uint64) {
				t.Helper()
				waitFor(t, fmt.Sprintf("%s: %d MiB here and %d there", when, here/mib, there/mib), func() bool {
					return s.sweep() == here && sweepLedger(t, other)[0] == there
				})
			}
			both("shared", want, want)
			e.kill()
			both("the exporter is dead", want, 0)
			if used := s.gpu().Used; used != want {
				t.Errorf("the simulator has %d bytes, want %d", used, want)
			}
			for _, c := range sharingWays[way].letGoI {
				i.ok("%s", c)
			}
			both("let go", contextBytes, 0)

			// What does not fit is not imported.
			e = s.sharerIn(other)
			i.ok("alloc 2 200")
			switch way {
			case "ipc":
				e.ok("alloc 1 64")
				if r := i.code("open 1 %s", e.ask("get 1")); r != outOfMemory {
					t.Errorf("open = %d", r)
				}
			case "external":
				handOver(e, i)
				if r := i.code("ext 1 1 64"); r != outOfMemory {
					t.Errorf("ext = %d", r)
				}
			case "descriptor":
				handOver(e, i)
				i.ok("import 1 1")
				if r := i.code("map 1 64"); r != outOfMemory {
					t.Errorf("map = %d", r)
				}
			}
			i.ok("free 2")
			i.kill()
			e.kill()
			both("all dead", 0, 0)
		})
	}
}

// A forked child holds what its parent held, as it holds the driver's memory; what the
// parent gives back is given back, child or not.
func TestSharesOfAForkedParent(t *testing.T) {
	s := newSharing(t, 256*mib)
	e, i := s.sharer(), s.sharer()
	e.ok("create 1 64")
	e.ok("export 1 1")
	e.give(1, i, 1)
	e.ok("close 1")
	e.ok("alloc 2 32")
	e.ask("get 2")
	child := e.code("fork")
	defer func() { _ = syscall.Kill(child, syscall.SIGKILL) }()
	i.ok("import 1 1")
	i.ok("close 1")
	s.conserved("with a child", 2, 96)
	e.ok("free 2")
	s.conserved("the parent has freed", 2, 64)
	e.ok("release 1")
	i.ok("release 1")
	s.conserved("all have released", 2, 0)
	e.ok("alloc 2 32")
	e.ask("get 2")
	e.kill()
	s.conserved("the parent is dead, its child has its memory", 2, 32)
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.conserved("the child is dead", 1, 0)
}

// Where /proc tells nothing of locks, importers are charged in full and descriptors are
// seen closed by the daemon alone: too much, never too little.
func TestSharesWithoutProc(t *testing.T) {
	for name, hide := range map[string]string{
		"no proc":     "mount -t tmpfs none /proc; exec \"$@\"",
		"no locks":    "mount --bind /dev/null /proc/locks; exec \"$@\"",
		"proc ro":     "mount -o remount,bind,ro /proc; exec \"$@\"",
		"uid 65534":   "exec setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all \"$@\"",
		"pid and mnt": "exec unshare -pf --kill-child --mount-proc \"$@\"",
	} {
		t.Run(name, func(t *testing.T) {
			s := newSharing(t, 256*mib)
			if err := os.Chmod(s.node.dir, 0o777); err != nil { //nolint:gosec // for another user
				t.Fatal(err)
			}
			openUp(t, s.node.dir, s.program)
			prefix := []string{"sh", "-euc", hide, "sh"}
			e, i := s.sharerIn(s.container, prefix...), s.sharerIn(s.container, prefix...)
			handOver(e, i)
			i.ok("import 1 1")
			i.ok("map 1 64")
			want := uint64(2*contextBytes + 64*mib)
			if name == "no proc" {
				want += 64 * mib
			}
			if got := s.sweep(); got != want {
				t.Errorf("shared: the ledger has %d MiB, want %d", got/mib, want/mib)
			}
			e.ok("release 1")
			i.ok("unmap 1")
			i.ok("release 1")
			s.conserved("a descriptor is left", 2, 64)
			i.ok("close 1")
			s.conserved("closed", 2, 0) // the daemon's sweep
			e.ok("alloc 1 64")
			i.ok("open 1 %s", e.ask("get 1"))
			e.kill()
			s.conserved("no descriptor needed", 1, 64)
			i.ok("shut 1")
			s.conserved("nothing is left", 1, 0)
		})
	}
}

// openUp lets any user reach the parts of a test.
func openUp(t *testing.T, paths ...string) {
	t.Helper()
	for _, p := range paths {
		for ; p != "/" && p != os.TempDir(); p = filepath.Dir(p) {
			info, err := os.Stat(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(p, info.Mode().Perm()|0o755); err != nil { //nolint:gosec // for another user
				t.Fatal(err)
			}
		}
	}
}

// With every record taken, what is exported goes into one that is there already, and
// stays charged until all of that one has gone.
func TestShareTableFull(t *testing.T) {
	s := newSharing(t, 7*1024*mib)
	e, i := s.sharer(), s.sharer()
	for k := range region.ShareCount {
		e.ok("create %d 2", k+1)
		e.ok("export %d %d", k+1, 1)
		e.ok("close 1")
	}
	s.conserved("every record is taken", 2, 2*region.ShareCount)
	e.ok("create 2000 64")
	e.ok("export 2000 1")
	e.give(1, i, 1)
	i.ok("import 1 1")
	i.ok("map 1 64")
	beside := uint64(2*contextBytes + 2*region.ShareCount*mib)
	if got := s.sweep(); got != beside+64*mib {
		t.Errorf("one more: the ledger has %d MiB beside the records, want 64", (got-beside)/mib)
	}
	e.ok("release 2000")
	e.ok("release 1")
	e.kill()
	var got uint64
	for begin := time.Now(); got != contextBytes+66*mib && time.Since(begin) < 2*time.Second; time.Sleep(5 * time.Millisecond) {
		got = s.sweep() // the first record's own 2 MiB are beside them
	}
	if used := s.gpu().Used; got != contextBytes+66*mib || used != contextBytes+64*mib {
		t.Errorf("the maker is dead: the ledger has %d MiB, the simulator %d", got/mib, used/mib)
	}
	i.ok("unmap 1")
	i.ok("release 1")
	i.ok("close 1")
	s.conserved("nothing is left", 1, 0)
}

// Whatever stands in the records, no process of the container crashes, hangs or gets
// past the limit by it; what it loses is its own container's.
func TestHostileShares(t *testing.T) {
	s := newSharing(t, 256*mib)
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // reproducible
	f, err := os.OpenFile(filepath.Join(s.container.dir, "ledger"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	header := func(off uintptr, v uint32) {
		b := make([]byte, 4)
		binary.NativeEndian.PutUint32(b, v)
		_, _ = f.WriteAt(b, int64(off))
	}
	for round := range 20 {
		b := make([]byte, region.ShareCount*region.ShareSize+region.HolderCount*8)
		if _, err := f.WriteAt(b, region.ShareOffset(1, 0)); err != nil { // a ledger as before
			t.Fatal(err)
		}
		e, i := s.sharer(), s.sharer()
		handOver(e, i)
		for k := range b {
			switch round % 4 {
			case 0:
				b[k] = byte(random.Uint32())
			case 1:
				b[k] = 0xff
			case 2:
				b[k] = byte(random.IntN(3))
			}
		}
		if _, err := f.WriteAt(b, region.ShareOffset(1, 0)); err != nil {
			t.Fatal(err)
		}
		header(unsafe.Offsetof(region.LedgerHeader{}.ShareHigh), random.Uint32())
		header(unsafe.Offsetof(region.LedgerHeader{}.HolderHigh), random.Uint32())
		e.code("create 2 2")
		e.code("export 2 2")
		i.code("import 1 1")
		i.code("map 1 64")
		i.code("alloc 2 300")
		i.code("release 1")
		e.code("release 1")
		e.code("alloc 3 2")
		if h := e.ask("get 3"); len(h) > 10 {
			i.code("open 3 %s", h)
			i.code("shut 3")
		}
		e.code("race %d 200", round)
		s.sweep()
		e.quit()
		i.quit()
	}
	if high := s.gpu().High; high > 256*mib {
		t.Logf("SIMULATED: a tenant that damages its own ledger has held %d bytes over its limit", high-256*mib)
	}
}

// A card takes memory in blocks: IPC shares the whole block that a small allocation lies
// in. Multicast objects hold what is bound to them.
func TestSharesOnACard(t *testing.T) {
	s := newSharing(t, 512*mib, "--profile", "h100")
	e, i := s.sharer(), s.sharer()
	s.conserved("contexts", 2, 0)
	for k := range 4 {
		e.ok("alloc %d 1", k+1) // two in a block
	}
	s.conserved("parts of two blocks", 2, 4)
	i.ok("open 1 %s", e.ask("get 1"))
	i.ok("open 2 %s", e.ask("get 2"))
	i.ok("open 3 %s", e.ask("get 3"))
	s.conserved("opened", 2, 4)
	for k := range 4 {
		e.ok("free %d", k+1)
	}
	s.conserved("freed where they were made", 2, 4)
	i.ok("shut 1")
	s.conserved("the other part is open", 2, 4)
	i.ok("shut 2")
	s.conserved("one block is open", 2, 2)
	e.kill()
	s.conserved("its maker is dead", 1, 2)
	i.ok("shut 3")
	s.conserved("closed", 1, 0)

	e = s.sharer()
	e.ok("multi 5 4")
	e.ok("create 1 4")
	e.ok("bind 5 1 4")
	e.ok("release 1")
	s.conserved("bound", 2, 4)
	e.ok("unbind 5 0 4")
	s.conserved("unbound", 2, 0)
	e.ok("create 1 4")
	e.ok("bind 5 1 4")
	e.ok("release 1")
	e.ok("export 5 1") // the object travels, and is no memory
	e.give(1, i, 1)
	e.ok("close 1")
	i.ok("import 1 5")
	i.ok("close 1")
	i.ok("map 5 4")
	s.conserved("an object in two processes", 2, 4)
	e.ok("release 5")
	s.conserved("its maker has let go", 2, 0)
	i.ok("unmap 5")
	i.ok("release 5")
	s.conserved("nothing is left", 2, 0)
}

// A pool's block is shared whole, however small the allocation: who has imported one is
// charged for all of it once its maker has freed it.
func TestPoolsBlockIsSharedWhole(t *testing.T) {
	s := newSharing(t, 512*mib, "--profile", "h100")
	e, i := s.sharer(), s.sharer()
	e.ok("pool 1")
	e.ok("pexport 1 1")
	e.give(1, i, 1)
	i.ok("pimport 1 1")
	e.ok("palloc 1 1 3")
	i.ok("popen 1 1 %s", e.ask("pget 1"))
	enough := func(when string) {
		t.Helper()
		waitFor(t, when+": not less than the simulator has", func() bool { return s.sweep() >= s.gpu().Used })
	}
	enough("imported")
	e.ok("afree 1")
	enough("freed where it was made")
	e.kill()
	enough("its maker is dead")
	s.conserved("in one block", 1, 32)
	i.ok("free 1")
	s.conserved("freed", 1, 0)
}
