// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/proc"
)

// A container that is about to be killed gives its share back once nothing of it can
// run, although its first process stays: one that was exec'd into it has a parent
// outside that does not ask for it.
func TestShareBackBeforeReaping(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("makes a PID namespace and a control group: needs root")
	}
	w := newWorld(t)
	_, claimant := w.mustClaim("a", v1.Request{Memory: "8Gi"})
	group := newGroup(t)
	cmd := exec.Command("sh", "-c", `
		unshare --pid --fork sleep 600 & u=$!
		until first=$(cat /proc/$u/task/$u/children) && [ -n "$first" ] && first=${first% }; do kill -0 $u || exit 1; done
		echo $first >"$0" && echo "first $first"
		nsenter --target $first --pid --no-fork sh -c 'sleep 600 & echo $! >"$0" && echo parent $$; exec sleep 600' "$0" &
		wait`, group)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	pids := map[string]int{}
	for lines := bufio.NewScanner(out); len(pids) < 2 && lines.Scan(); {
		who, number, _ := strings.Cut(lines.Text(), " ")
		if pids[who], err = strconv.Atoi(number); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually("the parent is no shell any more, which would reap", func() bool {
		comm, _ := os.ReadFile("/proc/" + strconv.Itoa(pids["parent"]) + "/comm")
		return string(comm) == "sleep\n"
	})
	first, err := proc.Lookup(pids["first"])
	if err != nil {
		t.Fatal(err)
	}
	w.writeState("a", first.PID)
	end(claimant)
	w.eventually("the container starts", func() bool {
		c, err := w.m.Container(context.Background(), "a")
		return err == nil && c.Phase == v1.PhaseRunning
	})
	for range 3 {
		if err := w.m.Release("a", os.Getpid()); v1.Code(err) != v1.CodeConflict {
			t.Fatalf("release of a container that lives: %v", err)
		}
	}
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.eventually("the share goes back", func() bool { return w.gone("a") })
	if !first.Alive() {
		t.Skip("this kernel does not keep the first process: nothing to see")
	}
	w.empty()
}

// newGroup makes a control group beside ours and returns its file of processes.
func newGroup(t *testing.T) string {
	t.Helper()
	self, err := proc.GroupOf(os.Getpid())
	if err != nil {
		t.Skipf("no control groups here: %v", err)
	}
	root := "/sys/fs/cgroup"
	if self.Hierarchy != "" {
		root = filepath.Join(root, self.Hierarchy)
	}
	dir := filepath.Join(root, self.Path, "gpushare-hurry-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("control groups cannot be made here: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	return filepath.Join(dir, "cgroup.procs")
}
