// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/directory"
	"github.com/gpushare/gpushare/limiter/region"
)

func (w *world) record(id string) string { return filepath.Join(w.base, "run", "state", id+".json") }

// A daemon that is started again finds its containers, and lets go of those that
// ended meanwhile. Nothing of a tenant changes.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	_, claimant := w.mustClaim("lives", v1.Request{Memory: "8Gi", Compute: "30%"})
	w.run("lives", claimant)
	_, claimant = w.mustClaim("ends", v1.Request{Memory: "1Gi"})
	ends := w.run("ends", claimant)
	_, pending := w.mustClaim("pending", v1.Request{Memory: "2Gi"})
	_, dies := w.mustClaim("dies", v1.Request{Memory: "2Gi"})
	page, err := region.OpenLimits(filepath.Join(w.containers(), "lives", "limits"))
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	page.SetHold(0, 77) // as if the daemon died while it held somebody
	page.SetMemory(0, 5*gib)

	w.m.Close()
	end(ends)
	end(dies)
	w.start()
	list := w.m.List(context.Background()).Containers
	if len(list) != 2 || list[0].ID != "lives" || list[1].ID != "pending" {
		t.Fatalf("after the restart: %+v", list)
	}
	if !w.gone("ends") || !w.gone("dies") {
		t.Error("what ended meanwhile is still there")
	}
	if g := page.GPU(0); g.Hold != 0 || g.MemoryLimit != 8*gib {
		t.Errorf("page after the restart: %+v", g)
	}
	if g := list[0].GPUs[0]; g.MemoryLimitBytes != 8*gib || g.ComputeMilli != 300 || list[0].State != v1.StateEnforced {
		t.Errorf("container after the restart: %+v", list[0])
	}
	// The pending one starts after the restart and is followed as ever.
	init := w.run("pending", pending)
	end(init)
	w.eventually("release", func() bool { return w.gone("pending") })
}

// A container whose file system is gone stays promised, and says why it is not
// enforced.
func TestDirectoryLost(t *testing.T) {
	for name, damage := range map[string]func(w *world){
		"unmounted": func(w *world) { directory.Remove(w.containers(), "a") },
		"page damaged": func(w *world) {
			os.WriteFile(filepath.Join(w.containers(), "a", "limits"), make([]byte, region.LimitsSize), 0)
		},
		"page of another": func(w *world) {
			raw, _ := os.ReadFile(filepath.Join(w.containers(), "a", "limits"))
			raw = bytes.Replace(raw, []byte{0, 0, 0, 0, 0, 1}, []byte{0, 0, 0, 0, 0, 9}, 1)
			os.WriteFile(filepath.Join(w.containers(), "a", "limits"), raw, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, claimant := w.mustClaim("a", v1.Request{Memory: "8Gi", GPU: "1"})
			init := w.run("a", claimant)
			w.m.Close()
			damage(w)
			w.start()
			c, err := w.m.Container(context.Background(), "a")
			if err != nil || c.State != v1.StateDegraded || c.Reason == "" {
				t.Fatalf("container = %+v, %v", c, err)
			}
			if w.m.Daemon(context.Background()).GPUs[1].MemoryPromisedBytes != 8*gib {
				t.Error("its memory is not promised any more")
			}
			if _, err := w.m.Resize(context.Background(), "a", v1.ResizeRequest{Memory: "9Gi"}); v1.Code(err) != v1.CodeConflict {
				t.Errorf("Resize: %v", err)
			}
			w.restart()
			if c, _ := w.m.Container(context.Background(), "a"); c.State != v1.StateDegraded {
				t.Errorf("after another restart: %+v", c)
			}
			end(init)
			w.eventually("release", func() bool { return w.gone("a") })
			w.empty()
		})
	}
}

// mounted starts a process that has the container's directory mounted where a
// container has it.
func (w *world) mounted(id string) *exec.Cmd {
	w.t.Helper()
	script := fmt.Sprintf("mkdir -p %[1]s/run/gpushare && mount --bind %[2]s %[1]s/run/gpushare && exec sleep 600", filepath.Join(w.base, "rootfs-"+id), filepath.Join(w.containers(), id))
	cmd := w.process("unshare", "-m", "--propagation", "private", "sh", "-c", script)
	w.eventually("mount", func() bool {
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", cmd.Process.Pid))
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
		return strings.Contains(string(raw), "rootfs-"+id) && string(name) == "sleep\n"
	})
	return cmd
}

