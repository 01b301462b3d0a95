// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

// examine calls doctor on the node's own docker.
func examine(t *testing.T, n *node.Node, flags ...string) node.Result {
	t.Helper()
	return n.CLI(within(t), append([]string{"doctor", "--docker-socket", filepath.Join(n.Dir, "docker.sock"),
		"--containerd-socket", filepath.Join(n.Dir, "absent")}, flags...)...)
}

func TestDoctor(t *testing.T) {
	n := up(t, node.Options{})
	place(t, "build/bin/containerd-shim-gpushare-v1", n.Bin("containerd-shim-gpushare-v1"))
	lines := func(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }

	r := examine(t, n)
	if all := lines(r.Stdout); r.Code != 0 || !strings.HasPrefix(all[len(all)-1], "0 failures, ") {
		t.Fatalf("a healthy node: status %d\n%s", r.Code, r.Stdout)
	}
	if !strings.Contains(r.Stderr, "SIMULATED") || !strings.Contains(r.Stdout, "extra_driver_mounts puts ") {
		t.Errorf("the simulated driver is not shown:\n%s%s", r.Stderr, r.Stdout)
	}
	var report struct {
		APIVersion string
		Failures   int
		Checks     []struct{ Area, State, Text, Fix string }
	}
	if r = examine(t, n, "-o", "json"); r.Err != nil || json.Unmarshal([]byte(r.Stdout), &report) != nil || report.APIVersion != "gpushare/v1" || len(report.Checks) < 8 {
		t.Errorf("json: %v\n%s", r.Err, r.Stdout)
	}

	for _, c := range []struct {
		name, want, fix string
		spoil           func(t *testing.T) (repair func())
	}{
		{"daemon down", "it is not running", "fix: ", func(t *testing.T) func() {
			if err := n.Daemon().Stop(10 * time.Second); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := n.StartDaemon(within(t)); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"runtime gone", "gpushare-runtime", "fix: make install", func(t *testing.T) func() {
			return swap(t, n.Bin("gpushare-runtime"), nil)
		}},
		{"hook writable", "can be written by others", "fix: chmod go-w ", func(t *testing.T) func() {
			return mode(t, n.Bin("gpushare-hook"), 0o777)
		}},
		{"socket open", "can be used by others", "fix: chmod 0600 ", func(t *testing.T) func() {
			socket := filepath.Join(n.RunDir(), "gpushared.sock")
			if err := os.Chmod(socket, 0o666); err != nil {
				t.Fatal(err)
			}
			return func() { _ = os.Chmod(socket, 0o600) }
		}},
		{"configuration", `unknown key "rum_dir"`, "fix: gpushare config check", func(t *testing.T) func() {
			return swap(t, n.ConfigFile(), append([]byte("rum_dir = 1\n"), content(t, n.ConfigFile())...))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			repair := c.spoil(t)
			r := examine(t, n)
			repair()
			if r.Code != 1 || !strings.Contains(r.Stdout, c.want) || !strings.Contains(r.Stdout, c.fix) || strings.Contains(r.Stdout, "\n0 failures") {
				t.Errorf("status %d, want %q and %q in\n%s", r.Code, c.want, c.fix, r.Stdout)
			}
		})
	}
	if r := examine(t, n); r.Code != 0 {
		t.Errorf("after all repairs: status %d\n%s", r.Code, r.Stdout)
	}
}

// Docker before 24 takes a runtime by type, and runs plain runc for it.
func TestDoctorRuntimeType(t *testing.T) {
	n := up(t, withoutUs(func(n *node.Node, daemon map[string]any) {
		daemon["runtimes"].(map[string]any)[node.Runtime] = map[string]string{"runtimeType": "io.containerd.gpushare.v1"}
	}))
	version := strings.TrimSpace(n.Docker(within(t), "version", "--format", "{{.Server.Version}}").Stdout)
	if version >= "24" {
		t.Skipf("docker %s honours runtimeType", version)
	}
	r := examine(t, n)
	if r.Code != 1 || !strings.Contains(r.Stdout, "by runtimeType, which it ignores") {
		t.Errorf("status %d\n%s", r.Code, r.Stdout)
	}
	// What it would mean: an unlimited container that ends well.
	if run := n.Docker(within(t), "run", "--rm", "--runtime", "gpushare", "--network", "none", "-e", "GPUSHARE_MEMORY=1Gi", "small", "ls", "/run"); run.Err != nil || strings.Contains(run.Stdout, "gpushare") {
		t.Errorf("docker %s does not ignore runtimeType any more: %v %q", version, run.Err, run.Stdout)
	}
}
