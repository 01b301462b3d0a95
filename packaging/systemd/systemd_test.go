// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package systemd tests the unit of the daemon. What it says to the service
// manager is tested with the daemon's command.
package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const unit = "gpushared.service"

// directives reads a unit: section and name to values.
func directives(t *testing.T) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]string)
	section := ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		default:
			k, v, ok := strings.Cut(line, "=")
			if !ok {
				t.Errorf("not an assignment: %q", line)
			}
			out[section+"."+k] = append(out[section+"."+k], v)
		}
	}
	return out
}

func TestUnit(t *testing.T) {
	d := directives(t)
	for name, want := range map[string]string{
		"Service.Type": "notify", "Service.Restart": "always", "Service.KillMode": "process",
		"Service.RuntimeDirectory": "gpushare", "Service.RuntimeDirectoryPreserve": "yes",
		"Service.ExecStart": "@BINDIR@/gpushared",
	} {
		if got := d[name]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s=%q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"Service.WatchdogSec", "Service.OOMScoreAdjust", "Service.LimitNOFILE"} {
		if len(d[name]) != 1 {
			t.Errorf("%s=%q", name, d[name])
		}
	}
	before := strings.Fields(strings.Join(d["Unit.Before"], " "))
	for _, engine := range []string{"docker.service", "containerd.service", "crio.service"} {
		if !slices.Contains(before, engine) {
			t.Errorf("not started before %s", engine)
		}
	}
	// Each of these gives the daemon a mount namespace of its own, in which its
	// mounts would be seen by nobody; the last ones close the GPUs' device nodes.
	for name := range d {
		_, key, _ := strings.Cut(name, ".")
		for _, bad := range []string{
			"PrivateMounts", "MountFlags", "PrivateTmp", "PrivateDevices", "ProtectSystem", "ProtectHome", "ProtectKernel", "ProtectControlGroups",
			"ProtectProc", "ProcSubset", "ReadOnlyPaths", "ReadWritePaths", "InaccessiblePaths", "ExecPaths", "NoExecPaths", "BindPaths", "BindReadOnlyPaths",
			"TemporaryFileSystem", "RootDirectory", "RootImage", "DynamicUser", "PrivateUsers", "ProtectHostname", "PrivateIPC",
			"ProtectClock", "DevicePolicy", "DeviceAllow",
		} {
			if strings.HasPrefix(key, bad) {
				t.Errorf("%s must not be used", key)
			}
		}
	}
}

// systemd itself understands every line.
func TestVerify(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze on this machine: the unit's words are not checked")
	}
	raw, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "gpushared")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	verify := func(text string) (string, error) {
		text = strings.NewReplacer("@BINDIR@", dir, "@DOCDIR@", "/usr/local/share/doc/gpushare").Replace(text)
		path := filepath.Join(dir, unit)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(tool, "verify", "--man=no", path).CombinedOutput()
		var own []string // it also tells of this machine's other units
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "gpushared") || strings.Contains(line, "Failed") {
				own = append(own, line)
			}
		}
		return strings.Join(own, ""), err
	}
	if out, err := verify(string(raw)); err != nil || out != "" {
		t.Errorf("%v: %s", err, out)
	}
	// It would have found a mistake.
	if out, _ := verify(strings.Replace(string(raw), "WatchdogSec=30", "WatchdogSec=soon\nWatchdogg=1", 1)); !strings.Contains(out, "sec value") || !strings.Contains(out, "Watchdogg") {
		t.Errorf("a mistake was not found: %q", out)
	}
}
