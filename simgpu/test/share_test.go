// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpushare/gpushare/simgpu/host"
)

// sharer is a running share program.
type sharer struct {
	n    *node
	name string // of its control group's end, or "" for the host's
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	errs bytes.Buffer
	pid  int // on the host
}

func (n *node) sharer(name string, cmd *exec.Cmd) *sharer {
	n.t.Helper()
	s := &sharer{n: n, name: name, cmd: cmd}
	before := map[uint32]bool{}
	for _, p := range n.status().Processes {
		before[p.PID] = true
	}
	cmd.Stderr = &s.errs
	var err error
	if s.in, err = cmd.StdinPipe(); err != nil {
		n.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = s.in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	s.out = bufio.NewScanner(out)
	s.line("ready")
	for _, p := range n.status().Processes {
		if !before[p.PID] {
			s.pid = int(p.PID)
			if p.Command != "share" || !strings.HasSuffix(p.Cgroup, name) {
				n.t.Errorf("%s is %+v in the simulator's account", name, p)
			}
		}
	}
	if s.pid == 0 {
		n.t.Fatalf("%s is not in the simulator's account", name)
	}
	return s
}

// line reads the next line, which begins with want.
func (s *sharer) line(want string) string {
	s.n.t.Helper()
	if !s.out.Scan() || !strings.HasPrefix(s.out.Text(), want) {
		s.n.t.Fatalf("%s says %q, want %s: %s", s.name, s.out.Text(), want, s.errs.String())
	}
	return s.out.Text()
}

func (s *sharer) tell(letter string) {
	s.n.t.Helper()
	if _, err := io.WriteString(s.in, letter); err != nil {
		s.n.t.Fatalf("tell %s: %v", s.name, err)
	}
}

// view is what a tenant sees of the GPU.
type view struct {
	count                                       int
	free, total, nvmlFree, nvmlTotal, processes uint64
}

func (s *sharer) view() (v view) {
	s.n.t.Helper()
	s.tell("i")
	if _, err := fmt.Sscanf(s.line("info"), "info %d %d %d %d %d %d", &v.count, &v.free, &v.total, &v.nvmlFree, &v.nvmlTotal, &v.processes); err != nil {
		s.n.t.Fatal(err)
	}
	return v
}

func used(st host.Status, pid int) (bytes uint64, ns int64) {
	for _, p := range st.Processes {
		if int(p.PID) == pid {
			bytes += p.GPUs[0].UsedBytes
			ns += p.GPUs[0].GPUTimeNS
		}
	}
	return bytes, ns
}

// addUp checks that everybody, inside and outside, sees the same bytes.
func (n *node) addUp(when string, all []*sharer) {
	n.t.Helper()
	st := n.status()
	var sum uint64
	for _, s := range all {
		b, _ := used(st, s.pid)
		sum += b
	}
	g := st.GPUs[0]
	if g.UsedBytes != sum {
		n.t.Errorf("%s: %d bytes are in use, the processes have %d", when, g.UsedBytes, sum)
	}
	for _, s := range all {
		want := view{1, g.MemoryBytes - sum, g.MemoryBytes, g.MemoryBytes - sum, g.NVMLBytes, sum}
		if s.name == "" {
			want.count = len(st.GPUs)
		}
		if v := s.view(); v != want {
			n.t.Errorf("%s: %q sees %+v, want %+v", when, s.name, v, want)
		}
	}
}

// shares measures over a stretch of engine time in which all of them are busy what
// each had of it.
func (n *node) shares(all []*sharer, stretch time.Duration) []float64 {
	n.t.Helper()
	for _, s := range all {
		s.tell("r")
	}
	begin := n.status()
	eventually(n.t, func() error { // all are at it
		begin2 := n.status()
		for _, s := range all {
			_, a := used(begin, s.pid)
			if _, b := used(begin2, s.pid); b == a {
				return fmt.Errorf("%q has not begun", s.name)
			}
		}
		begin = begin2
		return nil
	})
	var end host.Status
	eventually(n.t, func() error {
		end = n.status()
		if d := end.GPUs[0].GPUTimeNS - begin.GPUs[0].GPUTimeNS; d < stretch.Nanoseconds() {
			return fmt.Errorf("%d ns of engine time so far", d)
		}
		return nil
	})
	for _, s := range all {
		s.tell("s")
	}
	for _, s := range all {
		s.line("stopped")
	}
	total := end.GPUs[0].GPUTimeNS - begin.GPUs[0].GPUTimeNS
	var out []float64
	for _, s := range all {
		_, a := used(begin, s.pid)
		_, b := used(end, s.pid)
		out = append(out, float64(b-a)/float64(total))
	}
	if busy := float64(total) / float64(end.TimeNS-begin.TimeNS); busy < 0.97 {
		n.t.Logf("the engine was busy for %.3f of the time: somebody ran dry, on a slow machine", busy)
	}
	return out
}

// TestNativeSharing: two containers, made from the node's own CDI specification by
// runc alone, and a process of the host share one simulated GPU as processes share
// a real one: its time evenly, its memory to the byte, and nothing of one that is
// killed stays.
func TestNativeSharing(t *testing.T) {
	plain(t, "the containers have no sanitizer's library")
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	if _, err := exec.LookPath("runc"); err != nil {
		t.Skip("no runc on this machine")
	}
	for _, profile := range []string{"exact", "h100"} {
		t.Run(profile, func(t *testing.T) {
			n := up(t, "--profile", "2x"+profile, "--kernel-time", "k=1ms", "--slice", "2ms")
			n.t = t
			if _, err := os.Stat(filepath.Join(n.dir, "cdi", "nvidia.json")); err != nil {
				t.Skip("device nodes need the right to make them")
			}
			id := fmt.Sprintf("simgpu-%d-%s", os.Getpid(), profile)
			a := n.sharer(id+"-a", n.container(id+"-a", "cdi", "0", rootfs(t, "share"), "/share", fmt.Sprint(gib+1)))
			b := n.sharer(id+"-b", n.container(id+"-b", "cdi-hooks", n.status().GPUs[0].UUID, rootfs(t, "share"), "/share", fmt.Sprint(3*gib)))
			h := n.sharer("", n.command("share", fmt.Sprint(5*mib)))
			all := []*sharer{a, b, h}
			n.addUp("with three", all)

			for _, tc := range []struct {
				who  []*sharer
				want float64
			}{{all, 1. / 3}, {[]*sharer{a, h}, 1. / 2}, {[]*sharer{a, b}, 1. / 2}} {
				got := n.shares(tc.who, 600*time.Millisecond)
				t.Logf("%d tenants have %.4f of the GPU's time (SIMULATED)", len(tc.who), got)
				for _, share := range got {
					if math.Abs(share-tc.want) > 0.02 {
						t.Errorf("%d tenants have %.4f, want %.4f each", len(tc.who), got, tc.want)
						break
					}
				}
			}
			n.addUp("after work", all)

			for len(all) > 0 {
				victim := all[0]
				before := n.used()
				had, _ := used(n.status(), victim.pid)
				victim.tell("r") // in the middle of its work
				eventually(t, func() error {
					for _, p := range n.status().Processes {
						if int(p.PID) == victim.pid && p.Pending > 0 {
							return nil
						}
					}
					return errors.New("it has not begun")
				})
				if err := syscall.Kill(victim.pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				all = all[1:]
				eventually(t, func() error {
					if b, _ := used(n.status(), victim.pid); b != 0 || n.used() != before-had {
						return fmt.Errorf("%d bytes in use after a kill, want %d", n.used(), before-had)
					}
					return nil
				})
				n.addUp(fmt.Sprintf("with %d left", len(all)), all)
			}
			st := n.status()
			if n.used() != 0 || len(st.Processes) != 0 {
				t.Errorf("%d bytes, processes %+v are left", n.used(), st.Processes)
			}
			for _, g := range st.Cgroups {
				if g.GPUs[0].UsedBytes != 0 {
					t.Errorf("control group %+v still has memory", g)
				}
			}
		})
	}
}