// A container whose record is lost is found by its mount, and its limits by its
// page: its share stays promised.
func TestRecordLost(t *testing.T) {
	for name, damage := range map[string]func(w *world){
		"removed": func(w *world) { os.Remove(w.record("a")) },
		"cut":     func(w *world) { os.Truncate(w.record("a"), 30) },
		"zeros":   func(w *world) { os.WriteFile(w.record("a"), make([]byte, 500), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, claimant := w.mustClaim("a", v1.Request{Memory: "8Gi", Compute: "30%", ComputeMax: "50%", GPU: "1"})
			w.mustClaim("nobody", v1.Request{Memory: "1Gi"})
			init := w.mounted("a")
			w.writeState("a", init.Process.Pid)
			end(claimant)
			w.eventually("start", func() bool { c, err := w.m.Container(context.Background(), "a"); return err == nil && c.PID != 0 })
			w.m.Close()
			damage(w)
			os.Remove(w.record("nobody"))
			w.start()
			c, err := w.m.Container(context.Background(), "a")
			if err != nil || c.State != v1.StateDegraded || !strings.Contains(c.Reason, "record was lost") || c.PID != init.Process.Pid {
				t.Fatalf("container = %+v, %v", c, err)
			}
			if g := c.GPUs[0]; g.Index != 1 || g.MemoryLimitBytes != 8*gib || g.ComputeMilli != 300 || g.ComputeMaxMilli != 500 {
				t.Errorf("limits = %+v", g)
			}
			if !w.gone("nobody") {
				t.Error("a directory that nobody has mounted is still there")
			}
			if d := w.m.Daemon(context.Background()); len(d.Warnings) == 0 {
				t.Error("the daemon does not warn")
			}
			if r, err := w.m.Resize(context.Background(), "a", v1.ResizeRequest{Memory: "9Gi"}); err != nil || r.New[0].MemoryBytes != 9*gib {
				t.Errorf("Resize: %+v, %v", r, err)
			}
			end(init)
			w.eventually("release", func() bool { return w.gone("a") })
			os.Remove(w.record("a") + ".corrupt")
			w.empty()
		})
	}
}

// A container's processes that outlive its first one keep its share.
func TestStragglersKeepTheShare(t *testing.T) {
	w := newWorld(t)
	_, claimant := w.mustClaim("a", v1.Request{Memory: "8Gi"})
	straggler := w.mounted("a")
	init := w.run("a", claimant)
	end(init)
	// Its end is noticed at once; what keeps the claim is the other process.
	w.eventually("notice", func() bool {
		c, err := w.m.Container(context.Background(), "a")
		return err == nil && !procAlive(c.PID)
	})
	if w.gone("a") {
		t.Fatal("released while a process has its directory mounted")
	}
	w.restart()
	if _, err := w.m.Container(context.Background(), "a"); err != nil {
		t.Fatalf("a restart released it: %v", err)
	}
	// Started again under its id: not beside what is left of it, but as soon as
	// that is gone.
	if _, _, err := w.claim("a", v1.Request{Memory: "8Gi"}); v1.Code(err) != v1.CodeConflict {
		t.Errorf("a claim beside a straggler: %v, want a conflict", err)
	}
	time.AfterFunc(100*time.Millisecond, func() { straggler.Process.Kill() })
	again, claimant := w.mustClaim("a", v1.Request{Memory: "8Gi"})
	if g := w.m.Daemon(context.Background()).GPUs[again.GPUs[0].Index]; g.MemoryPromisedBytes != 8*gib {
		t.Errorf("%d bytes promised, want 8 GiB once", g.MemoryPromisedBytes)
	}
	end(claimant)
	w.eventually("release", func() bool { return w.gone("a") })
	w.empty()
}

// A runtime that keeps its state elsewhere, or writes one that cannot be read:
// the container is known by its mount, before and after a restart.
func TestRuntimeStateNotFound(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := newWorld(t)
		_, claimant := w.mustClaim("a", v1.Request{Memory: "8Gi"})
		init := w.mounted("a")
		os.MkdirAll(filepath.Join(w.root(), "a"), 0o700)
		os.WriteFile(filepath.Join(w.root(), "a", "state.json"), []byte("{not json"), 0o600)
		if restart {
			w.m.Close()
			end(claimant)
			w.start()
		} else {
			end(claimant)
		}
		w.eventually("start", func() bool {
			c, err := w.m.Container(context.Background(), "a")
			if err != nil {
				t.Fatalf("a living container lost its place: %v", err)
			}
			return c.PID == init.Process.Pid
		})
		end(init)
		w.eventually("release", func() bool { return w.gone("a") })
		w.empty()
	}
}

func procAlive(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}

func TestRecordsOfAnotherBoot(t *testing.T) {
	w := newWorld(t)
	_, claimant := w.mustClaim("a", v1.Request{Memory: "8Gi"})
	w.run("a", claimant)
	w.m.mu.Lock()
	c := w.m.containers["a"]
	c.rec.BootID = "another"
	if err := w.m.store.Save(c.rec); err != nil {
		t.Fatal(err)
	}
	w.m.mu.Unlock()
	w.restart()
	if !w.gone("a") {
		t.Error("a record of another boot was taken up: its PIDs mean nothing now")
	}
	w.empty()
}
