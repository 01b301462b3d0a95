// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/simgpu/host"
)

// TestCRASH01SharingWhileCallsFail: two processes share memory in every way while a
// function fails that the library calls for it.
func TestCRASH01SharingWhileCallsFail(t *testing.T) {
	long(t)
	s := newSharing(t, 1024*mib, "--driver", "newest", "--profile", "h100")
	admin := host.NewAdminClient(filepath.Join(s.node.dir, "admin.sock"))
	reports := s.container.reports()
	var never []string
	for _, call := range called(t, "cuda.def") {
		if !strings.HasPrefix(call, "cuMem") && !strings.HasPrefix(call, "cuMulticast") && !strings.HasPrefix(call, "cuIpc") &&
			!strings.Contains(call, "External") && !strings.HasPrefix(call, "cuPointer") {
			continue
		}
		hits := uint64(0)
		for _, p := range plans() {
			end := p.arm(t, admin, call)
			a, b := s.sharer(), s.sharer()
			share(a, b)
			hits += end()
			if ledger, used := s.sweep(), s.gpu().Used; ledger < used {
				t.Errorf("%s %v: ledger %d, simulator %d", call, p, ledger, used)
			}
			a.quit()
			b.quit()
			s.conserved(call+" "+p.String(), 0, 0)
		}
		if hits == 0 {
			never = append(never, call)
		}
	}
	reports()
	t.Logf("SIMULATED: never called: %v", never)
}

// share does what can be done with shared memory; what fails, fails.
func share(a, b *sharer) {
	try := func(s *sharer, commands ...string) {
		for _, c := range commands {
			s.ask("%s", c)
		}
	}
	try(a, "create 1 4", "create 2 4", "export 1 1", "map 1 4", "retain 3 1", "pool 1", "palloc 1 1 3", "alloc 2 3", "multi 5 4", "bind 5 2 4")
	a.ask("send 1 %s", b.path)
	try(b, "recv 1", "import 1 1", "map 1 4", "ext 1 1 4", "buffer 1 4")
	a.ask("pexport 1 2")
	a.ask("send 2 %s", b.path)
	try(b, "recv 2", "pimport 2 2")
	if h := a.ask("pget 1"); len(h) >= 128 {
		b.ask("popen 2 5 %s", h)
	}
	if h := a.ask("get 2"); len(h) >= 128 {
		b.ask("open 6 %s", h)
	}
	try(a, "race 7 40")
	try(b, "afree 5", "shut 6", "destroy 1", "unmap 1", "release 1", "close 1")
	try(a, "unbind 5 4", "release 5", "release 3", "unmap 1", "release 1", "release 2", "afree 1", "free 2", "close 1")
}
