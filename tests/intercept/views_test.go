// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// session is a program that answers each line that it is sent with one line.
type session struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Scanner
	end func() error
}

// session starts cuda-intercept/test/views.c, with arguments before it.
func (c *container) session(argv ...string) *session {
	c.t.Helper()
	cmd := c.command(c.t.Context(), argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { in.Close() })
	return &session{c.t, in, bufio.NewScanner(out), cmd.Wait}
}

// do sends a line and returns the answer.
func (s *session) do(line string, args ...any) string {
	s.t.Helper()
	line = fmt.Sprintf(line, args...)
	if _, err := fmt.Fprintln(s.in, line); err != nil {
		s.t.Fatalf("%s: %v", line, err)
	}
	if !s.out.Scan() {
		s.t.Fatalf("%s: no answer: %v", line, s.out.Err())
	}
	return s.out.Text()
}

// want sends a line and compares the answer.
func (s *session) want(answer, line string, args ...any) {
	s.t.Helper()
	if got := s.do(line, args...); got != answer {
		s.t.Errorf("%s: %q, want %q", fmt.Sprintf(line, args...), got, answer)
	}
}

// close ends the program and wants that it found nothing wrong.
func (s *session) close() {
	s.t.Helper()
	s.in.Close()
	for s.out.Scan() {
		s.t.Errorf("it said: %s", s.out.Text())
	}
	if err := s.end(); err != nil {
		s.t.Errorf("the program: %v", err)
	}
}

