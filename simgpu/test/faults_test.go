// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gpushare/gpushare/simgpu/api"
	"github.com/gpushare/gpushare/simgpu/fault"
)

// caller is a running program faults.
type caller struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
	err strings.Builder
}

// caller starts the program; commands are made before anything else.
func (n *node) caller(commands ...string) *caller {
	n.t.Helper()
	c := &caller{t: n.t, cmd: n.command("faults")}
	c.cmd.Stderr = &c.err
	in, err := c.cmd.StdinPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.cmd.Process.Signal(syscall.SIGKILL); _ = c.cmd.Wait() })
	c.in, c.out = in, bufio.NewScanner(out)
	if got := c.answer(); got != "ready" {
		n.t.Fatalf("the program says %q: %s", got, c.err.String())
	}
	for _, s := range commands {
		c.want(s, "0")
	}
	return c
}

func (c *caller) answer() string {
	c.t.Helper()
	if !c.out.Scan() {
		_ = c.cmd.Wait()
		c.t.Fatalf("the program ended: %v %s", c.cmd.ProcessState, c.err.String())
	}
	return c.out.Text()
}

func (c *caller) ask(command string) string {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, command); err != nil {
		c.t.Fatal(err)
	}
	return c.answer()
}

func (c *caller) want(command, want string) {
	c.t.Helper()
	if got := c.ask(command); got != want {
		c.t.Errorf("%s gave %q, want %q", command, got, want)
	}
}

// results makes a call n times and returns the first word of each answer.
func (c *caller) results(command string, n int) (out []string) {
	c.t.Helper()
	for range n {
		first, _, _ := strings.Cut(c.ask(command), " ")
		out = append(out, first)
	}
	return out
}

func (n *node) pidOf(c *caller) int { return c.cmd.Process.Pid }

// fail runs simgpu fail and returns what it printed.
func (n *node) fail(args ...string) (string, error) {
	out, err := exec.Command(binary, append([]string{"fail", "--dir", n.dir}, args...)...).CombinedOutput()
	return string(out), err
}

func (n *node) mustFail(args ...string) {
	n.t.Helper()
	if out, err := n.fail(args...); err != nil {
		n.t.Fatalf("fail %v: %v: %s", args, err, out)
	}
}

func (n *node) clear() {
	n.t.Helper()
	n.mustFail("--clear")
}

func (n *node) rules() []fault.Rule {
	n.t.Helper()
	rules, err := n.admin.Faults(context.Background())
	if err != nil {
		n.t.Fatal(err)
	}
	return rules
}

// Which calls fail: the nth, each so-manieth, so many of them.
func TestFaultWhen(t *testing.T) {
	n := up(t)
	c := n.caller("init", "context 0")
	for _, tc := range []struct {
		flags string
		want  string
	}{
		{"--nth 7", "0 0 0 0 0 0 2 0 0 0"},
		{"--every 3", "0 0 2 0 0 2 0 0 2 0"},
		{"--nth 2 --every 4", "0 2 0 0 0 2 0 0 0 2"},
		{"--count 2", "2 2 0 0 0 0 0 0 0 0"},
		{"--nth 4 --count 3", "0 0 0 2 2 2 0 0 0 0"},
		{"--every 2 --count 2", "0 2 0 2 0 0 0 0 0 0"},
		{"", "2 2 2 2 2 2 2 2 2 2"},
	} {
		n.mustFail(append([]string{"--call", "cuMemAlloc", "--rc", "2"}, strings.Fields(tc.flags)...)...)
		if got := strings.Join(c.results("alloc", 10), " "); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.flags, got, tc.want)
		}
		n.clear()
	}
	if got := c.results("alloc", 2); !slices.Equal(got, []string{"0", "0"}) {
		t.Errorf("without a rule: %v", got)
	}
}

