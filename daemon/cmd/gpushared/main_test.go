// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// asDaemon makes the test's binary the daemon.
const asDaemon = "GPUSHARED_TEST_IS_DAEMON"

func TestMain(m *testing.M) {
	if os.Getenv(asDaemon) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type running struct {
	*exec.Cmd
	log    *lockedBuffer
	client *v1.Client
	ended  chan struct{}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// node is a place for daemons of one test: its config.toml names a driver that
// does not exist.
func node(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("the daemon runs as root only")
	}
	base := t.TempDir()
	text := fmt.Sprintf("run_dir = %q\nstate_dir = %q\nnvml_library = %q\n", filepath.Join(base, "run"), filepath.Join(base, "state"), filepath.Join(base, "none.so"))
	if err := os.WriteFile(filepath.Join(base, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return base
}

func launch(t *testing.T, base string, env ...string) *running {
	t.Helper()
	d := &running{log: &lockedBuffer{}, ended: make(chan struct{})}
	d.Cmd = exec.Command(os.Args[0], "--config", filepath.Join(base, "config.toml"))
	d.Env = append(append(os.Environ(), asDaemon+"=1"), env...)
	d.Stderr = d.log
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { d.Wait(); close(d.ended) }()
	t.Cleanup(func() { d.Process.Kill(); <-d.ended })
	d.client = v1.NewClient(filepath.Join(base, "run", v1.SocketName))
	return d
}

func (d *running) ready(t *testing.T) v1.Daemon {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		got, err := d.client.Daemon(context.Background())
		if err == nil && got.PID == d.Process.Pid {
			return got
		}
		select {
		case <-d.ended:
			t.Fatalf("the daemon ended:\n%s", d.log)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("not ready: %v\n%s", err, d.log)
		}
	}
}

func (d *running) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-d.ended:
	case <-time.After(10 * time.Second):
		t.Fatalf("did not end:\n%s", d.log)
	}
	return d.ProcessState.ExitCode()
}

func TestWithoutAGPU(t *testing.T) {
	base := node(t)
	s := newServiceManager(t, filepath.Join(base, "notify.sock"))
	d := launch(t, base, s.env()...)
	if first := s.told(t); first["READY"] != "1" || first["STATUS"] != "0 containers hold a share" {
		t.Fatalf("the service manager was told %q\n%s", first, d.log)
	}
	// It listens before it says so.
	got, err := d.client.Daemon(context.Background())
	if err != nil || len(got.GPUs) != 0 || !strings.Contains(got.Reason, "none.so") {
		t.Errorf("daemon = %+v, %v", got, err)
	}
	_, err = d.client.Claim(context.Background(), v1.ClaimRequest{
		ID: "a", Bundle: "/b", RuntimeRoot: "/r", PID: os.Getpid(), Source: v1.SourceEnv, Request: v1.Request{Memory: "8Gi"}})
	if v1.Code(err) != v1.CodeNoGPU {
		t.Errorf("claim: %v, want %s", err, v1.CodeNoGPU)
	}
}

func TestSecondInstance(t *testing.T) {
	base := node(t)
	first := launch(t, base)
	first.ready(t)
	second := launch(t, base)
	if status := second.wait(t); status != 1 || !strings.Contains(second.log.String(), "another gpushared uses") {
		t.Errorf("status %d: %s", status, second.log)
	}
	first.ready(t) // undisturbed
}

func TestSignals(t *testing.T) {
	base := node(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		d := launch(t, base)
		d.ready(t)
		d.Process.Signal(sig)
		if status := d.wait(t); status != 0 {
			t.Errorf("%v: status %d\n%s", sig, status, d.log)
		}
		if _, err := os.Lstat(d.client.Socket()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v: the socket is still there: %v", sig, err)
		}
	}
	// One that is killed leaves its socket and its lock file; the next takes both.
	d := launch(t, base)
	d.ready(t)
	d.Process.Kill()
	d.wait(t)
	if _, err := d.client.Daemon(context.Background()); v1.Code(err) != v1.CodeDaemonDown {
		t.Errorf("after a kill: %v", err)
	}
	launch(t, base).ready(t)
}

func TestCommandLine(t *testing.T) {
	base := node(t)
	bad := filepath.Join(base, "bad.toml")
	os.WriteFile(bad, []byte("run_dri = \"/x\"\n"), 0o600)
	share := filepath.Join(base, "share.toml")
	os.WriteFile(share, fmt.Appendf(nil, "run_dir = %q\n[default_share]\nmemory = \"8\"\n", filepath.Join(base, "run")), 0o600)
	for _, tc := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--config", bad}, 1, "run_dri"},
		{[]string{"--config", filepath.Join(base, "none.toml")}, 1, "none.toml"},
		{[]string{"--config", share}, 1, "default_share"},
		{[]string{"--nonsense"}, 2, "nonsense"},
		{[]string{"extra"}, 2, "extra"},
		{[]string{"--log-level", "loud"}, 2, "loud"},
	} {
		var errs bytes.Buffer
		if status := run(append([]string{"gpushared"}, tc.args...), &errs); status != tc.status || !strings.Contains(errs.String(), tc.want) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%v: %d %q, want %d and %q", tc.args, status, errs.String(), tc.status, tc.want)
		}
	}
}
