// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// serviceManager is the end of systemd's notification protocol that listens.
type serviceManager struct {
	conn *net.UnixConn
	path string
}

func newServiceManager(t *testing.T, path string) *serviceManager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &serviceManager{conn, path}
}

func (s *serviceManager) env() []string { return []string{"NOTIFY_SOCKET=" + s.path} }

// told returns the next message.
func (s *serviceManager) told(t *testing.T) map[string]string {
	t.Helper()
	b := make([]byte, 4096)
	s.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := s.conn.Read(b)
	if err != nil {
		t.Fatalf("the service manager was told nothing: %v", err)
	}
	out := make(map[string]string)
	for line := range strings.SplitSeq(string(b[:n]), "\n") {
		k, v, ok := strings.Cut(line, "=")
		if !ok {
			t.Errorf("not an assignment: %q", line)
		}
		out[k] = v
	}
	return out
}

// The watchdog hears from a daemon that works, in less than half of the time that
// it allows, and the service manager hears of its end.
func TestWatchdog(t *testing.T) {
	base := node(t)
	s := newServiceManager(t, filepath.Join(base, "notify.sock"))
	const allowed = 3 * time.Second
	d := launch(t, base, append(s.env(), fmt.Sprintf("WATCHDOG_USEC=%d", allowed.Microseconds()))...)
	if first := s.told(t); first["READY"] != "1" || first["WATCHDOG"] != "" {
		t.Fatalf("told %q first", first)
	}
	last := time.Now()
	for i := range 4 {
		msg := s.told(t)
		if msg["WATCHDOG"] != "1" || msg["STATUS"] == "" {
			t.Errorf("told %q", msg)
		}
		if took := time.Since(last); took >= allowed/2 {
			t.Errorf("message %d after %v, %v are allowed", i, took, allowed)
		}
		last = time.Now()
	}
	// One that is stopped is as good as one that hangs.
	d.Process.Signal(syscall.SIGSTOP)
	s.conn.SetReadDeadline(time.Now().Add(allowed))
	b := make([]byte, 4096)
	told := 0
	for ; told < 10; told++ {
		if _, err := s.conn.Read(b); err != nil {
			break
		}
	}
	if told > 1 { // one may have been on its way
		t.Errorf("%d messages of a daemon that is stopped", told)
	}
	d.Process.Signal(syscall.SIGCONT)
	d.Process.Signal(syscall.SIGTERM)
	for {
		msg := s.told(t)
		if msg["STOPPING"] == "1" {
			break
		}
		if msg["WATCHDOG"] != "1" {
			t.Errorf("told %q before the end", msg)
		}
	}
	if status := d.wait(t); status != 0 {
		t.Errorf("status %d\n%s", status, d.log)
	}
	// Meant for another process.
	t.Setenv("WATCHDOG_USEC", "1000000")
	t.Setenv("WATCHDOG_PID", "1")
	if got := watchdog(); got != 0 {
		t.Errorf("another's watchdog: %v", got)
	}
	t.Setenv("WATCHDOG_PID", fmt.Sprint(os.Getpid()))
	if got := watchdog(); got != time.Second {
		t.Errorf("own watchdog: %v", got)
	}
}

// A daemon that does not answer leaves the watchdog alone, and says why.
func TestGuardOfAWedgedDaemon(t *testing.T) {
	var wedged atomic.Bool
	told := make(chan string)
	g := &guard{
		every: 10 * time.Millisecond, log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		status: func() string { return "well" },
		health: func(ctx context.Context) error {
			if wedged.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		},
		notify: func(state ...string) error { told <- strings.Join(state, "\n"); return nil },
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.run(ctx) }()
	if got := <-told; got != "WATCHDOG=1\nSTATUS=well" {
		t.Errorf("told %q", got)
	}
	wedged.Store(true)
	<-told // of before, or the first of after
	for range 5 {
		if got := <-told; strings.Contains(got, "WATCHDOG") || !strings.HasPrefix(got, "STATUS=no progress: ") {
			t.Errorf("told %q", got)
		}
	}
	wedged.Store(false)
	for got := ""; got != "WATCHDOG=1\nSTATUS=well"; got = <-told { //nolint:revive // until it says so
	}
	cancel()
	for {
		select {
		case <-told:
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}

// A daemon whose run directory was taken away under it ends, so that the service
// manager starts one that can be reached; one that does not read its lock any
// more would let a second one in.
func TestRunDirectoryTakenAway(t *testing.T) {
	for name, take := range map[string]func(run string) error{
		"all":      os.RemoveAll,
		"socket":   func(run string) error { return os.Remove(filepath.Join(run, v1.SocketName)) },
		"replaced": func(run string) error { return replace(filepath.Join(run, v1.SocketName)) },
		"lock":     func(run string) error { return os.Remove(filepath.Join(run, lockName)) },
	} {
		t.Run(name, func(t *testing.T) {
			base := node(t)
			d := launch(t, base, "WATCHDOG_USEC=300000")
			d.ready(t)
			run := filepath.Join(base, "run")
			if err := take(run); err != nil {
				t.Fatal(err)
			}
			if status := d.wait(t); status != 1 || !strings.Contains(d.log.String(), "removed or replaced") {
				t.Errorf("status %d\n%s", status, d.log)
			}
			if _, err := os.Lstat(filepath.Join(run, v1.SocketName)); name == "replaced" && err != nil {
				t.Errorf("took another's socket away: %v", err)
			}
			launch(t, base).ready(t)
		})
	}
}

// replace puts another socket in the place of one, as a second daemon would.
func replace(path string) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path + ".other", Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	return errors.Join(os.Rename(path+".other", path), l.Close())
}
