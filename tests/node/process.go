// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a process of the node. It is known by pid and start time, so that a
// recycled pid is never taken for it; a node can be ended by another program than
// the one that started it.
type Process struct {
	Name  string `json:"name"`
	PID   int    `json:"pid"`
	Start string `json:"start"` // field 22 of /proc/PID/stat, clock ticks
	Log   string `json:"log"`

	done chan struct{} // closed when it ended, if we are its parent
}

// start runs a program in its own session, so that a terminal's Ctrl-C does not
// reach it before the node is taken down in order. Its output goes to a log file.
func (n *Node) start(name string, extraEnv []string, argv ...string) (*Process, error) {
	log := filepath.Join(n.Dir, "log", name+".log")
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer out.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), extraEnv...)
	cmd.Dir = n.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{Name: name, PID: cmd.Process.Pid, Log: log, done: make(chan struct{})}
	p.Start = startTime(p.PID)
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func startTime(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The command name, in brackets, may itself hold spaces and brackets.
	_, rest, ok := strings.Cut(string(data[strings.LastIndexByte(string(data), ')'):]), ") ")
	if !ok {
		return ""
	}
	if f := strings.Fields(rest); len(f) > 19 && f[0] != "Z" {
		return f[19]
	}
	return ""
}

// Alive says whether the process still runs.
func (p *Process) Alive() bool { return p != nil && p.Start != "" && startTime(p.PID) == p.Start }

// Kill sends SIGKILL and waits until the process is gone.
func (p *Process) Kill() error { return p.end(unix.SIGKILL, 5*time.Second) }

// Stop sends SIGTERM, waits, and sends SIGKILL to a process that does not end in time.
func (p *Process) Stop(patience time.Duration) error {
	if err := p.end(unix.SIGTERM, patience); err == nil {
		return nil
	}
	if err := p.Kill(); err != nil {
		return err
	}
	return fmt.Errorf("stop %s (pid %d): did not end within %v, killed", p.Name, p.PID, patience)
}

func (p *Process) end(sig unix.Signal, patience time.Duration) error {
	if p == nil {
		return nil
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return nil // gone
	}
	defer unix.Close(fd)
	if !p.Alive() { // checked with the descriptor in hand: the pid cannot change meaning now
		return nil
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal %s (pid %d): %w", p.Name, p.PID, err)
	}
	deadline := time.Now().Add(patience)
	for p.Alive() {
		left := time.Until(deadline)
		if left <= 0 {
			return fmt.Errorf("stop %s (pid %d): still there after %v", p.Name, p.PID, patience)
		}
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, int(left.Milliseconds())+1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for %s (pid %d): %w", p.Name, p.PID, err)
		}
	}
	if p.done != nil {
		<-p.done
	}
	return nil
}

// tail returns the last lines of the process's log.
func (p *Process) tail(lines int) string {
	data, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// ready waits until check is satisfied, the process ends, or ctx is done.
func (p *Process) ready(ctx context.Context, check func() error) error {
	var last error
	for {
		if last = check(); last == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("start %s: it ended at once; its log ends:\n%s", p.Name, p.tail(15))
		case <-ctx.Done():
			return fmt.Errorf("start %s: not ready in time: %w; its log ends:\n%s", p.Name, last, p.tail(15))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Result is what a command printed and how it ended.
type Result struct {
	Stdout, Stderr string
	Code           int // exit status; -1 if it was ended by a signal or did not start
	Err            error
}

// Run runs a command to its end, within ctx.
func Run(ctx context.Context, env []string, argv ...string) Result {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Run()
	r := Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
	if err != nil {
		r.Err = fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(r.Stderr))
	}
	return r
}

// LogTail returns the last lines of the log of the newest process called name.
func (n *Node) LogTail(name string, lines int) string {
	if p := n.process(name); p != nil {
		return p.tail(lines)
	}
	return "(never started)"
}
