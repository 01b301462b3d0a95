// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpushare/gpushare/simgpu/host"
)

// upTimed starts a node whose clock the test moves, held. What programs compute
// takes no time there, so that neither the machine's speed nor its load shows in
// simulated times. Its programs need no time library unless they sleep.
func upTimed(t *testing.T, args ...string) *node {
	t.Helper()
	n := up(t, append([]string{"--clock", "virtual"}, args...)...)
	if err := n.admin.HoldClock(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	return n
}

// joined waits until the process is on the node's clock, or done is closed.
func (n *node) joined(pid int, done <-chan struct{}) {
	n.t.Helper()
	eventually(n.t, func() error {
		select {
		case <-done:
			return nil
		default:
		}
		if !slices.ContainsFunc(n.clock().Clients, func(c host.ClockClient) bool { return int(c.PID) == pid }) {
			return fmt.Errorf("process %d is not on the clock", pid)
		}
		return nil
	})
}

// beside starts a program that runs, as time is moved, until the test's end.
func (n *node) beside(name string, args ...string) *proc {
	n.t.Helper()
	p := &proc{cmd: n.command(name, args...)}
	p.cmd.Stderr = &p.errs
	if _, err := p.cmd.StdinPipe(); err != nil { // open until it has ended
		n.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = p.cmd.Wait(); close(done) }()
	n.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-done
		if n.t.Failed() {
			n.t.Logf("%s %v: %s", name, args, p.errs.String())
		}
	})
	n.joined(p.cmd.Process.Pid, done)
	return p
}

// timed runs a program to its end, moving time, and returns what it printed.
func (n *node) timed(name string, args ...string) string {
	n.t.Helper()
	return n.timedCommand(n.command(name, args...))
}

func (n *node) timedCommand(cmd *exec.Cmd) string {
	n.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	done := make(chan struct{})
	var err error
	go func() { err = cmd.Wait(); close(done) }()
	defer func() { _ = cmd.Process.Kill(); <-done }()
	n.joined(cmd.Process.Pid, done)
	for end := time.Now().Add(patience); ; {
		select {
		case <-done:
			if err != nil {
				n.t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, out.String(), errs.String())
			}
			return out.String()
		default:
		}
		if time.Now().After(end) {
			n.t.Fatalf("%s does not end; the clock waits for %v\n%s%s", strings.Join(cmd.Args, " "), n.clock().Waiting, out.String(), errs.String())
		}
		n.move(host.ClockMove{ByNS: (50 * time.Millisecond).Nanoseconds()})
	}
}

// near fails unless got is within a part in ten thousand of want, and 2 ns.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if d := got - want; d > want/1e4+2e-6 || -d > want/1e4+2e-6 {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
