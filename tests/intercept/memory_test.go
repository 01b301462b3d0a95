// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// Sixteen processes race for the last bytes: the simulator's own high-water mark
// never passes the limit, and little is left over.
func TestRaceAtTheEdge(t *testing.T) {
	const limit, step = 2048 * mib, 16 * mib
	n := simulate(t)
	c := n.container(limit)
	tenant := compile(t, "tenant.c")
	for range 5 {
		out, err := c.run(tenant, fmt.Sprintf("race=16,%d", step))
		var got uint64
		if _, serr := fmt.Sscanf(out, "race %d\n", &got); err != nil || serr != nil {
			t.Fatalf("%v, output %q", err, out)
		}
		if all := got + 16*contextBytes; all > limit || limit-all >= 2*step {
			t.Errorf("the processes got %d of %d", all, limit)
		}
		if high := n.gpu().High; high > limit {
			t.Errorf("the simulator held %d bytes over the limit", high-limit)
		}
		waitFor(t, "all bytes to come back", func() bool { return n.gpu().Used == 0 })
		// The dead processes' bytes, too.
		if out, err := c.run(tenant, "init", fmt.Sprintf("within=1000,%d", limit-contextBytes)); err != nil || out != "within 0\n" {
			t.Errorf("%v, output %q", err, out)
		}
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Errorf("waited 5 s for %s", what)
}

// Processes that allocate and free at the edge are killed and replaced all the
// time: not a byte over the limit, and all of it free 1 s after the last is gone.
func TestKilledAgainAndAgain(t *testing.T) {
	long(t)
	const limit = 1024 * mib
	n := simulate(t)
	c := n.container(limit)
	tenant := compile(t, "tenant.c")
	churn := fmt.Sprintf("churn=%d", 100*mib)
	var running [8]*held
	for i := range running {
		running[i] = c.start(false, tenant, "init", churn)
	}
	kills := 0
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		i := rand.IntN(len(running))
		running[i].kill()
		kills++
		running[i] = c.start(false, tenant, "init", churn)
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
	}
	for _, h := range running {
		h.kill()
	}
	if high := n.gpu().High; high > limit || high < limit/2 {
		t.Errorf("high-water mark %d with a limit of %d", high, limit)
	}
	out, err := c.run(tenant, "init", fmt.Sprintf("within=1000,%d", limit-contextBytes), "info")
	if err != nil || out != fmt.Sprintf("within 0\ninfo 0 0 %d\n", limit) {
		t.Errorf("after %d kills: %v, output %q", kills, err, out)
	}
	if high := n.gpu().High; high > limit {
		t.Errorf("the simulator held %d bytes over the limit", high-limit)
	}
	t.Logf("%d kills", kills)
}

// A forked child keeps its dead parent's memory, in the driver and so in the
// ledger; a program that was exec'ed keeps nothing.
func TestForkKeepsExecFrees(t *testing.T) {
	const limit, part = 1024 * mib, 600 * mib
	n := simulate(t)
	c := n.container(limit)
	tenant := compile(t, "tenant.c")
	rest := fmt.Sprintf("fill %d\n", limit-part-2*contextBytes)
	all := fmt.Sprintf("within=1000,%d", limit-contextBytes)

	h := c.start(true, tenant, "init", fmt.Sprintf("alloc=%d", part), "fork-hold", "hold")
	_ = h.cmd.Process.Kill() // the child lives on
	_, _ = h.cmd.Process.Wait()
	time.Sleep(500 * time.Millisecond)
	for range 3 {
		if out, err := c.run(tenant, "init", fmt.Sprintf("fill=%d", 4*mib)); err != nil || out != rest {
			t.Errorf("beside the child: %v, output %q, want %q", err, out, rest)
		}
		time.Sleep(300 * time.Millisecond) // for the last one's bytes to come back
	}
	if used := n.gpu().Used; used != part+contextBytes {
		t.Errorf("the simulator says %d", used)
	}
	h.in.Close() // ends the child
	if out, err := c.run(tenant, "init", all); err != nil || out != "within 0\n" {
		t.Errorf("after the child: %v, output %q", err, out)
	}

	h = c.start(false, tenant, "init", fmt.Sprintf("alloc=%d", part), "exec-hold")
	time.Sleep(300 * time.Millisecond)
	if out, err := c.run(tenant, "init", all); err != nil || out != "within 0\n" {
		t.Errorf("beside the exec'ed program: %v, output %q", err, out)
	}
	if h.cmd.Process.Signal(nil) == nil {
		t.Log("the exec'ed program runs")
	}
	if high := n.gpu().High; high > limit {
		t.Errorf("the simulator held %d bytes over the limit", high-limit)
	}
}

