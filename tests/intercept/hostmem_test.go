// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpushare/gpushare/limiter/region"
)

// onACard is a simulated card on which managed memory migrates, as on real ones.
func onACard(t *testing.T, flags ...string) *node {
	t.Helper()
	return simulateGPUs(t, 1, append([]string{"--profile", "h100"}, flags...)...)
}

// lent is a container that may spill that many bytes to host memory.
func (n *node) lent(limit, host uint64) *container {
	n.t.Helper()
	c := n.container(limit)
	c.limits.SetHostMemory(host)
	return c
}

// host is the host memory that the container's ledger tells of.
func (c *container) host() uint64 {
	c.t.Helper()
	l, err := region.OpenLedger(filepath.Join(c.dir, "ledger"), c.limits.GPUs())
	if err != nil {
		c.t.Fatal(err)
	}
	defer l.Close()
	u, err := l.Read()
	if err != nil {
		c.t.Fatal(err)
	}
	return u.HostBytes
}

// One process gets its limit on the device and all the host memory beside it, and not
// a byte more of either; all of it comes back.
func TestHostMemory(t *testing.T) {
	const limit, host = 1024 * mib, 2048 * mib
	n := onACard(t)
	c := n.lent(limit, host)
	program := compile(t, "hostmem.c")
	if out, err := c.run(program, "all", fmt.Sprint(limit), fmt.Sprint(host), fmt.Sprint(contextBytes)); err != nil || out != "" {
		t.Errorf("%v, output %q", err, out)
	}
	if high := n.gpu().High; high > limit || high < limit-64*mib {
		t.Errorf("SIMULATED card held %d bytes at most, the limit is %d", high, limit)
	}
	waitFor(t, "all bytes to come back", func() bool { return n.gpu().Used == 0 && c.host() == 0 })
}

// Without host memory on its page, and with it where the device cannot use managed
// memory where it lies, a container is refused as ever.
func TestHostMemoryIsOff(t *testing.T) {
	const limit = 1024 * mib
	program := compile(t, "hostmem.c")
	for name, tc := range map[string]struct {
		host  uint64
		flags []string
	}{
		"not lent":                   {0, nil},
		"no call for managed memory": {2048 * mib, []string{"--absent", "cuMemAllocManaged"}},
		"no concurrent access":       {2048 * mib, []string{"--profile", notConcurrent(t)}},
		"no call for advice":         {2048 * mib, []string{"--absent", "cuMemAdvise"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := onACard(t, tc.flags...)
			c := n.lent(limit, tc.host)
			if out, err := c.run(program, "all", fmt.Sprint(limit), "0", fmt.Sprint(contextBytes)); err != nil || out != "" {
				t.Errorf("%v, output %q", err, out)
			}
			if high := n.gpu().High; high > limit {
				t.Errorf("SIMULATED card held %d bytes over the limit", high-limit)
			}
		})
	}
}

