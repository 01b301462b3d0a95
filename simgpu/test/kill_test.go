// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

func (n *node) simgpu(args ...string) (string, error) {
	out, err := exec.Command(binary, append([]string{args[0], "--dir", n.dir}, args[1:]...)...).CombinedOutput()
	return string(out), err
}

func (n *node) mustRun(args ...string) {
	n.t.Helper()
	if out, err := n.simgpu(args...); err != nil {
		n.t.Fatalf("%v: %v: %s", args, err, out)
	}
}

// A lost GPU: who has a context there is told so by every call, waiting threads
// at once; others are not concerned; new processes do not see it.
func TestKillGPU(t *testing.T) {
	n := up(t, "--gpus", "2", "--kernel-time", "k=100s")
	victim, other, idle := n.caller("init", "context 0"), n.caller("init", "context 1"), n.caller("init")
	victim.want("launch", "0")
	if _, err := fmt.Fprintln(victim.in, "sync"); err != nil { // for 100 s
		t.Fatal(err)
	}
	eventually(t, func() error {
		for _, p := range n.status().Processes {
			if p.Launches == 1 {
				return nil
			}
		}
		return fmt.Errorf("nothing was launched: %+v", n.status().Processes)
	})
	n.mustRun("kill-gpu", "--gpu", "0")
	if got := victim.answer(); !strings.HasPrefix(got, "999 ") {
		t.Errorf("the waiting thread is told %q", got)
	}
	for _, command := range []string{"info", "alloc", "launch", "sync", "create 1"} {
		if got := victim.results(command, 1)[0]; got != "999" {
			t.Errorf("%s gave %s after the loss", command, got)
		}
	}
	victim.want("version", "0 2f3a 12090")
	victim.want("count", "0 2")
	if got := other.results("info", 1)[0] + other.results("alloc", 1)[0]; got != "00" {
		t.Errorf("a process on another GPU: %s", got)
	}
	idle.want("count", "0 2")
	idle.want("create 0", "46")
	idle.want("create 1", "0")
	after := n.caller("init")
	after.want("count", "0 1")
	after.want("create 0", "0") // the one that is left
	if st := n.status(); st.GPUs[1].Contexts != 3 {
		t.Errorf("%d contexts on GPU 1, want 3", st.GPUs[1].Contexts)
	}

	if out, err := n.simgpu("revive-gpu", "--gpu", "0"); err == nil || !strings.Contains(out, fmt.Sprint(n.pidOf(victim))) {
		t.Errorf("it is revived while a process holds it: %v %s", err, out)
	}
	_ = victim.cmd.Process.Kill()
	eventually(t, func() error {
		out, err := n.simgpu("revive-gpu", "--gpu", "0")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	fresh := n.caller("init", "context 0")
	fresh.want("count", "0 2")
	if got := fresh.results("alloc", 1)[0]; got != "0" {
		t.Errorf("an allocation on the revived GPU gave %s", got)
	}
	for _, args := range [][]string{
		{"revive-gpu", "--gpu", "0"}, {"kill-gpu", "--gpu", "2"}, {"kill-gpu", "--gpu", "0", "--rc", "0"},
		{"kill-gpu", "--gpu", "0", "--xid", "4294967375"},
		{"fail", "--call", "cuMemAlloc", "--rc", "2", "--gpu", "4294967296"},
		{"fail", "--call", "cuMemAlloc", "--rc", "2", "--pid", "4294967297"},
		{"fail", "--call", "cuMemAlloc", "--rc", "2", "--pid", "0"},
	} {
		if out, err := n.simgpu(args...); err == nil {
			t.Errorf("%v: %s", args, out)
		}
	}
}

// What CUDA says depends on the XID; a node whose only GPU is lost has none.
func TestKillGPUByXID(t *testing.T) {
	for _, tc := range []struct{ flags, want string }{
		{"--xid 48", "214"}, {"--xid 79", "999"}, {"--xid 79 --rc CUDA_ERROR_LAUNCH_FAILED", "719"},
	} {
		n := up(t)
		c := n.caller("init", "context 0")
		n.mustRun(append([]string{"kill-gpu", "--gpu", "0"}, strings.Fields(tc.flags)...)...)
		if got := c.results("alloc", 1)[0]; got != tc.want {
			t.Errorf("%s: %s, want %s", tc.flags, got, tc.want)
		}
		n.caller().want("init", "100")
	}
}