// How busy NVML says that the card is: as busy as the container keeps it, whatever
// others do: cuda-intercept/test/use.c.
func TestOwnUse(t *testing.T) {
	for name, flag := range map[string]string{"new driver": "-fplt", "old driver": "-DSTANDIN_OLD"} {
		t.Run(name, func(t *testing.T) {
			c := newContainer(t, standInLimit())
			c.driver, c.nvml = standIn(t), buildStandIn(t, "test/nvml/*.c", "libnvidia-ml.so.1", flag)
			c.limits.SetBusy(0, 372)
			if out, err := c.run(compile(t, "use.c")); err != nil || out != "" {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// bothKinds runs a test over a card that counts to the byte and one that rounds.
func bothKinds(t *testing.T, test func(t *testing.T, flags ...string)) {
	for _, profile := range []string{"exact", "h100"} {
		t.Run(profile, func(t *testing.T) { test(t, "--profile", profile) })
	}
}

// Every figure of memory agrees with every other, before and after allocations, at
// a changed limit, under one that is lower than what is held, and over the card.
func TestMEM14OneVoice(t *testing.T) {
	program := compile(t, "views.c")
	bothKinds(t, func(t *testing.T, flags ...string) {
		const limit = 1024 * mib
		n := simulateGPUs(t, 1, flags...)
		c := n.container(limit)
		s, other := c.session(program), c.session(program)
		s.want("init 0 1", "init")
		s.want("look fails: 201", "look") // no context
		other.want("init 0 1", "init")
		s.want("use 0", "use 0")
		other.want("use 0", "use 0")
		look := func(limit uint64, used uint64) {
			t.Helper()
			s.want(fmt.Sprintf("look %d %d", limit, limit-min(used, limit)), "look")
		}
		held := uint64(2 * contextBytes)
		look(limit, held)
		s.want("alloc 0", "alloc %d", 100*mib)
		other.want("alloc 0", "alloc %d", 60*mib)
		held += 160 * mib
		look(limit, held)
		for _, limit := range []uint64{2048 * mib, 200 * mib, 100 * mib, limit} {
			c.limits.SetMemory(0, limit)
			look(limit, held)
		}
		s.want("alloc 2", "alloc %d", limit)
		look(limit, held)
		s.want("free 0", "free")
		held -= 100 * mib
		look(limit, held)
		// A limit that the card does not have: the card.
		c.limits.SetMemory(0, 64<<30)
		var total, free uint64
		answer := s.do("look")
		if _, err := fmt.Sscanf(answer, "look %d %d", &total, &free); err != nil || total > 8<<30 || total < 7<<30 || total-free != held {
			t.Errorf("over the card: %q with %d held, %v", answer, held, err)
		}
		other.close()
		s.close()
	})
}

// The limits of two containers are more than the card has. The second is refused
// when the card is full, and is not told before that there is more; the first goes on.
func TestMEM17PhysicalExhaustion(t *testing.T) {
	const card, limit, step = 4096 * mib, 3072 * mib, 16 * mib
	n := simulateGPUs(t, 1, "--memory", "4GiB")
	program := compile(t, "views.c")
	a, b := n.container(limit).session(program), n.container(limit).session(program)
	for _, s := range []*session{a, b} {
		s.want("init 0 1", "init")
		s.want("use 0", "use 0")
	}
	a.want("alloc 0", "alloc %d", 2048*mib-contextBytes)
	left := uint64(card - 2048*mib - contextBytes)
	b.want(fmt.Sprintf("look %d %d", limit, left), "look")
	b.want(fmt.Sprintf("fill %d 2", left), "fill %d", step)
	b.want(fmt.Sprintf("look %d 0", limit), "look")
	a.want(fmt.Sprintf("look %d 0", limit), "look") // nor is there more for the first
	a.want("alloc 2", "alloc %d", step)
	a.want("sync 0", "sync")
	a.want("free 0", "free")
	a.want("alloc 0", "alloc %d", 2048*mib-contextBytes)
	b.close()
	waitFor(t, "the bytes to come back", func() bool { return n.gpu().Used == 2048*mib })
	a.want(fmt.Sprintf("look %d %d", limit, 1024*mib), "look")
	a.want(fmt.Sprintf("fill %d 2", 1024*mib), "fill %d", step)
	a.close()
}

// The driver tells the host's numbers of processes. A container with numbers of
// its own sees those, and only its own processes.
func TestSMI01OwnNumbers(t *testing.T) {
	const limit = 1024 * mib
	n := simulate(t)
	tenant := compile(t, "tenant.c")
	other := n.container(limit)
	other.start(true, tenant, "init", fmt.Sprintf("alloc=%d", 300*mib), "hold")
	c := n.container(limit)
	out, err := c.run("unshare", "-pf", "--mount-proc", "sh", "-c", fmt.Sprintf("%s init alloc=%d pid nvml; exit $?", tenant, 100*mib))
	lines := linesOf(out)
	want := fmt.Sprintf("nvml %d %d %d 2:%d", limit, limit-100*mib-contextBytes, 100*mib+contextBytes, 100*mib+contextBytes)
	if err != nil || len(lines) != 3 || lines[1] != "pid 2" || lines[2] != want {
		t.Errorf("%v, output %q, want %q", err, out, want)
	}
}

// What users add up on nvidia-smi's screen, for a slice of 3 GiB of a card of 32.
func TestSMI03AddsUp(t *testing.T) {
	n := simulateGPUs(t, 1, "--memory", "32GiB")
	s := n.container(3072 * mib).session(compile(t, "views.c"))
	s.want("init 0 1", "init")
	s.want("FB Total 3072 MiB, Reserved 0 MiB, Used 0 MiB, Free 3072 MiB; BAR1 Total 3072 MiB, Used 0 MiB, Free 3072 MiB", "smi")
	s.want("use 0", "use 0")
	s.want("alloc 0", "alloc %d", 2584*mib-contextBytes)
	s.want("FB Total 3072 MiB, Reserved 0 MiB, Used 2584 MiB, Free 488 MiB; BAR1 Total 3072 MiB, Used 0 MiB, Free 3072 MiB", "smi")
	s.close()
}

// A program writes the same bytes with and without us, also where it is refused.
func TestSMI07NotAByte(t *testing.T) {
	const card = 1024 * mib
	n := simulateGPUs(t, 1, "--memory", "1GiB")
	tenant := compile(t, "tenant.c")
	preload := "LD_PRELOAD=" + filepath.Join(libraries(t), "libcuda.so.1") + ":" + filepath.Join(libraries(t), "libnvidia-ml.so.1")
	for _, argv := range [][]string{
		{tenant, "init", fmt.Sprintf("alloc=%d", 100*mib), fmt.Sprintf("alloc=%d", card), "info", fmt.Sprintf("fill=%d", 16*mib), "info"},
		{tenant, "init", "take=9,1073741824", "take=5,0", "spawn=3"},
		{"sh", "-c", "echo this; echo that >&2; exit 3"},
		{"env", preload, "sh", "-c", "echo this; echo that >&2; exit 3"},
	} {
		if sanitized() && argv[0] == "env" {
			continue // a program without the sanitizer cannot load such a library
		}
		var said [2][3]string
		for i := range said {
			c := n.container(card)
			if i == 0 && argv[0] != "env" {
				c.env = append(c.env, "LD_LIBRARY_PATH="+filepath.Join(n.dir, "lib"))
			}
			cmd := c.command(t.Context(), argv[0], argv[1:]...)
			if i == 0 && argv[0] == "env" {
				cmd = c.command(t.Context(), argv[2], argv[3:]...)
			}
			var out, msg bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &msg
			err := cmd.Run()
			said[i] = [3]string{out.String(), msg.String(), fmt.Sprint(err)}
			waitFor(t, "an empty GPU", func() bool { return n.gpu().Used == 0 })
		}
		if said[0] != said[1] || said[0][0] == "" {
			t.Errorf("%q: bare %q, through us %q", argv, said[0], said[1])
		}
	}
}
