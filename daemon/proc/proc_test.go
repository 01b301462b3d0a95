// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// sleeper starts a process that stays until the test kills it.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func TestHandleWaitsForTheEnd(t *testing.T) {
	cmd := sleeper(t)
	id, err := Lookup(cmd.Process.Pid)
	if err != nil || !id.Alive() {
		t.Fatalf("Lookup = %+v, %v; alive %v", id, err, id.Alive())
	}
	h, err := Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ended := make(chan error, 1)
	go func() { ended <- h.Wait(context.Background()) }()
	select {
	case err := <-ended:
		t.Fatalf("Wait returned %v while the process lived", err)
	case <-time.After(50 * time.Millisecond):
	}
	cmd.Process.Kill()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("Wait did not return")
	}
	if id.Alive() {
		t.Error("a zombie counts as alive")
	}
	cmd.Wait()
	if _, err := Open(id); !errors.Is(err, ErrGone) {
		t.Errorf("Open after the end: %v, want ErrGone", err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	id, err := Lookup(sleeper(t).Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Wait(ctx) }()
	time.Sleep(10 * time.Millisecond)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("Wait: %v, want context.Canceled", err)
	}
}

func TestOpenRefusesAnotherProcessOfThatPID(t *testing.T) {
	id, err := Lookup(sleeper(t).Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	id.Start++
	if _, err := Open(id); !errors.Is(err, ErrGone) {
		t.Errorf("Open with another start time: %v, want ErrGone", err)
	}
	if (ID{}).Alive() {
		t.Error("no process is alive")
	}
}

func TestParseStatWithHostileName(t *testing.T) {
	tail := "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21"
	got, err := parseStat([]byte("7 (a) R 9 (b) ) " + tail))
	if want := (status{start: 4242, state: 'S', threads: 17, flags: 6}); err != nil || got != want {
		t.Fatalf("parseStat = %+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"", "7 (a", "7 (a) S 1 2", "7 (a) SS " + tail[2:], "7 (a) " + strings.Replace(tail, "4242", "x", 1)} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("parseStat(%q) succeeded", bad)
		}
	}
}

func TestParseGroup(t *testing.T) {
	for text, want := range map[string]Group{
		"3:cpu,cpuacct:/x\n2:devices:/docker/a\n1:pids:/b\n0::/c\n": {"devices", "/docker/a"},
		"1:pids:/b:c d\n0::/c\n":                                    {"pids", "/b:c d"},
		"0::/system.slice/docker-a.scope\n":                         {"", "/system.slice/docker-a.scope"},
		"garbage\n::\n1:devices:relative\n":                         {},
	} {
		if got := parseGroup(text); got != want {
			t.Errorf("parseGroup(%q) = %+v, want %+v", text, got, want)
		}
	}
	if (Group{Hierarchy: "pids", Path: "/"}).Usable() {
		t.Error("the root group tells containers apart")
	}
}

// The tree finds a real group's processes, in groups below it too.
func TestTreeProcesses(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("makes a control group: needs root")
	}
	tree, err := OpenTree()
	if err != nil {
		t.Fatal(err)
	}
	self, err := GroupOf(os.Getpid())
	if err != nil {
		t.Skipf("no control groups here: %v", err)
	}
	g := Group{self.Hierarchy, filepath.Join(self.Path, fmt.Sprintf("gpushare-test-%d", os.Getpid()))}
	dir := filepath.Join(tree.roots[g.Hierarchy], g.Path, "below")
	if pids, err := tree.Processes(g); err != nil || len(pids) != 0 {
		t.Fatalf("a group that does not exist: %v, %v", pids, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Skipf("control groups cannot be made here: %v", err)
	}
	t.Cleanup(func() { os.Remove(dir); os.Remove(filepath.Dir(dir)) })
	cmd := sleeper(t)
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Appendf(nil, "%d", cmd.Process.Pid), 0); err != nil {
		t.Skipf("processes cannot be moved here: %v", err)
	}
	if got, err := GroupOf(cmd.Process.Pid); err != nil || got.Path != filepath.Join(g.Path, "below") {
		t.Errorf("GroupOf = %+v, %v", got, err)
	}
	if pids, err := tree.Processes(g); err != nil || !slices.Equal(pids, []int{cmd.Process.Pid}) {
		t.Errorf("Processes = %v, %v, want [%d]", pids, err, cmd.Process.Pid)
	}
}

func TestHasMount(t *testing.T) {
	const info = `30 1 0:25 / /run/gpushare/c/a rw - tmpfs tmpfs rw
31 1 0:26 / /run/gpushare ro,nosuid - tmpfs tmpfs rw
32 1 0:27 / /with\040blank/run/gpushare rw - tmpfs tmpfs rw
33 1 0:29 / /host/run/gpushare/c/b rw - tmpfs tmpfs rw
broken 0:28 line
`
	for _, tc := range []struct {
		device string
		want   bool
	}{{"0:25", false}, {"0:26", true}, {"0:27", true}, {"0:29", false}, {"0:28", false}, {"0:2", false}} {
		if got := hasMount(info, tc.device, "/run/gpushare"); got != tc.want {
			t.Errorf("hasMount(%s) = %v, want %v", tc.device, got, tc.want)
		}
	}
	if !hasMount(info, "0:27", "/with blank/run/gpushare") {
		t.Error("the escape in a mount point was not undone")
	}
}

func TestRuntimeInit(t *testing.T) {
	root := t.TempDir()
	cmd := sleeper(t)
	id, err := Lookup(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, file, text string) {
		t.Helper()
		os.MkdirAll(filepath.Join(root, name), 0o700)
		if err := os.WriteFile(filepath.Join(root, name, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("runc", "state.json", fmt.Sprintf(`{"id":"runc","init_process_pid":%d,"init_process_start":%d,"config":{}}`, id.PID, id.Start))
	put("crun", "status", fmt.Sprintf(`{"pid":%d,"process-start-time":%d}`, id.PID, id.Start))
	put("reused", "state.json", fmt.Sprintf(`{"init_process_pid":%d,"init_process_start":%d}`, id.PID, id.Start+1))
	for _, name := range []string{"runc", "crun"} {
		if got, err := RuntimeInit(root, name); err != nil || got != id {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, id)
		}
	}
	if _, err := RuntimeInit(root, "reused"); !errors.Is(err, ErrGone) {
		t.Errorf("a PID that was taken again: %v, want ErrGone", err)
	}
	if _, err := RuntimeInit(root, "none"); !errors.Is(err, ErrNoState) {
		t.Errorf("no state: %v, want ErrNoState", err)
	}
	for i, text := range []string{"", "{", "null", "[]", `{"init_process_pid":-1}`, `{"init_process_pid":"x"}`,
		`{"init_process_pid":99999999999}`, `{"init_process_pid":1.5}`, `{"init_process_pid":{}}`, `{"pid":0}`,
		`{"init_process_pid":1,"init_process_start":-3}`, strings.Repeat("[", 100000)} {
		put("bad", "state.json", text)
		if got, err := RuntimeInit(root, "bad"); err == nil {
			t.Errorf("hostile state %d: %+v", i, got)
		}
	}
	os.Remove(filepath.Join(root, "bad", "state.json"))
	os.Symlink(filepath.Join(root, "runc", "state.json"), filepath.Join(root, "bad", "state.json"))
	if _, err := RuntimeInit(root, "bad"); err == nil {
		t.Error("a link was followed")
	}
	for _, id := range []string{"", ".", "..", "a/b", "../x", "a\x00b", strings.Repeat("a", 129), "ä"} {
		if _, err := RuntimeInit(root, id); !errors.Is(err, ErrBadID) {
			t.Errorf("id %q: %v, want ErrBadID", id, err)
		}
	}
}
