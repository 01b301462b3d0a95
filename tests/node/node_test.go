// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func repo(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// A private engine runs a container and leaves no process, mount, cgroup or file.
func TestEngineLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("an engine needs root")
	}
	if _, err := exec.LookPath("dockerd"); err != nil {
		t.Skip("no dockerd on PATH; make host-setup installs one")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp(Base, "gpushare-test-")
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{Dir: dir}
	closed := false
	defer func() {
		if !closed {
			_ = n.Close()
		}
	}()
	for _, d := range []string{"log", "docker"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.startEngine(ctx); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(dir, "image")
	if err := SmallImage(ctx, repo(t), image); err != nil {
		t.Fatal(err)
	}
	if err := n.Import(ctx, image, "small"); err != nil {
		t.Fatal(err)
	}
	if r := n.Docker(ctx, "run", "--rm", "--network", "none", "small", "echo", "hello"); r.Stdout != "hello\n" {
		t.Errorf("docker run printed %q: %v", r.Stdout, r.Err)
	}
	// Left running on purpose: Close ends it.
	if r := n.Docker(ctx, "run", "-d", "--network", "none", "small", "sleep", "1000"); r.Err != nil {
		t.Error(r.Err)
	}
	loaded, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	procs := n.Processes
	closed = true
	if err := loaded.Close(); err != nil { // as another program would
		t.Errorf("close: %v", err)
	}
	for _, p := range procs {
		if p.Alive() {
			t.Errorf("%s (pid %d) is still there", p.Name, p.PID)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	if n.Mounts("") != 0 {
		t.Errorf("mounts are left below %s", dir)
	}
	for _, c := range []string{"/sys/fs/cgroup/devices", "/sys/fs/cgroup"} {
		if _, err := os.Stat(c + n.cgroupParent()); err == nil {
			t.Errorf("cgroup %s%s is still there", c, n.cgroupParent())
		}
	}
}

func TestStartTimeOfOwnProcess(t *testing.T) {
	if startTime(os.Getpid()) == "" || startTime(1<<30) != "" {
		t.Error("start time of this process not found, or one found of none")
	}
}

// A node whose parts are not built says so, and leaves nothing.
func TestStartSaysWhatIsMissing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a node needs root")
	}
	dir := filepath.Join(t.TempDir(), "node")
	n, err := Start(context.Background(), Options{Root: t.TempDir(), Dir: dir, NoEngine: true})
	if n != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("start without a build gave %v, %v", n, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its directory is still there: %v", err)
	}
}