// What becomes of the results of a call that fails.
func TestFaultOutputs(t *testing.T) {
	n := up(t, "--context-overhead", "1MiB")
	c := n.caller("init", "context 0", "nvmlinit")
	n.mustFail("--call", "cuMemAlloc", "--rc", "CUDA_ERROR_OUT_OF_MEMORY")
	c.want("alloc", "2 1111111111111111")
	n.clear()
	n.mustFail("--call", "cuMemAlloc", "--rc", "2", "--outputs", "garbage")
	c.want("alloc", "2 a5a5a5a5a5a5a5a5")
	n.clear()
	if u := n.used(); u != mib {
		t.Fatalf("%d bytes in use: a call that was not to be made was made", u)
	}
	n.mustFail("--call", "cuMemAlloc", "--rc", "2", "--outputs", "written")
	if got := c.ask("alloc"); !strings.HasPrefix(got, "2 ") || strings.Contains(got, "1111") || strings.Contains(got, "a5a5") {
		t.Errorf("a call that was made and says otherwise gave %q", got)
	}
	n.clear()
	if u := n.used(); u != 2*mib {
		t.Errorf("%d bytes in use, want the context's and one allocation", u)
	}
	// Both results of a call; a call with eleven arguments; one that says success falsely.
	n.mustFail("--call", "cuMemGetInfo", "--rc", "999", "--outputs", "garbage")
	c.want("info", "999 a5a5a5a5a5a5a5a5 a5a5a5a5a5a5a5a5")
	n.clear()
	n.mustFail("--call", "cuLaunchKernel", "--rc", "719", "--outputs", "written")
	c.want("launch", "719")
	if p := n.status().Processes; len(p) != 1 || p[0].Launches != 1 {
		t.Errorf("a launch that was made and says otherwise: %+v", p)
	}
	n.clear()
	n.mustFail("--call", "nvmlDeviceGetMemoryInfo", "--rc", "NVML_ERROR_GPU_IS_LOST", "--outputs", "garbage")
	c.want("nvmlmem 0", "15 a5a5a5a5a5a5a5a5")
	n.clear()
	// Success, but nonsense; the call itself is made, and may fail by itself.
	n.mustFail("--call", "nvmlDeviceGetMemoryInfo", "--rc", "0", "--outputs", "garbage")
	c.want("nvmlmem 0", "0 a5a5a5a5a5a5a5a5")
	n.clear()
	n.mustFail("--call", "cuLaunchKernel", "--rc", "0", "--outputs", "garbage")
	c.want("launch", "0")
	if p := n.status().Processes; len(p) != 1 || p[0].Launches != 2 {
		t.Errorf("a launch that says success was not made: %+v", p)
	}
	n.clear()
	n.mustFail("--call", "cuMemGetInfo", "--rc", "0", "--outputs", "garbage")
	c.want("info", "0 a5a5a5a5a5a5a5a5 a5a5a5a5a5a5a5a5")
	n.caller().want("info", "3 1111111111111111 1111111111111111") // not initialised: no success
	n.clear()
	n.mustFail("--call", "nvmlDeviceGetMemoryInfo", "--rc", "15")
	c.want("nvmlmem 0", "15 1111111111111111")
	n.clear()
	c.want("nvmlmem 0", fmt.Sprintf("0 %x", 2*mib))
}

