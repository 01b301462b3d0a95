// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/tests/node"
)

// upgrades is how often the library is replaced.
const upgrades = 10

// release makes a tree that install.sh can install, in which the libraries differ
// from those of any other number. They work as the built ones do.
func release(t *testing.T, n *node.Node, number int) string {
	t.Helper()
	tree := filepath.Join(n.Dir, fmt.Sprintf("tree-%d", number))
	if err := os.MkdirAll(filepath.Join(tree, "build/lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	same := []string{"packaging", "internal", "docs", "examples", "LICENSE", "build/bin"}
	papers, _ := filepath.Glob(filepath.Join(root, "*.md"))
	for _, p := range papers {
		same = append(same, filepath.Base(p))
	}
	for _, name := range same {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(tree, name)); err != nil {
			t.Fatal(err)
		}
	}
	built, err := os.ReadDir(filepath.Join(root, "build/lib"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range built {
		name := e.Name()
		data, err := os.ReadFile(filepath.Join(root, "build/lib", name))
		if err != nil {
			t.Fatal(err)
		}
		// The loader does not look at what follows the last section.
		if err := os.WriteFile(filepath.Join(tree, "build/lib", name), fmt.Appendf(data, "release %d\n", number), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// install installs a release over the node and returns the library's directory.
func install(t *testing.T, n *node.Node, number int) string {
	t.Helper()
	// Not through a link: the script goes up from where it lies.
	script := filepath.Join(release(t, n, number), "packaging/install/install.sh")
	r := node.Run(within(t), nil, "sh", "-c", `cd "$1" && exec sh packaging/install/install.sh "$2"`, "sh", filepath.Dir(filepath.Dir(filepath.Dir(script))), n.Dir)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(n.Dir, "lib/gpushare/current"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// inspected is what `gpushare inspect` says of a container.
func inspected(t *testing.T, n *node.Node, c container) v1.Container {
	t.Helper()
	r := n.CLI(within(t), "inspect", "-o", "json", c.id)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	var list []v1.Container
	if err := json.Unmarshal([]byte(r.Stdout), &list); err != nil || len(list) != 1 || list[0].Details == nil {
		t.Fatalf("%v in %s", err, r.Stdout)
	}
	return list[0]
}

// mapped is the inode of the libcuda.so.1 that a process has mapped.
func mapped(t *testing.T, pid int) uint64 {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		if len(f) < 6 || filepath.Base(f[5]) != "libcuda.so.1" {
			continue
		}
		info, err := os.Stat(fmt.Sprintf("/proc/%d/map_files/%s", pid, f[0]))
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Ino
	}
	t.Fatalf("process %d has no libcuda mapped", pid)
	return 0
}

func inode(t *testing.T, dir string) uint64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "libcuda.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// tenant is a container that holds memory for as long as it lives, and the library
// it began with.
type tenant struct {
	*burning
	library string
	inode   uint64
	pid     int
}

// begin starts a container and looks which library it got.
func begin(t *testing.T, f *fire, library string) tenant {
	t.Helper()
	k, err := f.start(2*gib, nil, "alloc", "--take", "1GiB", "--hold", "signal")
	if err != nil {
		t.Fatal(err)
	}
	soon(t, limit, "a container holds", func() bool { return strings.Contains(k.output(t), "holding") })
	pid := 0
	soon(t, limit, "the daemon has seen its start", func() bool {
		pid = inspected(t, f.n, k.container).PID
		return pid != 0
	})
	u := tenant{burning: k, library: library, inode: inode(t, library), pid: pid}
	u.check(t, f.n, true)
	return u
}

// check looks that a tenant still has the library that it began with, by the
// kernel's account and by ours.
func (u tenant) check(t *testing.T, n *node.Node, current bool) {
	t.Helper()
	if got := mapped(t, u.pid); got != u.inode || got != inode(t, u.library) {
		t.Errorf("%s: inode %d is mapped, it began with %d, %s has %d", u.id, got, u.inode, u.library, inode(t, u.library))
	}
	c := inspected(t, n, u.container)
	want := v1.Library{Directory: u.library, Current: current, Processes: 1}
	if l := c.Details.Libraries; len(l) != 1 || l[0] != want {
		t.Errorf("%s: inspect says %+v, want %+v", u.id, l, want)
	}
	if len(c.Details.Processes) != 1 || c.Details.Processes[0].Slot == nil || c.Details.Processes[0].MemoryBytes != gib+300*mib || c.State != v1.StateEnforced {
		t.Errorf("%s: %+v, %s %s", u.id, c.Details.Processes, c.State, c.Reason)
	}
}

// The libraries and the daemon are replaced ten times under tenants that allocate
// and launch: nobody crashes, who runs keeps what it has, who starts gets the new
// one, and old libraries work with new daemons.
func TestUpgradeUnderLoad(t *testing.T) {
	n := up(t, node.Options{NoEngine: true, KernelTimes: []string{"spin=200us"}})
	f := &fire{t: t, n: n, e: bare{n}}
	library := install(t, n, 0)
	f.restartQuietly()
	busy, err := f.start(2*gib, nil, "sh", "-c", busyScript)
	if err != nil {
		t.Fatal(err)
	}
	compute := f.e.background(t, share("1Gi")...)
	launches := compute.enter(t, "saturate", "--kernel", "spin")
	expect(t, launches, "running")
	tenants := []tenant{begin(t, f, library)}

	for i := 1; i <= upgrades; i++ {
		rounds, launched := strings.Count(busy.output(t), "round "), account(t, n, compute).GPUTimeNs
		next := install(t, n, i)
		if next == library {
			t.Fatalf("upgrade %d: still %s", i, library)
		}
		// The new library works with the old daemon too: it may be restarted later.
		fresh := begin(t, f, next)
		if i%2 == 0 {
			f.kill()
		} else if err := n.Daemon().Stop(limit); err != nil {
			t.Fatal(err)
		}
		f.restartQuietly()
		for _, u := range tenants {
			u.check(t, n, false)
		}
		fresh.check(t, n, true)
		tenants = append(tenants, fresh)
		// A program that starts in the oldest container has its library, and its
		// limit to the byte.
		r := tenants[0].exec(within(t), "alloc", "--fill")
		if want := fmt.Sprintf("filled %d bytes", 2*gib-gib-2*300*mib); !strings.Contains(r.Stdout, want) {
			t.Errorf("upgrade %d: %s %v, want %s", i, r.Stdout, r.Err, want)
		}
		soon(t, limit, "tenants go on", func() bool {
			return strings.Count(busy.output(t), "round ") > rounds && account(t, n, compute).GPUTimeNs > launched
		})
		library = next
		if t.Failed() {
			t.Fatalf("in upgrade %d", i)
		}
	}
	if i := strings.Index(busy.output(t), "BAD"); i >= 0 {
		t.Errorf("an error that was not due: %.300s", busy.output(t)[i:])
	}
	for _, u := range tenants {
		if got := high(t, n, u.container); got > u.limit {
			t.Errorf("%s: %d bytes, limit %d", u.id, got, u.limit)
		}
	}
	t.Logf("SIMULATED: %d upgrades under load", upgrades)
	prune(t, n, tenants)
	compute.remove()
	launches.End()
}

// prune ends some of the tenants: the next installation removes their libraries
// and no others.
func prune(t *testing.T, n *node.Node, tenants []tenant) {
	t.Helper()
	gone := map[string]bool{}
	for i, u := range tenants {
		if i%2 == 1 {
			u.remove()
			gone[u.library] = true
		}
	}
	install(t, n, upgrades+1)
	for _, u := range tenants {
		if _, err := os.Stat(u.library); err != nil {
			t.Errorf("%s was removed at once: a container may have been about to use it", u.library)
		}
	}
	old := time.Now().Add(-time.Hour)
	for _, u := range tenants {
		if err := os.Chtimes(u.library, old, old); err != nil {
			t.Fatal(err)
		}
	}
	install(t, n, upgrades+2)
	for _, u := range tenants {
		_, err := os.Stat(u.library)
		if gone[u.library] != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: unused %v, %v", u.library, gone[u.library], err)
		}
	}
}

// A page of another layout is read by nobody: programs are told that the driver is
// not ready, the daemon that it cannot change anything, and the share is kept.
func TestPageOfAnotherVersion(t *testing.T) {
	n := up(t, node.Options{NoEngine: true})
	c := bare{n}.background(t, share("2Gi")...)
	page, err := os.OpenFile(filepath.Join(n.RunDir(), "c", c.id, "limits"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	version := make([]byte, 4)
	if _, err := page.ReadAt(version, 4); err != nil {
		t.Fatal(err)
	}
	restart := func(v []byte) v1.Container {
		t.Helper()
		if err := n.Daemon().Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := page.WriteAt(v, 4); err != nil {
			t.Fatal(err)
		}
		if err := n.StartDaemon(within(t)); err != nil {
			t.Fatal(err)
		}
		return inspected(t, n, c)
	}
	if got := restart([]byte{version[0] + 1}); got.State != v1.StateDegraded || !strings.Contains(got.Reason, "of another version") || got.GPUs[0].MemoryLimitBytes != 2*gib {
		t.Errorf("%s %s, limit %d", got.State, got.Reason, got.GPUs[0].MemoryLimitBytes)
	}
	if r := c.exec(within(t), "alloc", "--take", "1MiB"); !strings.Contains(r.Stderr, "cuInit: CUDA_ERROR_SYSTEM_NOT_READY") {
		t.Errorf("a program over a page of another version: %s %s", r.Stdout, r.Stderr)
	}
	if r := n.CLI(within(t), "set", c.id, "--gpu-memory", "3Gi"); r.Code != 6 {
		t.Errorf("set: status %d, %s", r.Code, r.Stderr)
	}
	if got := restart(version); got.State != v1.StateEnforced {
		t.Errorf("after the way back: %s %s", got.State, got.Reason)
	}
	if r := c.exec(within(t), "alloc", "--fill"); !strings.Contains(r.Stdout, fmt.Sprintf("filled %d bytes", 2*gib-300*mib)) {
		t.Errorf("after the way back: %s %v", r.Stdout, r.Err)
	}
}
