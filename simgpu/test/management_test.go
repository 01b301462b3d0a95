// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// set changes settings by the command.
func (n *node) set(values ...string) {
	n.t.Helper()
	if out, err := exec.Command(binary, append([]string{"set", "--dir", n.dir}, values...)...).CombinedOutput(); err != nil {
		n.t.Fatalf("set %v: %v %s", values, err, out)
	}
}

// figures runs the reading program and returns its figures by name.
func (n *node) figures() map[string]int {
	n.t.Helper()
	m := map[string]int{}
	for _, l := range strings.Split(n.run("management", "read"), "\n") {
		f := strings.Fields(l)
		for i := 0; i+1 < len(f); i += 2 {
			m[f[i]], _ = strconv.Atoi(f[i+1])
		}
	}
	return m
}

func TestManagement(t *testing.T) {
	n := up(t, "--gpus", "2", "--kernel-time", "k=2ms")
	n.run("management", "check")
	idle := n.figures()
	busy := n.start("load", "k", "60")
	eventually(t, func() error {
		if f := n.figures(); f["gpu"] < 50 || f["power"] < 2*idle["power"] || f["temp"] <= idle["temp"] || f["sm"] <= idle["sm"] {
			return fmt.Errorf("under load: %v, idle: %v", f, idle)
		}
		return nil
	})
	_ = busy.cmd.Process.Kill()
	n.set("--gpu", "0", "temp=95", "utilization=73", "ecc.uncorrected=2")
	f := n.figures()
	if f["temp"] != 95 || f["ecc"] != 2 || f["remapped"] != 2 || f["pending"] != 1 {
		t.Errorf("after set: %v", f)
	}
	eventually(t, func() error { // hot, so slow, from the next period on
		if f := n.figures(); f["gpu"] != 73 || f["reasons"]&0x48 != 0x48 || f["sm"] != 990 {
			return fmt.Errorf("at 95 C: %v", f)
		}
		return nil
	})
	n.set("--gpu", "all", "temp=auto", "utilization=auto")
	if f := n.figures(); f["temp"] == 95 {
		t.Errorf("after auto: %v", f)
	}
	out, err := exec.Command(binary, "set", "--dir", n.dir, "tmp=5").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "did you mean temp?") {
		t.Errorf("a misspelt setting: %v %s", err, out)
	}
	if out, err = exec.Command(binary, "set", "--help").CombinedOutput(); err != nil || !strings.Contains(string(out), "utilization.decoder") {
		t.Errorf("help: %v %s", err, out)
	}
	if out, err = exec.Command(binary, "status", "--dir", n.dir).CombinedOutput(); err != nil || !strings.Contains(string(out), "SM CLOCK") {
		t.Errorf("status: %v %s", err, out)
	}
}

func TestEventsAndLoss(t *testing.T) {
	n := up(t, "--gpus", "2")
	p := n.command("management", "events")
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	// An event that does not come ends the program, and so the test.
	defer time.AfterFunc(time.Minute, func() { _ = p.Process.Kill() }).Stop()
	lines := bufio.NewScanner(out)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("event %q, want %q", lines.Text(), want)
		}
	}
	next("ready")
	n.set("xid=31")
	next("event 8 31")
	n.set("--gpu", "1", "xid=13") // of a card that nobody asked about
	n.set("ecc.corrected=4")
	next("event 1 4")
	n.set("ecc.uncorrected=1")
	next("event 2 1")
	next("event 8 94")
	next("event 8 63")
	if out, err := exec.Command(binary, "kill-gpu", "--dir", n.dir, "--gpu", "0").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	next("event 8 79")
	_ = in.Close()
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if out := n.run("management", "handle"); !strings.Contains(out, "handle 15") {
		t.Errorf("a lost GPU: %s", out)
	}
	if out, err := exec.Command(binary, "revive-gpu", "--dir", n.dir, "--gpu", "0").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if f := n.figures(); f["ecc"] != 0 || f["remapped"] != 1 || f["pending"] != 0 {
		t.Errorf("after its return: %v", f)
	}
}

func TestLibraryOfAnotherRelease(t *testing.T) {
	n := up(t)
	n.set("library-version=mismatch")
	if out := n.run("management", "init"); !strings.Contains(out, "init 18") {
		t.Errorf("nvmlInit: %s", out)
	}
	if out, err := n.command("load", "-hold", "1", "0").CombinedOutput(); err == nil || !strings.Contains(string(out), "803") {
		t.Errorf("cuInit: %v %s", err, out)
	}
	n.set("library-version=same")
	n.run("load", "-hold", "1", "0")
}

func TestProcessMemoryNotAvailable(t *testing.T) {
	n := up(t)
	p := n.start("load", "-hold", "1000", "30")
	n.set("process-memory=unavailable")
	if out := n.run("nvml"); !strings.Contains(out, fmt.Sprintf("process %d %d\n", p.cmd.Process.Pid, ^uint64(0))) {
		t.Errorf("process list: %s", out)
	}
}

