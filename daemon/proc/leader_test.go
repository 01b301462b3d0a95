// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// headless makes a copy of this test binary end its first thread alone.
const headless = "GPUSHARE_TEST_HEADLESS"

func init() {
	if os.Getenv(headless) == "" {
		return
	}
	go func() {
		time.Sleep(time.Minute)
		os.Exit(0)
	}()
	time.Sleep(20 * time.Millisecond) // another thread runs it by now
	// Initialisation runs on the first thread.
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
}

// A process whose first thread has ended is alive while another runs. It is what a
// process looks like while one of its other threads calls execve: a claimant that
// turned into the runtime at that moment once lost its claim.
func TestFirstThreadEnded(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), headless+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	deadline := time.Now().Add(10 * time.Second)
	for {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if _, tail, _ := strings.Cut(string(raw), ") "); strings.HasPrefix(tail, "Z") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the first thread did not end: %s", raw)
		}
		time.Sleep(time.Millisecond)
	}
	id, err := Lookup(cmd.Process.Pid)
	if err != nil {
		t.Fatalf("Lookup: %v", err)
	}
	h, err := Open(id)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	h.Close()
	cmd.Process.Kill()
	for id.Alive() {
		if time.Now().After(deadline) {
			t.Fatal("alive after SIGKILL")
		}
		time.Sleep(time.Millisecond)
	}
}
