// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// ownGroup returns the directory of the test's own control group, in the
// hierarchy by which the host process knows groups.
func ownGroup() (string, error) {
	line, path := "", ""
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for _, l := range strings.Split(string(b), "\n") {
		f := strings.SplitN(l, ":", 3)
		if len(f) != 3 {
			continue
		}
		if f[1] == "devices" || strings.HasPrefix(f[1], "devices,") || strings.HasSuffix(f[1], ",devices") || (line == "" && f[1] == "") {
			line, path = f[1], f[2]
		}
	}
	m, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer m.Close() //nolint:errcheck // read only
	for sc := bufio.NewScanner(m); sc.Scan(); {
		head, tail, ok := strings.Cut(sc.Text(), " - ")
		f, g := strings.Fields(head), strings.Fields(tail)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		if (line == "" && g[0] == "cgroup2") || (line != "" && g[0] == "cgroup" && strings.Contains(","+g[2]+",", ",devices,")) {
			rel, err := filepath.Rel(f[3], path)
			if err != nil || strings.HasPrefix(rel, "..") {
				rel = path
			}
			return filepath.Join(f[4], rel), nil
		}
	}
	return "", errors.New("its hierarchy is not mounted")
}

// withShell runs a command after a line of shell, which ends in the command.
func withShell(cmd *exec.Cmd, line string) *exec.Cmd {
	sh := exec.Command("/bin/sh", append([]string{"-c", line}, cmd.Args...)...)
	sh.Env, sh.SysProcAttr = cmd.Env, cmd.SysProcAttr
	return sh
}

// asNobody runs a command without root's rights.
func asNobody(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return cmd
}
