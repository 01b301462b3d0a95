// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The first process of a PID namespace that has been killed stays for as long as a
// process that was put into the namespace from outside is not reaped by its parent.
// It is alive by its state, but ends.
func TestEnding(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("makes a PID namespace: needs root")
	}
	// "first" is the namespace's first process. The second sleep, in the namespace, has
	// the third for its parent, which never asks for it.
	cmd := exec.Command("sh", "-c", `
		unshare --pid --fork sleep 1000 & u=$!
		until first=$(cat /proc/$u/task/$u/children) && [ -n "$first" ] && first=${first% }; do kill -0 $u || exit 1; done
		nsenter --target $first --pid --no-fork sh -c 'sleep 1000 & echo parent $$; exec sleep 1000' &
		echo "first $first"
		wait`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}()
	pids := map[string]int{}
	lines := bufio.NewScanner(out)
	for len(pids) < 2 && lines.Scan() {
		who, number, _ := strings.Cut(lines.Text(), " ")
		if pids[who], err = strconv.Atoi(number); err != nil {
			t.Fatal(err)
		}
	}
	first, deadline := pids["first"], time.Now().Add(10*time.Second)
	for comm := ""; comm != "sleep\n"; { // a shell would ask for its child
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pids["parent"]) + "/comm")
		if comm = string(raw); err != nil || time.Now().After(deadline) {
			t.Fatalf("the parent is %q, %v", comm, err)
		}
	}
	id, err := Lookup(first)
	if err != nil {
		t.Fatal(err)
	}
	if id.Ending() {
		t.Fatal("a process that runs is said to end")
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for !id.Ending() {
		if time.Now().After(deadline) {
			t.Fatal("never said to end")
		}
		time.Sleep(time.Millisecond)
	}
	if !id.Alive() {
		t.Skip("this kernel does not keep the first process: nothing to see")
	}
}