// Whose calls fail: of a GPU, a process, a control group; counted together or apart.
func TestFaultWhose(t *testing.T) {
	n := up(t, "--gpus", "2")
	a, b := n.caller("init", "context 0", "nvmlinit"), n.caller("init", "context 1", "nvmlinit")
	n.mustFail("--call", "cuMemGetInfo", "--rc", "1", "--gpu", "1")
	n.mustFail("--call", "nvmlDeviceGetMemoryInfo", "--rc", "3", "--gpu", "1")
	for _, tc := range []struct {
		c             *caller
		command, want string
	}{{a, "info", "0"}, {b, "info", "1"}, {a, "nvmlmem 0", "0"}, {a, "nvmlmem 1", "3"}} {
		if got := tc.c.results(tc.command, 1)[0]; got != tc.want {
			t.Errorf("%s gave %s, want %s", tc.command, got, tc.want)
		}
	}
	if r := n.rules(); r[0].Calls != 1 || r[0].Hits != 1 {
		t.Errorf("calls about another GPU are counted: %+v", r[0])
	}
	n.clear()
	n.mustFail("--call", "cuMemGetInfo", "--rc", "1", "--pid", fmt.Sprint(n.pidOf(b)))
	if x, y := a.results("info", 1)[0], b.results("info", 1)[0]; x != "0" || y != "1" {
		t.Errorf("by process: %s and %s", x, y)
	}
	n.clear()
	path := n.status().Processes[0].Cgroup
	n.mustFail("--call", "cuMemGetInfo", "--rc", "1", "--cgroup", path, "--count", "1")
	n.mustFail("--call", "cuMemGetInfo", "--rc", "2", "--cgroup", "/no/such/group")
	if got := a.results("info", 2); !slices.Equal(got, []string{"1", "0"}) {
		t.Errorf("by control group %q: %v", path, got)
	}
	n.clear()
	n.mustFail("--call", "cuMemGetInfo", "--rc", "1", "--nth", "2")
	if x, y := a.results("info", 1)[0], b.results("info", 2); x != "0" || !slices.Equal(y, []string{"1", "0"}) {
		t.Errorf("counted together: %v, then %v", x, y)
	}
	n.clear()
	n.mustFail("--call", "cuMemGetInfo", "--rc", "1", "--nth", "2", "--per-process")
	if x, y := a.results("info", 3), b.results("info", 3); !slices.Equal(x, []string{"0", "1", "0"}) || !slices.Equal(y, x) {
		t.Errorf("counted apart: %v and %v", x, y)
	}
}

// Counting is exact, however many call at once.
func TestFaultCountIsExact(t *testing.T) {
	n := up(t)
	n.mustFail("--call", "cuMemGetInfo", "--rc", "1", "--every", "7")
	const processes, threads, calls = 3, 4, 70
	all := 0
	var cs []*caller
	for range processes {
		cs = append(cs, n.caller("init", "context 0"))
	}
	for _, c := range cs {
		if _, err := fmt.Fprintf(c.in, "storm %d %d\n", threads, calls); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range cs {
		var failed int
		if _, err := fmt.Sscanf(c.answer(), "%d failed", &failed); err != nil {
			t.Fatal(err)
		}
		all += failed
	}
	r := n.rules()[0]
	if want := processes * threads * calls; all != want/7 || int(r.Hits) != all || int(r.Calls) != want {
		t.Errorf("%d calls failed of %d, the rule says %d of %d, want one in seven", all, want, r.Hits, r.Calls)
	}
}

// A slow call succeeds, late; the delay is of the call, not of others.
func TestFaultDelay(t *testing.T) {
	n := up(t)
	c := n.caller("init", "context 0")
	var rc int
	var s float64
	n.mustFail("--call", "cuCtxSynchronize", "--delay", "150ms", "--count", "1")
	if _, err := fmt.Sscanf(c.ask("sync"), "%d %f", &rc, &s); err != nil || rc != 0 || s < 0.15 {
		t.Errorf("a slow call gave %d after %f s, %v", rc, s, err)
	}
	slow := s
	if _, err := fmt.Sscanf(c.ask("sync"), "%d %f", &rc, &s); err != nil || rc != 0 || s > slow/2 {
		t.Errorf("the next one gave %d after %f s, %v", rc, s, err)
	}
	n.mustFail("--call", "cuCtxSynchronize", "--delay", "150ms", "--rc", "700")
	if _, err := fmt.Sscanf(c.ask("sync"), "%d %f", &rc, &s); err != nil || rc != 700 || s < 0.15 {
		t.Errorf("a slow call that fails gave %d after %f s, %v", rc, s, err)
	}
}

// Every exported name of both libraries can be made to fail, and none crashes
// the program.
func TestFaultEveryName(t *testing.T) {
	for _, d := range []string{"450", "", "newest"} {
		driver, err := api.FindDriver(d)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(driver.Branch, func(t *testing.T) {
			cuda, nvml := driver.Names()
			names := slices.DeleteFunc(append(cuda, nvml...), func(name string) bool {
				return strings.HasPrefix(name, "cudbg") || name == "nvmlErrorString"
			})
			n := up(t, "--driver", driver.Branch)
			// Not more rules at once than a node takes.
			for len(names) > 0 {
				some := names[:min(len(names), 200)]
				names = names[len(some):]
				for i, name := range some {
					outputs := []string{"untouched", "garbage"}[i%2]
					_, err := n.admin.AddFault(context.Background(), fault.Spec{Call: "=" + name, RC: fault.Text(fmt.Sprint(2000 + i)), Outputs: outputs})
					if err != nil {
						t.Fatal(err)
					}
				}
				c := n.caller()
				for i, name := range some {
					c.want("any "+name, fmt.Sprintf("%s %d", name, 2000+i))
				}
				n.clear()
			}
		})
	}
}

// Rules of a file are in force before a program starts.
func TestFaultFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faults.yaml")
	text := "faults:\n- call: cuInit\n  rc: CUDA_ERROR_SYSTEM_NOT_READY\n  count: 2\n- {call: nvmlInit, rc: 9, nth: 2}\n- {call: cuDriverGetVersion, rc: 999, outputs: garbage, count: 1}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n := up(t, "--faults", path)
	c := n.caller()
	c.want("version", "999 a5a5a5a5 -1515870811")
	c.want("version", "0 2f3a 12090")
	c.want("init", "802")
	c.want("init", "802")
	c.want("init", "0")
	c.want("nvmlinit", "0")
	c.want("nvmlinit", "9")
	c.want("nvmlinit", "0")
	out, err := n.fail("--list")
	if err != nil || !strings.Contains(out, "cuInit") || !strings.Contains(out, "CUDA_ERROR_SYSTEM_NOT_READY") {
		t.Errorf("%v: %s", err, out)
	}
	if r := n.rules(); len(r) != 3 || r[0].Hits != 2 || r[0].Calls != 3 || r[1].Hits != 1 {
		t.Errorf("rules: %+v", r)
	}
	n.mustFail("--clear", "2")
	if r := n.rules(); len(r) != 2 || r[1].ID != 3 {
		t.Errorf("after one was taken back: %+v", r)
	}
}