func TestComputeMode(t *testing.T) {
	n := up(t)
	n.set("compute-mode=exclusive_process")
	first := n.start("load", "-hold", "1000", "30")
	refused := func() {
		t.Helper()
		if out, err := n.command("load", "-hold", "1", "0").CombinedOutput(); err == nil || !strings.Contains(string(out), "gave 46,") {
			t.Errorf("a context that the mode forbids: %v %s", err, out)
		}
	}
	refused()
	_ = first.cmd.Process.Kill()
	_ = first.cmd.Wait()
	eventually(t, func() error {
		out, err := n.command("load", "-hold", "1", "0").CombinedOutput()
		if err != nil {
			return fmt.Errorf("alone: %w %s", err, out)
		}
		return nil
	})
	n.set("compute-mode=prohibited")
	refused()
	n.set("compute-mode=default")
	n.run("load", "-hold", "1", "0")
}

func TestMIG(t *testing.T) {
	n := up(t)
	n.run("management", "mig")
	mig := func(want string, args ...string) {
		t.Helper()
		out, err := exec.Command(binary, append([]string{"mig", args[0], "--dir", n.dir}, args[1:]...)...).CombinedOutput()
		if !strings.Contains(string(out), want) {
			t.Errorf("mig %v: %v %s, want %q", args, err, out, want)
		}
	}
	mig("", "create", "3g.40gb", "2g.20gb")
	mig("3g.40gb", "list")
	mig("no room", "create", "4g.40gb")
	mig("this card has 1g.10gb", "create", "9g.90gb")
	mig("GPU 0 has 3g.40gb at 4, 2g.20gb at 2", "destroy", "7")
	mig("", "destroy", "1", "2")
	n2 := up(t, "--mig", "3g.40gb,1g.10gb,1g.10gb", "--gpus", "2")
	for _, g := range n2.status().GPUs {
		if len(g.Instances) != 3 || g.Instances[1].SMs != 16 || !strings.HasPrefix(g.Instances[0].UUID, "MIG-") {
			t.Errorf("up --mig: %+v", g.Instances)
		}
	}
	for _, args := range [][]string{{"destroy", "--gpu", "1", "1", "2", "3"}, {"create", "--gpu", "1", "7g.80gb"}} {
		if out, err := n2.on("mig", args...); err != nil {
			t.Errorf("mig %v: %v %s", args, err, out)
		}
	}
	if g := n2.status().GPUs; len(g[0].Instances) != 3 || len(g[1].Instances) != 1 {
		t.Errorf("GPU 1 was cut anew: %+v", g)
	}
}

// TestMemoryLimits makes control groups of its own inside that of the test.
func TestMemoryLimits(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("limits of control groups need root")
	}
	n := up(t, "--memory", "8GiB", "--context-overhead", "0", "--driver", "newest")
	own, err := ownGroup()
	if err != nil {
		t.Skip("no control group to work in: ", err)
	}
	outer := filepath.Join(own, fmt.Sprintf("simgpu-test-%d", os.Getpid()))
	inner := filepath.Join(outer, "in")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Skip("cannot make a control group: ", err)
	}
	t.Cleanup(func() { _ = os.Remove(inner); _ = os.Remove(outer) })
	hold := func(bytes uint64) error {
		cmd := n.command("load", "-hold", fmt.Sprint(bytes), "0")
		cmd = withShell(cmd, "echo $$ >"+filepath.Join(inner, "cgroup.procs")+` && exec "$0" "$@"`)
		out, err := cmd.CombinedOutput()
		if err != nil && !strings.Contains(string(out), "gave 2,") {
			return fmt.Errorf("ended by another thing: %w: %s", err, out)
		}
		return err
	}
	limit := func(want string, args ...string) {
		t.Helper()
		if out := n.run("management", append([]string{"limit"}, args...)...); !strings.Contains(out, want) {
			t.Errorf("limit %v: %s, want %q", args, out, want)
		}
	}
	const none = "18446744073709551615"
	limit("get 6 ", inner)                          // none is set
	limit("set 17\n", "/nonexistent", "0", "1")     // no such group
	limit("set 17\n", t.TempDir(), "0", "1")        // a directory that is none
	limit("set 2\n", inner, "2", "1")               // soft above hard
	limit("set 2\n", inner, "0", fmt.Sprint(9*gib)) // more than there is
	limit("set 0\nget 0 soft 5 hard 1073741824 used 0", inner, "5", fmt.Sprint(gib))
	if err := hold(gib); err != nil {
		t.Errorf("as much as the limit: %v", err)
	}
	if hold(gib+1) == nil {
		t.Error("a byte more than the limit was granted")
	}
	limit("set 0\n", inner, "0", none)
	limit("set 0\n", outer, "0", fmt.Sprint(gib/2))
	if hold(gib) == nil {
		t.Error("more than the limit of the group around it was granted")
	}
	limit("set 0\n", outer, "0", none)
	if err := hold(2 * gib); err != nil {
		t.Errorf("without limits: %v", err)
	}
	// Others than root may look, not set.
	cmd := n.command("management", "limit", inner, "0", "1")
	if out, err := asNobody(cmd).CombinedOutput(); err == nil && !strings.Contains(string(out), "set 4\n") {
		t.Errorf("not root: %s", out)
	}
}

func TestGPM(t *testing.T) {
	n := up(t, "--kernel-time", "k=2ms")
	n.start("load", "k", "60")
	time.Sleep(300 * time.Millisecond)
	p := n.command("management", "gpm")
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	time.Sleep(500 * time.Millisecond)
	_, _ = fmt.Fprintln(in)
	lines.Scan()
	var busy float64
	if _, err := fmt.Sscanf(lines.Text(), "busy %f", &busy); err != nil || busy < 40 || busy > 100.5 {
		t.Errorf("%s: %v", lines.Text(), err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}