// A program that closes descriptors which it does not know, as daemons do, still
// has what it allocated.
func TestDroppedDescriptors(t *testing.T) {
	const limit, part = 1024 * mib, 600 * mib
	n := simulate(t)
	c := n.container(limit)
	tenant := compile(t, "tenant.c")
	rest := fmt.Sprintf("fill %d\n", limit-part-2*contextBytes)

	h := c.start(true, tenant, "init", fmt.Sprintf("alloc=%d", part), "drop-files", "hold")
	for range 4 {
		if out, err := c.run(tenant, "init", fmt.Sprintf("fill=%d", 4*mib)); err != nil || out != rest {
			t.Errorf("beside the program: %v, output %q, want %q", err, out, rest)
		}
		time.Sleep(300 * time.Millisecond) // for the last one's bytes to come back
	}
	h.kill()
	if out, err := c.run(tenant, "init", fmt.Sprintf("within=1000,%d", limit-contextBytes)); err != nil || out != "within 0\n" {
		t.Errorf("after the program: %v, output %q", err, out)
	}
	if high := n.gpu().High; high > limit {
		t.Errorf("the simulator held %d bytes over the limit", high-limit)
	}
}

// One program after the other, each of which takes all there is and is refused
// more: none is refused for what its dead predecessor held.
func TestOneAfterTheOther(t *testing.T) {
	const limit = 512 * mib
	n := simulate(t)
	c := n.container(limit)
	tenant := compile(t, "tenant.c")
	one := fmt.Sprintf("%s init fill=%d alloc=%d;", tenant, mib, mib)
	out, err := c.run("sh", "-c", strings.Repeat(one, 5))
	want := strings.Repeat(fmt.Sprintf("fill %d\nalloc 2\n", limit-contextBytes), 5)
	if err != nil || out != want {
		t.Errorf("%v, output %q", err, out)
	}
	if high := n.gpu().High; high > limit {
		t.Errorf("the simulator held %d bytes over the limit", high-limit)
	}
}

// Several programs that start at once when another has just ended: there is room
// for all of them, so none is refused while its predecessor's bytes are counted.
func TestSeveralAfterOne(t *testing.T) {
	long(t)
	const limit, several, rounds = 512 * mib, 5, 12
	n := simulate(t)
	c := n.container(limit)
	tenant := compile(t, "tenant.c")
	script := fmt.Sprintf("for i in $(seq %d); do %s init fill=%d; for j in $(seq %d); do %s init alloc=%d & done; wait; done",
		rounds, tenant, mib, several, tenant, 64*mib)
	out, err := c.run("sh", "-c", script)
	if got := strings.Count(out, "alloc 0\n"); err != nil || got != several*rounds {
		t.Errorf("%v, %d of %d programs got their memory, output %q", err, got, several*rounds, out)
	}
	if high := n.gpu().High; high > limit {
		t.Errorf("the simulator held %d bytes over the limit", high-limit)
	}
}

// However memory is taken, the ledger says what the simulator says.
func TestLedgerIsTheDriversFigure(t *testing.T) {
	n := simulate(t)
	tenant := compile(t, "tenant.c")
	for way, name := range []string{"managed", "pitch", "async", "async per thread", "own pool", "context", "vmm", "array"} {
		t.Run(name, func(t *testing.T) {
			waitFor(t, "an empty GPU", func() bool { return n.gpu().Used == 0 })
			c := n.container(1024 * mib)
			c.t = t
			h := c.start(true, tenant, "init", fmt.Sprintf("take=%d,%d", way, 40*mib), "hold")
			if len(h.lines) != 1 || h.lines[0] == "take 801" {
				t.Skipf("the simulator has no such call: %q", h.lines)
			}
			used, charged := n.gpu().Used, c.ledger()[0]
			if h.lines[0] != "take 0" || used <= contextBytes || charged != used {
				t.Errorf("%q; ledger %d, simulator %d", h.lines, charged, used)
			}
			over := fmt.Sprintf("take=%d,%d", way, 1024*mib)
			if name == "context" {
				over = "fill=" + fmt.Sprint(contextBytes)
			}
			if out, err := c.run(tenant, "init", over); err != nil || (name != "context" && out != "take 2\n") {
				t.Errorf("over the limit: %v, output %q", err, out)
			}
			h.kill()
		})
	}
}

