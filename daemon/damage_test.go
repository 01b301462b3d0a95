// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// A container that an older version started is not misread: its own library goes
// on with its own page, its share stays promised, and the daemon says what it
// cannot do. After a way back all is as before.
func TestPageOfAnotherVersion(t *testing.T) {
	w := newWorld(t)
	_, claimant := w.mustClaim("a", v1.Request{Memory: "8Gi", GPU: "1"})
	w.run("a", claimant)
	page, err := os.OpenFile(filepath.Join(w.containers(), "a", "limits"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	own := make([]byte, 4)
	if _, err := page.ReadAt(own, 4); err != nil {
		t.Fatal(err)
	}
	w.m.Close()
	if _, err := page.WriteAt([]byte{own[0] + 1}, 4); err != nil {
		t.Fatal(err)
	}
	w.start()
	c, err := w.m.Container(context.Background(), "a")
	if err != nil || c.State != v1.StateDegraded || !strings.Contains(c.Reason, "of another version") {
		t.Errorf("%+v, %v", c, err)
	}
	if g := w.m.Daemon(context.Background()).GPUs[1]; g.MemoryPromisedBytes != 8*gib {
		t.Errorf("promised: %+v", g)
	}
	if _, err := w.m.Resize(context.Background(), "a", v1.ResizeRequest{Memory: "9Gi"}); v1.Code(err) != v1.CodeConflict || !strings.Contains(err.Error(), "of another version") {
		t.Errorf("Resize: %v", err)
	}
	w.m.Close()
	if _, err := page.WriteAt(own, 4); err != nil {
		t.Fatal(err)
	}
	w.start()
	if c, err := w.m.Container(context.Background(), "a"); err != nil || c.State != v1.StateEnforced {
		t.Errorf("after the way back: %+v, %v", c, err)
	}
}

// Somebody has emptied the run directory, as far as that can be done while
// containers live: their mounts remain.
func TestRunDirectoryEmptied(t *testing.T) {
	w := newWorld(t)
	w.mustClaim("a", v1.Request{Memory: "8Gi", Compute: "30%", GPU: "1"})
	init := w.mounted("a")
	w.mustClaim("b", v1.Request{Memory: "4Gi"})
	w.m.Close()
	run := filepath.Join(w.base, "run")
	entries, err := os.ReadDir(run)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "c" {
			os.RemoveAll(filepath.Join(run, e.Name()))
		}
	}
	w.start()
	c, err := w.m.Container(context.Background(), "a")
	if err != nil || c.GPUs[0].MemoryLimitBytes != 8*gib || c.GPUs[0].ComputeMilli != 300 {
		t.Errorf("%+v, %v", c, err)
	}
	if !w.gone("b") {
		t.Error("what does not live was kept")
	}
	end(init)
	w.eventually("release", func() bool { return w.gone("a") })
	w.empty()
}

// A full disk: containers that run keep their limits, a change and a claim are
// refused whole, and all is well once there is room.
func TestFullDisk(t *testing.T) {
	w := newWorld(t)
	w.m.Close()
	run := filepath.Join(w.base, "run")
	if err := unix.Mount("test", run, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(run, unix.MNT_DETACH) })
	w.start()
	t.Cleanup(w.m.Close)
	claim, claimant := w.mustClaim("a", v1.Request{Memory: "8Gi", GPU: "1"})
	init := w.run("a", claimant)
	filler := filepath.Join(run, "filler")
	fill := func() {
		t.Helper()
		f, err := os.Create(filler)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
	}
	fill()
	_, err := w.m.Resize(context.Background(), "a", v1.ResizeRequest{Memory: "9Gi"})
	if v1.Code(err) != v1.CodeInternal || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("Resize: %v", err)
	}
	if _, _, err := w.claim("b", v1.Request{Memory: "1Gi"}); v1.Code(err) != v1.CodeInternal || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("Claim: %v", err)
	}
	check := func() {
		t.Helper()
		list := w.m.List(context.Background()).Containers
		if len(list) != 1 || list[0].GPUs[0].MemoryLimitBytes != 8*gib || list[0].Request.Memory != "8Gi" {
			t.Errorf("%+v", list)
		}
		for _, name := range []string{"c/b", "state/b.json", "state/~new"} {
			if _, err := os.Lstat(filepath.Join(run, name)); err == nil {
				t.Errorf("%s is left", name)
			}
		}
	}
	check()
	w.restart() // with a full disk
	check()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if _, err := w.m.Resize(context.Background(), "a", v1.ResizeRequest{Memory: "9Gi"}); err != nil {
		t.Errorf("Resize, with room: %v", err)
	}
	w.mustClaim("b", v1.Request{Memory: "1Gi"})
	fill() // what ends is released all the same
	end(init)
	w.eventually("release", func() bool { return w.gone("a") })
	if _, err := os.Lstat(claim.Directory); err == nil {
		t.Error("its directory is left")
	}
}
