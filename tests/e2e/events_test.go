// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/tests/node"
)

var boundingSet = regexp.MustCompile(`(?m)^CapabilityBoundingSet=(.*)$`)

// confine gives the daemons that start from now on the capabilities that the unit
// for systemd leaves them, and no new privileges.
func confine(t *testing.T, n *node.Node) (confined bool) {
	t.Helper()
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Log("no setpriv on this machine: the daemon runs with more capabilities than its unit leaves it")
		return false
	}
	unit, err := os.ReadFile(filepath.Join(root, "packaging/systemd/gpushared.service"))
	if err != nil {
		t.Fatal(err)
	}
	found := boundingSet.FindSubmatch(unit)
	if found == nil {
		t.Fatal("the unit has no CapabilityBoundingSet")
	}
	set := "-all"
	for c := range strings.FieldsSeq(string(found[1])) {
		set += ",+" + strings.ToLower(strings.TrimPrefix(c, "CAP_"))
	}
	program := n.Bin("gpushared")
	if err := os.Rename(program, program+".real"); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec setpriv --bounding-set=%s --no-new-privs %s.real \"$@\"\n", set, program)
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return true
}

// Who follows the events sees a container's life as it happens, and goes on over a
// restart of the daemon.
func TestEventsOfAContainer(t *testing.T) {
	n := up(t, node.Options{NoEngine: true})
	e := bare{n}
	follow := talk(t, nil, n.Bin("gpushare"), "--config", n.ConfigFile(), "events", "-f")
	t.Cleanup(follow.End)
	comes := func(reason string, parts ...string) {
		t.Helper()
		for {
			line := expect(t, follow, "")
			if !strings.Contains(line, "  "+reason+" ") {
				continue
			}
			for _, p := range parts {
				if !strings.Contains(line, p) {
					t.Errorf("%q is not in %q", p, line)
				}
			}
			return
		}
	}
	comes(v1.EventDaemonStarted, "SIMULATED", "1 GPUs")
	c := e.background(t, share("2Gi")...)
	comes(v1.EventClaimed, c.id, "asked for memory 2Gi (by env): 2 GiB of GPU 0")
	comes(v1.EventStarted, c.id, "pid ")
	_, r := e.run(t, share("99Gi"), "echo", "started")
	refused(t, r, "GS-NO-FIT")
	comes(v1.EventRefused, "asked for memory 99Gi", "[GS-NO-FIT]")
	c.exec(within(t), "alloc", "--fill")
	comes(v1.EventDenied, c.id, "at its limit of 2 GiB")
	if r := n.CLI(within(t), "set", c.id, "--gpu-memory", "3Gi"); r.Err != nil {
		t.Fatal(r.Err)
	}
	comes(v1.EventLimitChanged, "2 GiB of GPU 0", "→ 3 GiB of GPU 0")
	if err := n.Daemon().Kill(); err != nil {
		t.Fatal(err)
	}
	if err := n.StartDaemon(within(t)); err != nil {
		t.Fatal(err)
	}
	comes(v1.EventTakenUp, c.id, "3 GiB of GPU 0")
	comes(v1.EventDaemonStarted, "1 containers taken up")
	c.remove()
	comes(v1.EventReleased, c.id, "free again: 3 GiB of GPU 0")
	r = n.CLI(within(t), "inspect", c.id)
	if r.Code != 5 || !strings.Contains(r.Stderr, "[GS-NOT-FOUND]") {
		t.Errorf("inspect of one that is gone: status %d, %s", r.Code, r.Stderr)
	}
	r = n.CLI(within(t), "events", c.id)
	if r.Err != nil || strings.Count(r.Stdout, "\n") != 2 {
		t.Errorf("its events since the restart: %s %v", r.Stdout, r.Err)
	}
}
