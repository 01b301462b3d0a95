// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/limiter/region"
)

// orphan makes memory that only a descriptor holds, in the process holder: the one that
// made it is dead.
func (s *sharing) orphan(holder *sharer, f int) {
	e := s.sharer()
	e.ok("create 1 64")
	e.ok("export 1 1")
	e.give(1, holder, f)
	e.kill()
}

// More is exported than there are records: what nobody but a descriptor holds is charged
// all the same, and given back with it.
func TestMoreSharesThanRecords(t *testing.T) {
	s := newSharing(t, 2048*mib)
	full, holder := s.sharer(), s.sharer()
	for i := range region.ShareCount {
		full.ok("alloc %d 1", i)
		full.ask("get %d", i)
	}
	s.conserved("full", 2, region.ShareCount)
	for i := range 3 {
		s.orphan(holder, i)
		s.conserved(fmt.Sprintf("orphan %d", i), 2, region.ShareCount+uint64(i+1)*64)
	}
	// The one in the full table's process.
	full.ok("create 1 64")
	full.ok("export 1 1")
	full.give(1, holder, 3)
	full.kill()
	for i := range 3 {
		holder.ok("close %d", i)
	}
	if ledger, used := s.sweep(), s.gpu().Used; ledger < used {
		t.Errorf("the ledger has %d bytes, the simulator %d", ledger, used)
	}
	holder.quit()
	s.conserved("at the end", 0, 0)
}

// A process with no descriptor left for the ledger: it exports what is recorded, or nothing.
func TestExportWithoutDescriptors(t *testing.T) {
	s := newSharing(t, 512*mib)
	holder, refused := s.sharer(), 0
	for more := range 6 {
		e := s.sharer()
		e.ok("create 1 64")
		pid := e.cmd.Process.Pid
		lowest := uint64(0)
		for {
			if _, err := os.Lstat(fmt.Sprintf("/proc/%d/fd/%d", pid, lowest)); err != nil {
				break
			}
			lowest++
		}
		var old unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: lowest + uint64(more), Max: 1 << 12}, &old); err != nil {
			t.Fatal(err)
		}
		r := e.code("export 1 1")
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 10, Max: 1 << 12}, nil); err != nil {
			t.Fatal(err)
		}
		held := uint64(0)
		if r == 0 {
			e.give(1, holder, 1)
			held = 64
		} else {
			refused++
		}
		e.kill()
		s.conserved(fmt.Sprintf("%d descriptors", more), 1, held)
		if r == 0 {
			holder.ok("close 1")
		}
		s.conserved("closed", 1, 0)
	}
	if refused == 0 {
		t.Error("no export was refused: nothing was tried")
	}
}
