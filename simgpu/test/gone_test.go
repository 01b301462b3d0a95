// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gpushare/gpushare/simgpu/host"
)

// TestHostProcessIsKilled ends the host process by SIGKILL while one program
// waits and one only asks: both learn of it, as does what they call then, and
// the node can be brought up again in its place.
func TestHostProcessIsKilled(t *testing.T) {
	dir := t.TempDir()
	args := []string{"up", "--dir", dir, "--lib-dir", filepath.Join(build, "lib"), "--kernel-time", "k=1h"}
	begin := func() (*exec.Cmd, *node) {
		cmd := exec.Command(binary, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		n := &node{t: t, dir: dir, admin: host.NewAdminClient(filepath.Join(dir, "admin.sock")), pid: cmd.Process.Pid}
		eventually(t, func() error {
			_, err := n.admin.Status(context.Background())
			return err
		})
		return cmd, n
	}
	up, n := begin()
	defer func() { _ = up.Process.Kill(); _ = up.Wait() }()
	waits, asks := n.caller("init", "context"), n.caller("init", "context")
	for _, c := range []*caller{waits, asks} {
		c.want("launch", "0")
	}
	asks.want("query", "600")
	if _, err := fmt.Fprintln(waits.in, "sync"); err != nil {
		t.Fatal(err)
	}
	_ = up.Process.Signal(syscall.SIGKILL)
	_ = up.Wait()
	if got := waits.answer(); !strings.HasPrefix(got, "999 ") {
		t.Errorf("the wait ended with %q, want 999", got)
	}
	eventually(t, func() error {
		if got := asks.ask("query"); got != "999" {
			return fmt.Errorf("cuStreamQuery says %s", got)
		}
		return nil
	})
	for _, c := range []*caller{waits, asks} {
		for _, call := range []string{"query", "launch", "sync", "alloc", "info"} {
			if got := c.results(call, 1)[0]; got != "999" {
				t.Errorf("%s says %s after the end, want 999", call, got)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "run", "sock")); err != nil {
		t.Errorf("SIGKILL has left no socket to be replaced: %v", err)
	}
	again, n := begin()
	n.caller("init", "context").want("launch", "0")
	if out, err := exec.Command(binary, "down", "--dir", dir).CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
	_ = again.Wait()
}
