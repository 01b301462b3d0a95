// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The committed C header is what the Go types say, and a C compiler agrees with
// every offset in it (its static assertions).
func TestHeaderIsCurrent(t *testing.T) {
	out := filepath.Join(t.TempDir(), "region.h")
	if msg, err := exec.Command("go", "run", "./gen", "-out", out).CombinedOutput(); err != nil {
		t.Fatalf("generate: %v\n%s", err, msg)
	}
	want, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	const committed = "../../cuda-intercept/include/region.h"
	got, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not what limiter/region generates; run make generate", committed)
	}
	if msg, err := exec.Command("gcc", "-std=gnu17", "-Wall", "-Werror", "-fsyntax-only", "-x", "c", committed).CombinedOutput(); err != nil {
		t.Errorf("compile %s: %v\n%s", committed, err, msg)
	}
}

func TestSizes(t *testing.T) {
	for name, got := range map[string][2]uintptr{
		"LimitsPage":   {unsafe.Sizeof(LimitsPage{}), LimitsSize},
		"LedgerHeader": {unsafe.Sizeof(LedgerHeader{}), LedgerHeaderSize},
		"Slot":         {unsafe.Sizeof(Slot{}), SlotSize},
		"GPUAccount":   {unsafe.Sizeof(GPUAccount{}), 128},
		"Share":        {unsafe.Sizeof(Share{}), ShareSize},
		"ShareHigh":    {unsafe.Offsetof(LedgerHeader{}.ShareHigh), 48},
		"PaidNs first": {unsafe.Offsetof(LedgerHeader{}.GPU), 64},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %d, want %d", name, got[0], got[1])
		}
	}
}

func TestLimitsPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits")
	l, err := CreateLimits(path, []GPULimit{{UUID: [16]byte{1}, MemoryLimit: 5, CeilingMilli: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := CreateLimits(path, make([]GPULimit, 1)); err == nil {
		t.Error("CreateLimits wrote over an existing page")
	}
	l.SetMemory(0, 7)
	l.SetShare(0, 250, 500)
	l.SetHold(0, 3)
	l.SetWindow(0, 4)
	l.SetAlone(0, true)
	again, err := OpenLimits(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	want := GPULimit{UUID: [16]byte{1}, MemoryLimit: 7, ComputeMilli: 250, CeilingMilli: 500, Hold: 3, Window: 4, Alone: 1}
	if got := again.GPU(0); got != want {
		t.Errorf("GPU(0) = %+v, want %+v", got, want)
	}
	if st, _ := os.Stat(path); st.Mode() != 0o444 {
		t.Errorf("mode %v, want 0444", st.Mode())
	}
}

func TestOpenLimitsRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"empty": {}, "short": make([]byte, 64), "zeros": make([]byte, LimitsSize), "long": make([]byte, 2*LimitsSize),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenLimits(path); !errors.Is(err, ErrLayout) {
			t.Errorf("%s: %v, want ErrLayout", name, err)
		}
	}
	other := filepath.Join(dir, "other")
	l, err := CreateLimits(other, make([]GPULimit, 1))
	if err != nil {
		t.Fatal(err)
	}
	l.page.Header.Version = Version + 1
	l.Close()
	if _, err := OpenLimits(other); !errors.Is(err, ErrVersion) || !errors.Is(err, ErrLayout) {
		t.Errorf("another version: %v", err)
	}
	target := filepath.Join(dir, "zeros")
	if err := os.Symlink(target, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLimits(filepath.Join(dir, "link")); err == nil {
		t.Error("followed a symbolic link")
	}
}

// take plays a process: it takes a slot and writes its bytes.
func take(t *testing.T, path string, slot int, bytes ...uint64) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	lk := unix.Flock_t{Type: unix.F_WRLCK, Start: LockBase + int64(slot), Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk); err != nil {
		t.Fatal(err)
	}
	put := func(v uint64, n int, off int64) {
		b := make([]byte, 8)
		binary.NativeEndian.PutUint64(b, v)
		if _, err := f.WriteAt(b[:n], off); err != nil {
			t.Fatal(err)
		}
	}
	put(SlotUsed, 4, LedgerHeaderSize+int64(slot)*SlotSize)
	put(128, 4, int64(unsafe.Offsetof(LedgerHeader{}.SlotHigh)))
	for g, n := range bytes {
		put(n, 8, UsedOffset(g, slot))
	}
	return f
}

func TestLedgerCountsLivingHolders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	if err := CreateLedger(path, 2); err != nil {
		t.Fatal(err)
	}
	l, err := OpenLedger(path, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a := take(t, path, 0, 10, 1)
	b := take(t, path, 70, 20, 2)
	defer b.Close()
	expect := func(step string, u Usage, err error, procs int, gpu0, gpu1 uint64) {
		t.Helper()
		if err != nil || u.Processes != procs || u.GPU[0].Bytes != gpu0 || u.GPU[1].Bytes != gpu1 {
			t.Errorf("%s: %+v, %v; want %d processes, %d and %d bytes", step, u, err, procs, gpu0, gpu1)
		}
	}
	u, err := l.Read()
	expect("both", u, err, 2, 30, 3)
	dup, _ := unix.Dup(int(a.Fd())) // as a forked child keeps the description
	a.Close()
	u, err = l.Read()
	expect("description still open", u, err, 2, 30, 3)
	unix.Close(dup)
	u, err = l.Sweep()
	expect("first gone", u, err, 1, 20, 2)
	word := make([]byte, 8)
	if _, err := b.ReadAt(word, UsedOffset(0, 0)); err != nil || binary.NativeEndian.Uint64(word) != 10 {
		t.Errorf("bytes cleared within the grace: %v, %v", word, err)
	}
	time.Sleep(ReapGrace + 10*time.Millisecond)
	u, err = l.Sweep()
	expect("first gone for long", u, err, 1, 20, 2)
	c := take(t, path, 0)
	defer c.Close()
	u, err = l.Read()
	expect("slot reused after sweep", u, err, 2, 20, 2)
}

func TestLedgerDamage(t *testing.T) {
	dir := t.TempDir()
	for name, damage := range map[string]func(f *os.File) error{
		"truncated":    func(f *os.File) error { return f.Truncate(100) },
		"cut columns":  func(f *os.File) error { return f.Truncate(LedgerHeaderSize) },
		"magic":        func(f *os.File) error { _, err := f.WriteAt([]byte("evil"), 0); return err },
		"other GPUs":   func(f *os.File) error { _, err := f.WriteAt([]byte{9}, 12); return err },
		"version bump": func(f *os.File) error { _, err := f.WriteAt([]byte{9}, 4); return err },
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := CreateLedger(path, 1); err != nil {
			t.Fatal(err)
		}
		f := take(t, path, 3, 99)
		if err := damage(f); err != nil {
			t.Fatal(err)
		}
		l, err := OpenLedger(path, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Read(); !errors.Is(err, ErrLayout) {
			t.Errorf("%s: %v, want ErrLayout", name, err)
		}
		l.Close()
		f.Close()
	}
}

// Whatever a tenant writes over its ledger, the daemon neither crashes nor reads
// without bound, and a sum never wraps to a small number.
func FuzzLedger(f *testing.F) {
	f.Add(int64(20), []byte{0xff, 0xff, 0xff, 0xff})
	f.Add(UsedOffset(0, 3), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, off int64, b []byte) {
		file, err := os.CreateTemp(dir, "ledger")
		if err != nil {
			t.Fatal(err)
		}
		path := file.Name()
		file.Close()
		os.Remove(path)
		if err := CreateLedger(path, 1); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
		holder := take(t, path, 3, 1<<63)
		defer holder.Close()
		other := take(t, path, 4, 1<<63)
		defer other.Close()
		if off < 0 || off > LedgerSize(1) || len(b) > 1<<16 {
			return
		}
		if _, err := other.WriteAt(b, off); err != nil {
			t.Fatal(err)
		}
		l, err := OpenLedger(path, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, _ = l.Sweep()
	})
}