// notConcurrent is the profile of a card that has to bring managed memory over.
func notConcurrent(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "card.yaml")
	const card = "version: \"1.0\"\nbase: h100\ndevice_defaults:\n  attributes: {CONCURRENT_MANAGED_ACCESS: 0}\n"
	if err := os.WriteFile(path, []byte(card), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A driver that fails while memory is spilled: its error is passed on, or it is
// out-of-memory as before, and nothing is charged or left.
func TestHostMemoryFaults(t *testing.T) {
	program := compile(t, "hostmem.c")
	for name, tc := range map[string]struct {
		rule []string
		code int
	}{
		"no host memory left":     {[]string{"--call", "cuMemAllocManaged", "--rc", "2"}, 2},
		"another error":           {[]string{"--call", "cuMemAllocManaged", "--rc", "999"}, 999},
		"results in spite of it":  {[]string{"--call", "cuMemAllocManaged", "--rc", "2", "--outputs", "garbage"}, 2},
		"no managed memory":       {[]string{"--call", "cuMemAllocManaged", "--rc", "801"}, 2},
		"not kept with the host":  {[]string{"--call", "cuMemAdvise", "--rc", "1"}, 2},
		"not mapped":              {[]string{"--call", "cuMemAdvise", "--nth", "2", "--every", "2", "--rc", "1"}, 2},
		"nothing said of devices": {[]string{"--call", "cuDeviceGetAttribute", "--rc", "1"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			n := onACard(t)
			c := n.lent(256*mib, 256*mib)
			if out, err := exec.Command(n.bin, append([]string{"fail", "--dir", n.dir}, tc.rule...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v, %s", err, out)
			}
			if out, err := c.run(program, "faulty", fmt.Sprint(tc.code)); err != nil || out != "" {
				t.Errorf("%v, output %q", err, out)
			}
			if high := n.gpu().High; high > 256*mib {
				t.Errorf("SIMULATED card held %d bytes over the limit", high-256*mib)
			}
			waitFor(t, "all bytes to come back", func() bool { return n.gpu().Used == 0 })
		})
	}
}

// What may be spilled, and what others import or no byte of linear memory is.
func TestHostMemoryCalls(t *testing.T) {
	n := onACard(t)
	c := n.lent(256*mib, 64*mib)
	if out, err := c.run(compile(t, "hostmem.c"), "calls"); err != nil || out != "" {
		t.Errorf("%v, output %q", err, out)
	}
	if high := n.gpu().High; high > 256*mib {
		t.Errorf("SIMULATED card held %d bytes over the limit", high-256*mib)
	}
}

// Hints do not bring spilled memory over; the program's own managed memory, which is
// charged, goes where it is sent.
func TestHostMemoryAdvice(t *testing.T) {
	const limit = 64 * mib
	n := onACard(t, "--driver", "newest")
	c := n.lent(limit, 128*mib)
	h := c.start(false, compile(t, "hostmem.c"), "advice")
	base := uint64(0)
	for _, step := range []string{"allocated", "prefetched", "advised", "by location", "in batches", "own", "freed"} {
		line, err := h.next()
		if err != nil || line != step {
			t.Fatalf("%q, %v, want %q", line, err, step)
		}
		used := n.gpu().Used
		switch {
		case step == "allocated":
			base = used
		case step == "own" && used != base+16*mib:
			t.Errorf("own memory, charged, was not brought over: %d", used-base)
		case step != "own" && used != base:
			t.Errorf("%s: SIMULATED card holds %d bytes more", step, used-base)
		}
		h.answer()
	}
	if err := h.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Eight processes race for the last bytes of both kinds.
func TestHostMemoryRace(t *testing.T) {
	const limit, host, step, processes = 1024 * mib, 512 * mib, 8 * mib, 8
	n := onACard(t)
	c := n.lent(limit, host)
	program := compile(t, "hostmem.c")
	for range 3 {
		out, err := c.run(program, "race", fmt.Sprint(processes), fmt.Sprint(step))
		var device, spilled uint64
		if _, serr := fmt.Sscanf(out, "race %d %d\n", &device, &spilled); err != nil || serr != nil {
			t.Fatalf("%v, output %q", err, out)
		}
		if all := device + processes*contextBytes; all > limit || limit-all >= 2*step {
			t.Errorf("the processes got %d of %d on the device", all, limit)
		}
		if spilled > host || host-spilled >= 2*step {
			t.Errorf("the processes got %d of %d in host memory", spilled, host)
		}
		if high := n.gpu().High; high > limit {
			t.Errorf("SIMULATED card held %d bytes over the limit", high-limit)
		}
		waitFor(t, "all bytes to come back", func() bool { return n.gpu().Used == 0 && c.host() == 0 })
	}
}

// Processes that allocate and free are killed all the time: never more than the page
// says, and all of it is there for the next one.
func TestHostMemoryKilled(t *testing.T) {
	const limit, host = 256 * mib, 256 * mib
	n := onACard(t)
	c := n.lent(limit, host)
	program := compile(t, "hostmem.c")
	var running [4]*held
	for i := range running {
		running[i] = c.start(false, program, "churn", fmt.Sprint(64*mib))
	}
	kills, most := 0, uint64(0)
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		i := rand.IntN(len(running))
		running[i].kill()
		kills++
		running[i] = c.start(false, program, "churn", fmt.Sprint(64*mib))
		most = max(most, c.host())
		time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
	}
	for _, h := range running {
		h.kill()
	}
	if most > host || most == 0 {
		t.Errorf("%d bytes of host memory were in use, %d are lent", most, host)
	}
	if high := n.gpu().High; high > limit {
		t.Errorf("SIMULATED card held %d bytes over the limit", high-limit)
	}
	// The next program has all of it at once: it waits for the dead.
	want := fmt.Sprintf("fill %d %d\n", limit-contextBytes, host)
	if out, err := c.run(program, "fill", fmt.Sprint(16*mib)); err != nil || out != want {
		t.Errorf("after %d kills: %v, output %q, want %q", kills, err, out, want)
	}
	t.Logf("%d kills, at most %d MiB of host memory seen", kills, most/mib)
}

// The amount is changed while programs run: what is held stays, what comes obeys.
func TestHostMemoryIsTakenBack(t *testing.T) {
	const limit, host, step = 256 * mib, 256 * mib, 16 * mib
	n := onACard(t)
	c := n.lent(limit, host)
	program := compile(t, "hostmem.c")
	h := c.start(true, program, "fill", fmt.Sprint(step), "hold")
	if want := fmt.Sprintf("fill %d %d", limit-contextBytes, host); len(h.lines) != 1 || h.lines[0] != want {
		t.Errorf("%q, want %q", h.lines, want)
	}
	if c.host() != host {
		t.Errorf("%d bytes of host memory", c.host())
	}
	c.limits.SetHostMemory(0)
	if c.host() != host {
		t.Errorf("%d bytes of host memory after it was taken back", c.host())
	}
	h.kill()
	waitFor(t, "the bytes of the dead", func() bool { return n.gpu().Used == 0 })
	if out, err := c.run(program, "fill", fmt.Sprint(step)); err != nil || out != fmt.Sprintf("fill %d 0\n", limit-contextBytes) {
		t.Errorf("%v, output %q", err, out)
	}
	c.limits.SetHostMemory(step)
	if out, err := c.run(program, "fill", fmt.Sprint(step)); err != nil || out != fmt.Sprintf("fill %d %d\n", limit-contextBytes, step) {
		t.Errorf("%v, output %q", err, out)
	}
}

// A card of 4 GiB and two containers of 3 GiB each: at physical exhaustion the one who
// asks is refused, the other goes on, and nothing stays charged. With host memory it
// is served from there, below its limit, too.
func TestTheCardIsFull(t *testing.T) {
	const limit, step = 3072 * mib, 64 * mib
	n := onACard(t, "--memory", "4GiB")
	program := compile(t, "hostmem.c")
	first, second, third := n.container(limit), n.container(limit), n.lent(limit, 512*mib)
	h := first.start(true, program, "fill", fmt.Sprint(step), "hold")
	if want := fmt.Sprintf("fill %d 0", (limit-contextBytes)/step*step); len(h.lines) != 1 || h.lines[0] != want {
		t.Errorf("the first: %q, want %q", h.lines, want)
	}
	fill := func(c *container) (device, host uint64) {
		t.Helper()
		h := c.start(true, program, "fill", fmt.Sprint(step), "hold")
		if _, err := fmt.Sscanf(strings.Join(h.lines, "\n"), "fill %d %d", &device, &host); err != nil {
			t.Fatalf("%q: %v", h.lines, err)
		}
		if got := c.ledger()[0]; got != device+contextBytes {
			t.Errorf("%d charged, %d held", got, device+contextBytes)
		}
		if got := first.ledger()[0]; got != (limit-contextBytes)/step*step+contextBytes {
			t.Errorf("the first is charged %d", got)
		}
		h.kill()
		waitFor(t, "its bytes", func() bool { return n.gpu().Used == first.ledger()[0] })
		return device, host
	}
	if device, host := fill(second); device == 0 || device+2*contextBytes >= limit/2 || host != 0 {
		t.Errorf("the second got %d and %d", device, host)
	}
	if device, host := fill(third); device == 0 || device+2*contextBytes >= limit/2 || host != 512*mib {
		t.Errorf("the third got %d and %d", device, host)
	}
	h.answer() // the first goes on, to its end
	if err := h.cmd.Wait(); err != nil {
		t.Errorf("the first: %v", err)
	}
	waitFor(t, "an empty card", func() bool { return n.gpu().Used == 0 })
	for i, c := range []*container{first, second, third} {
		waitFor(t, fmt.Sprintf("the ledger of container %d", i), func() bool { return c.ledger()[0] == 0 && c.host() == 0 })
	}
}