func TestFaultMistakes(t *testing.T) {
	n := up(t, "--driver", "470")
	for _, tc := range []struct{ args, want string }{
		{"--call cuMemAloc --rc 2", "did you mean cuMemAlloc?"},
		{"--call nvmlDeviceGetMemoryInf --rc 2", "did you mean nvmlDeviceGetMemoryInfo?"},
		{"--call cuMemAlloc --rc CUDA_ERROR_OUT_OF_MEMROY", "did you mean CUDA_ERROR_OUT_OF_MEMORY?"},
		{"--call nvmlInit --rc CUDA_ERROR_OUT_OF_MEMORY", "no such result"},
		{"--call cuLibraryLoadData --rc 2", "driver 470.256.02 does not have it"},
		{"--call cuMemAlloc", "say what the call returns"},
		{"--call cuMemAlloc --rc 0", "must be made"},
		{"--call cuMemAlloc --rc 2 --outputs some", "want untouched, written or garbage"},
		{"--call cuMemAlloc --delay 2h", "at most"},
		{"--call cuMemAlloc --rc 2 --gpu 1", "the node has 1"},
		{"--call cuMemAlloc --rc 2 --nth 0", "at least 1"},
		{"--call nvmlErrorString --rc 2", "only be slow"},
		{"--call cudbgSessionId --rc 2", "no such name"},
		{"", "say --call"},
		{"--clear 77", "no such rule"},
	} {
		out, err := n.fail(strings.Fields(tc.args)...)
		if err == nil || !strings.Contains(out, tc.want) {
			t.Errorf("%q: %v, %s want %q", tc.args, err, out, tc.want)
		}
	}
	for _, args := range [][]string{{"--absent", "cuNothing"}, {"--faults", "/no/such/file"}} {
		out, err := exec.Command(binary, append([]string{"up", "--dir", t.TempDir()}, args...)...).CombinedOutput()
		if err == nil {
			t.Errorf("up %v: %s", args, out)
		}
	}
}

