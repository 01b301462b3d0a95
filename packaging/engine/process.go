// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is a running engine.
type process struct {
	pid  int
	exe  string // as the kernel names it
	args []string
}

// listener returns the process that listens on a unix socket. With socket
// activation that is not the engine but whoever opened the socket for it.
func listener(ctx context.Context, socket string) (*process, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("not a unix socket")
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	if credErr != nil {
		return nil, credErr
	}
	return processOf(int(cred.Pid))
}

func processOf(pid int) (*process, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	exe, err := os.Readlink(filepath.Join(dir, "exe"))
	if err != nil {
		return nil, fmt.Errorf("look at process %d: %w", pid, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return nil, fmt.Errorf("look at process %d: %w", pid, err)
	}
	// An upgraded program's old file is gone; the new one is at the same path.
	exe = strings.TrimSuffix(exe, " (deleted)")
	return &process{pid: pid, exe: exe, args: strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")}, nil
}

// byPIDFile returns the process that a pid file names, if it is called name.
func byPIDFile(path, name string) (*process, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return nil, fmt.Errorf("%s has no pid", path)
	}
	p, err := processOf(pid)
	if err != nil {
		return nil, err
	}
	if !p.is(name) {
		return nil, fmt.Errorf("process %d of %s is %s, not %s", pid, path, p.exe, name)
	}
	return p, nil
}

func (p *process) is(name string) bool { return filepath.Base(p.exe) == name }

// flag returns the value of a flag on the process's command line, in any of the
// forms -name value, --name value and --name=value.
func (p *process) flag(names ...string) (string, bool) {
	for i, a := range p.args {
		bare := strings.TrimLeft(a, "-")
		if i == 0 || bare == a {
			continue
		}
		for _, n := range names {
			if bare == n && i+1 < len(p.args) {
				return p.args[i+1], true
			}
			if v, ok := strings.CutPrefix(bare, n+"="); ok {
				return v, true
			}
		}
	}
	return "", false
}

// env returns a variable of the environment that the process was started with.
func (p *process) env(name string) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "environ"))
	if err != nil {
		return ""
	}
	for v := range strings.SplitSeq(string(text), "\x00") {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}