// Limits are by GPU, known by its UUID: the driver's order is not the page's, and
// CUDA_VISIBLE_DEVICES changes it again.
func TestTwoGPUs(t *testing.T) {
	n := simulateGPUs(t, 3)
	tenant := compile(t, "tenant.c")
	for visible, want := range map[string][2]uint64{
		"":    {0, 1}, // device 0 is the page's second GPU
		"1":   {1, 0},
		"1,0": {1, 0},
		"0,1": {0, 1},
	} {
		c := n.containerOn(n.limit(1, 300*mib), n.limit(0, 200*mib))
		c.env = append(c.env, "CUDA_VISIBLE_DEVICES="+visible)
		if visible == "" {
			c.env = c.env[:1]
		}
		h := c.start(true, tenant, "init", "info", fmt.Sprintf("fill=%d", mib), "info", "hold")
		limit := want[0]*300*mib + want[1]*200*mib
		lines := []string{
			fmt.Sprintf("info 0 %d %d", limit-contextBytes, limit),
			fmt.Sprintf("fill %d", limit-contextBytes),
			fmt.Sprintf("info 0 0 %d", limit),
		}
		if !slices.Equal(h.lines, lines) {
			t.Errorf("CUDA_VISIBLE_DEVICES=%q: %q, want %q", visible, h.lines, lines)
		}
		if got := c.ledger(); got[0] != want[0]*limit || got[1] != want[1]*limit {
			t.Errorf("CUDA_VISIBLE_DEVICES=%q: ledger %d", visible, got)
		}
		h.kill()
		waitFor(t, "empty GPUs", func() bool { return n.gpus()[0].Used+n.gpus()[1].Used == 0 })
	}
	// The third GPU is not in the page.
	c := n.containerOn(n.limit(1, 300*mib), n.limit(0, 200*mib))
	c.env = append(c.env, "CUDA_VISIBLE_DEVICES=2")
	if out, err := c.run(tenant, "init"); err == nil || out != "init 100\n" {
		t.Errorf("a GPU of others: %v, output %q", err, out)
	}
}

// Driver and NVML show the slice as the card, with one voice; the processes are
// the container's own.
func TestViews(t *testing.T) {
	const limit = 1024 * mib
	n := simulate(t)
	c, other := n.container(limit), n.container(limit)
	tenant := compile(t, "tenant.c")
	h := c.start(true, tenant, "init", fmt.Sprintf("alloc=%d", 100*mib), "pid", "hold")
	other.start(true, tenant, "init", fmt.Sprintf("alloc=%d", 300*mib), "hold")
	out, err := c.run(tenant, "init", "pid", "info", "nvml")
	lines := linesOf(out)
	if err != nil || len(lines) != 3 {
		t.Fatalf("%v, output %q", err, out)
	}
	used := uint64(100*mib + 2*contextBytes)
	if want := fmt.Sprintf("info 0 %d %d", limit-used, limit); lines[1] != want {
		t.Errorf("%q, want %q", lines[1], want)
	}
	if want := fmt.Sprintf("nvml %d %d %d ", limit, limit-used, used); !strings.HasPrefix(lines[2], want) {
		t.Errorf("%q, want %q", lines[2], want)
	}
	for _, want := range []string{
		fmt.Sprintf(" %s:%d", strings.TrimPrefix(h.lines[1], "pid "), 100*mib+contextBytes),
		fmt.Sprintf(" %s:%d", strings.TrimPrefix(lines[0], "pid "), contextBytes),
	} {
		if !strings.Contains(lines[2], want) {
			t.Errorf("no%s in %q", want, lines[2])
		}
	}
	if got := strings.Count(lines[2], ":"); got != 2 {
		t.Errorf("%d processes in %q", got, lines[2])
	}
	time.Sleep(150 * time.Millisecond) // the dead are looked for every 100 ms
	// NVML alone, in a process that never starts CUDA, tells the same.
	out, err = c.run(tenant, "nvml")
	if want := fmt.Sprintf("nvml %d %d %d %s:%d\n", limit, limit-100*mib-contextBytes, 100*mib+contextBytes,
		strings.TrimPrefix(h.lines[1], "pid "), 100*mib+contextBytes); err != nil || out != want {
		t.Errorf("%v, output %q, want %q", err, out, want)
	}
}

// A new limit holds for the next allocation of a running process.
func TestLiveResize(t *testing.T) {
	n := simulate(t)
	c := n.container(512 * mib)
	tenant := compile(t, "tenant.c")
	h := c.start(true, tenant, "init", fmt.Sprintf("alloc=%d", 100*mib), "hold")
	for _, limit := range []uint64{256 * mib, 1024 * mib, 120 * mib, 117 * mib} {
		c.limits.SetMemory(0, limit)
		used := uint64(100*mib + 2*contextBytes)
		want := "init 2\n"
		if limit >= used {
			want = fmt.Sprintf("info 0 %d %d\nfill %d\n", limit-used, limit, (limit-used)/mib*mib)
		}
		out, _ := c.run(tenant, "init", "info", fmt.Sprintf("fill=%d", mib))
		if out != want {
			t.Errorf("limit %d: output %q, want %q", limit, out, want)
		}
		waitFor(t, "the bytes to come back", func() bool { return n.gpu().Used == 100*mib+contextBytes })
		time.Sleep(300 * time.Millisecond)
	}
	h.kill()
}