// Names that the driver lacks are found by nobody; all else works.
func TestAbsentNames(t *testing.T) {
	n := up(t, "--absent", "cuMemAllocAsync", "--absent", "=cuMemFree_v2", "--absent", "nvmlDeviceGetMemoryInfo_v2")
	c := n.caller("init", "context 0")
	for name, want := range map[string]string{
		"cuMemAllocAsync": "0", "cuMemAllocAsync_ptsz": "0", "cuMemFree_v2": "0", "cuMemFree": "1",
		"nvmlDeviceGetMemoryInfo": "1", "nvmlDeviceGetMemoryInfo_v2": "0", "cuMemAlloc_v2": "1",
	} {
		c.want("has "+name, want)
	}
	c.want("lookup cuMemAllocAsync", "0 0 1")
	c.want("lookup cuMemFree", "0 1 0") // the older form
	c.want("lookup cuMemAlloc", "0 1 0")
	c.want("nvmlinit", "0")
	c.want("nvmlmem 0", fmt.Sprintf("0 %x", n.used()))
}

// The libraries of every driver work, and say which they are.
func TestDrivers(t *testing.T) {
	ofLibraries(t)
	for _, d := range api.Drivers {
		t.Run(d.Branch, func(t *testing.T) {
			n := up(t, "--driver", d.Branch)
			c := n.caller()
			c.want("version", fmt.Sprintf("0 %x %d", d.CUDA, d.CUDA)) // before a start
			c.want("nvmlversion", fmt.Sprintf("%s %s %d", d.NVMLVersion(), d.Version, d.CUDA))
			c.want("init", "0")
			c.want("context 0", "0")
			c.want("launch", "0")
			if got := c.results("sync", 1)[0]; got != "0" {
				t.Errorf("sync gave %s", got)
			}
			if _, err := os.Stat(filepath.Join(n.dir, "lib", "libcuda.so."+d.Version)); err != nil {
				t.Error(err)
			}
		})
	}
	// Without a node as well.
	cmd := exec.Command(filepath.Join(build, "test", "faults"), filepath.Join(build, "lib", "470"))
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(build, "lib"), "SIMGPU_SOCKET=/no/such/socket")
	cmd.Stdin = strings.NewReader("version\n")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), " 11040") {
		t.Errorf("%v: %s", err, out)
	}
}

// The other words of a file: whose calls, which of them, how late.
func TestFaultWords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faults.yaml")
	text := "faults:\n" +
		"- {call: cuMemGetInfo, rc: 1, gpu: 1, every: 2, per_process: true}\n" +
		"- {call: cuMemAlloc, rc: 2, pid: 4194304}\n" + // nobody's
		"- {call: cuStreamCreate, rc: 3, cgroup: /no/such/group}\n" +
		"- {call: cuCtxSynchronize, delay: 150ms}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n := up(t, "--gpus", "2", "--faults", path)
	a, b, c := n.caller("init", "context 0"), n.caller("init", "context 1"), n.caller("init", "context 1")
	for _, tc := range []struct {
		c    *caller
		want string
	}{{a, "0 0 0 0"}, {b, "0 1 0 1"}, {c, "0 1 0 1"}} {
		if got := strings.Join(tc.c.results("info", 4), " "); got != tc.want {
			t.Errorf("every second call of a process on GPU 1: %s, want %s", got, tc.want)
		}
	}
	a.want("stream", "0")
	if got := a.results("alloc", 1)[0]; got != "0" {
		t.Errorf("a rule about another process: %s", got)
	}
	var rc int
	var s float64
	if _, err := fmt.Sscanf(a.ask("sync"), "%d %f", &rc, &s); err != nil || rc != 0 || s < 0.15 {
		t.Errorf("a slow call gave %d after %f s, %v", rc, s, err)
	}
	if r := n.rules(); r[0].Calls != 8 || r[1].Calls != 0 || r[2].Calls != 0 {
		t.Errorf("rules: %+v", r)
	}
}
