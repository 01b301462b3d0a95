// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/limiter/region"
)

func standInLimit() region.GPULimit {
	return region.GPULimit{
		UUID: standInUUID(0), MemoryLimit: 1024 * mib, ContextBytes: 100 * mib, CeilingMilli: 1000,
	}
}

// Whatever is wrong with the container's files, cuInit says that the system is
// not ready, the program lives, and not one byte of ours is on its output.
func TestFailsClosed(t *testing.T) {
	tenant := compile(t, "tenant.c")
	driver := standIn(t)
	overwrite := func(name string, off int64, b ...byte) func(string) error {
		return func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt(b, off)
			return err
		}
	}
	remove := func(name string) func(string) error {
		return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
	}
	truncate := func(name string, size int64) func(string) error {
		return func(dir string) error { return os.Truncate(filepath.Join(dir, name), size) }
	}
	for name, damage := range map[string]func(dir string) error{
		"no limits page":        remove("limits"),
		"no ledger":             remove("ledger"),
		"empty limits page":     truncate("limits", 0),
		"short limits page":     truncate("limits", 4095),
		"short ledger":          truncate("ledger", region.LedgerSize(1)-1),
		"empty ledger":          truncate("ledger", 0),
		"long ledger":           truncate("ledger", region.LedgerSize(1)+4096),
		"limits magic":          overwrite("limits", 0, 'x'),
		"limits version":        overwrite("limits", 4, 99),
		"too many GPUs":         overwrite("limits", 12, 17),
		"no GPUs":               overwrite("limits", 12, 0),
		"other ledger size":     overwrite("limits", 25, 0xff),
		"ledger magic":          overwrite("ledger", 0, 'x'),
		"ledger version":        overwrite("ledger", 4, 99),
		"ledger of other GPUs":  overwrite("ledger", 12, 2),
		"ledger of fewer slots": overwrite("ledger", 16, 1),
		"a link for a page": func(dir string) error {
			if err := os.Rename(filepath.Join(dir, "limits"), filepath.Join(dir, "elsewhere")); err != nil {
				return err
			}
			return os.Symlink("elsewhere", filepath.Join(dir, "limits"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newContainer(t, standInLimit())
			c.driver = driver
			if err := damage(c.dir); err != nil {
				t.Fatal(err)
			}
			out, err := c.run(tenant, "try-init", "alloc=1048576", "try-init")
			if err != nil || out != "try-init 802\nalloc 3\ntry-init 802\n" {
				t.Errorf("%v, output %q", err, out)
			}
		})
	}
}

// A GPU that the page does not name is refused.
func TestForeignGPU(t *testing.T) {
	limit := standInLimit()
	limit.UUID[3] = 1
	c := newContainer(t, limit)
	c.driver = standIn(t)
	if out, err := c.run(compile(t, "tenant.c"), "init"); err == nil || out != "init 100\n" {
		t.Errorf("%v, output %q", err, out)
	}
}

// Garbage in the words of slots that nobody holds is cleared; it neither crashes
// a process nor opens the limit.
func TestGarbageInLedger(t *testing.T) {
	c := newContainer(t, standInLimit())
	c.driver = standIn(t)
	f, err := os.OpenFile(filepath.Join(c.dir, "ledger"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// slot_high 3 and two slots full of ones; hint and sweep cursor beyond all.
	for off, b := range map[int64]string{
		20:                      "\x03\x00\x00\x00",
		24:                      "\xff\xff\xff\xff\xff\xff\xff\xff",
		region.UsedOffset(0, 0): "\xff\xff\xff\xff\xff\xff\xff\xff",
		region.UsedOffset(0, 2): "\xff\xff\xff\xff\xff\xff\xff\x7f",
	} {
		if _, err := f.WriteAt([]byte(b), off); err != nil {
			t.Fatal(err)
		}
	}
	out, err := c.run(compile(t, "tenant.c"), "init", "fill=1048576")
	if err != nil || out != "fill 968884224\n" { // 924 MiB
		t.Errorf("%v, output %q", err, out)
	}
}

// A driver that at its start finds and calls its own start through us, as one does
// that asks the loader for it, starts once, with one slot.
func TestDriverReenters(t *testing.T) {
	c := newContainer(t, standInLimit())
	c.driver = standIn(t)
	c.env = []string{"FAKE_REENTERS=1"}
	out, err := c.run(compile(t, "tenant.c"), "init", "info", "fill=1048576", "try-init", "info")
	if want := "info 0 968884224 1073741824\nfill 968884224\ntry-init 0\ninfo 0 0 1073741824\n"; err != nil || out != want {
		t.Errorf("%v, output %q", err, out)
	}
	b, err := os.ReadFile(filepath.Join(c.dir, "ledger"))
	if err != nil || b[20] != 1 {
		t.Errorf("%v, %d slots were taken", err, b[20])
	}
}

// The libraries keep what a program has set up for itself.
func TestLeavesTheProcessAlone(t *testing.T) {
	c := newContainer(t, standInLimit())
	c.driver = standIn(t)
	if out, err := c.run(compile(t, "quiet.c", "-lm")); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
}

// 3000 processes of one container at once, each with a slot.
func TestManyProcesses(t *testing.T) {
	n := "3000"
	if sanitized() || counting() {
		n = "200" // a sanitized process takes 30 times the memory, one that counts writes files
	}
	c := newContainer(t, standInLimit())
	c.driver = standIn(t)
	out, err := c.run(compile(t, "tenant.c"), "spawn="+n, "spawn="+n, "init", "fill=1048576")
	if err != nil || out != "spawn "+n+"\nspawn "+n+"\nfill 968884224\n" {
		t.Errorf("%v, output %q", err, out)
	}
	l, err := region.OpenLedger(filepath.Join(c.dir, "ledger"), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if u, err := l.Sweep(); err != nil || u.Processes != 0 {
		t.Errorf("after their end: %+v, %v", u, err)
	}
}

// A short life of a process makes no lasting trace: slots are used again.
func TestSlotsAreReused(t *testing.T) {
	c := newContainer(t, standInLimit())
	c.driver = standIn(t)
	tenant := compile(t, "tenant.c")
	for range 20 {
		if out, err := c.run(tenant, "init", "alloc=104857600", "alloc=104857600"); err != nil {
			t.Fatalf("%v, output %q", err, out)
		}
	}
	b, err := os.ReadFile(filepath.Join(c.dir, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	// Four dead processes fill the limit; the fifth must wait for the first.
	if high := b[20]; high > 8 {
		t.Errorf("20 processes, one after the other, took %d slots", high)
	}
}

func linesOf(out string) []string { return strings.Split(strings.TrimSpace(out), "\n") }
