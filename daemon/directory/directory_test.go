// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/daemon/proc"
	"github.com/gpushare/gpushare/limiter/region"
)

func needRoot(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounts a tmpfs: needs root")
	}
	parent := t.TempDir()
	t.Cleanup(func() {
		ids, _ := List(parent)
		for _, id := range ids {
			Remove(parent, id)
		}
	})
	return parent
}

var oneGPU = []region.GPULimit{{MemoryLimit: 1 << 30, CeilingMilli: 1000}}

func TestCreate(t *testing.T) {
	parent := needRoot(t)
	old := unix.Umask(0o077) // must not matter
	defer unix.Umask(old)
	id := strings.Repeat("f", 64)
	d, err := Create(parent, id, "", oneGPU)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	modes := map[string]fs.FileMode{
		".": fs.ModeDir | 0o755, "limits": 0o444, "ledger": 0o666, "control.sock": fs.ModeSocket | 0o666,
		"driver": fs.ModeDir | 0o755, "driver/cuda.real": 0o444, "driver/nvml.real": 0o444,
	}
	found := 0
	filepath.WalkDir(d.Path, func(path string, e fs.DirEntry, _ error) error {
		name, _ := filepath.Rel(d.Path, path)
		fi, err := e.Info()
		if want, ok := modes[name]; err != nil || !ok || fi.Mode() != want {
			t.Errorf("%s: mode %v, want %v (%v)", name, fi.Mode(), want, err)
		}
		found++
		return nil
	})
	if found != len(modes) {
		t.Errorf("%d entries, want %d", found, len(modes))
	}
	if d.Limits.GPU(0).MemoryLimit != 1<<30 {
		t.Error("the limits page does not hold the limit")
	}
	if u, err := d.Ledger.Read(); err != nil || u.Processes != 0 {
		t.Errorf("Read = %+v, %v", u, err)
	}
	if _, err := Create(parent, id, "", oneGPU); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create twice: %v, want ErrExist", err)
	}
	if mounted, _ := isMounted(d.Path); !mounted {
		t.Error("a second Create removed the first one's directory")
	}
}

// A tenant that writes all it can fills its own file system, and that is small.
func TestGrowthIsBounded(t *testing.T) {
	parent := needRoot(t)
	d, err := Create(parent, "a", "", oneGPU)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f, err := os.OpenFile(filepath.Join(d.Path, "ledger"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, 64<<10), region.LedgerSize(1)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("growing the ledger: %v, want ENOSPC", err)
	}
	if err := f.Truncate(10); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Ledger.Read(); !errors.Is(err, region.ErrLayout) {
		t.Errorf("Read of a short ledger: %v, want ErrLayout", err)
	}
}

func TestOpenAfterRestart(t *testing.T) {
	parent := needRoot(t)
	d, err := Create(parent, "a", "", oneGPU)
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: filepath.Join(d.Path, "control.sock"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
	d.Close()
	again, err := Open(parent, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	client, err = net.DialUnix("unixgram", nil, &net.UnixAddr{Name: filepath.Join(d.Path, "control.sock"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("ring")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 8)
	if n, err := again.Control.Read(b); err != nil || string(b[:n]) != "ring" {
		t.Errorf("read %q, %v", b[:n], err)
	}
	if again.Device != d.Device || again.Device == "" {
		t.Errorf("device %q, was %q", again.Device, d.Device)
	}
}

func TestRemove(t *testing.T) {
	parent := needRoot(t)
	d, err := Create(parent, "a", "", oneGPU)
	if err != nil {
		t.Fatal(err)
	}
	if err := Remove(parent, "a"); err != nil { // open files do not keep it
		t.Fatal(err)
	}
	d.Limits.SetMemory(0, 5) // and do not break
	d.Close()
	if err := Remove(parent, "a"); err != nil {
		t.Errorf("Remove twice: %v", err)
	}
	if _, err := Open(parent, "a"); !errors.Is(err, ErrNotMounted) {
		t.Errorf("Open after Remove: %v, want ErrNotMounted", err)
	}
	ids, err := List(parent)
	if err != nil || len(ids) != 0 {
		t.Errorf("List = %v, %v", ids, err)
	}
	info, _ := os.ReadFile("/proc/self/mountinfo")
	if strings.Contains(string(info), parent) {
		t.Error("a mount is left")
	}
}

func TestFailureLeavesNothing(t *testing.T) {
	parent := needRoot(t)
	if _, err := Create(parent, "a", "", make([]region.GPULimit, region.MaxGPUs+1)); err == nil {
		t.Fatal("too many GPUs were accepted")
	}
	if ids, err := List(parent); err != nil || len(ids) != 0 {
		t.Errorf("left: %v, %v", ids, err)
	}
	if _, err := Create(parent, "../a", "", oneGPU); !errors.Is(err, proc.ErrBadID) {
		t.Errorf("Create(../a): %v, want ErrBadID", err)
	}
}
