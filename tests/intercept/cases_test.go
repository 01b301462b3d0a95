// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/simgpu/fault"
	"github.com/gpushare/gpushare/simgpu/host"
)

// What users of other systems ran into, and no other test is about: see
// docs/reference/cases.md.

// bare runs a program over the driver by itself.
func (n *node) bare(program string, args ...string) (string, error) {
	c := newContainer(n.t)
	c.env = []string{"SIMGPU_SOCKET=" + filepath.Join(n.dir, "run/sock"), "LD_LIBRARY_PATH=" + filepath.Join(n.dir, "lib")}
	return c.run(program, args...)
}

// A pool that grows and shrinks stays within the limit for ever, and leaves nothing.
func TestMEM04AsyncAgainAndAgain(t *testing.T) {
	n := simulate(t)
	c := n.container(256 * mib)
	if out, err := c.run(compile(t, "cases.c"), "again"); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
	if high := n.gpu().High; high > 256*mib {
		t.Errorf("the simulator held %d bytes", high)
	}
}

// Memory of a pool of the program's own is counted once; a pointer that we never saw
// goes to the driver, and its answer comes back.
func TestMEM05ForeignPointersAreTheDrivers(t *testing.T) {
	n := simulate(t)
	program := compile(t, "cases.c")
	c := n.container(512 * mib)
	admin := host.NewAdminClient(filepath.Join(n.dir, "admin.sock"))
	want, _ := n.bareForeign(program)
	if out, err := c.run(program, "pool"); err != nil || out != want {
		t.Errorf("%v, %q; the driver says %q", err, out, want)
	}
	for _, call := range []string{"cuMemFree_v2", "cuMemFreeAsync"} {
		if _, err := admin.AddFault(t.Context(), fault.Spec{Call: "=" + call, RC: "709", Every: 1, Nth: map[string]uint64{"cuMemFree_v2": 1, "cuMemFreeAsync": 2}[call]}); err != nil {
			t.Fatal(err)
		}
	}
	if out, _ := n.container(512*mib).run(program, "pool"); !strings.HasSuffix(out, "foreign 709 709\n") {
		t.Errorf("the driver's answer does not come back: %q", out)
	}
}

// bareForeign is what the driver itself says to pointers of nobody.
func (n *node) bareForeign(program string) (line string, err error) {
	out, err := n.bare(program, "pool")
	for _, line := range strings.SplitAfter(out, "\n") {
		if strings.HasPrefix(line, "foreign") {
			return line, err
		}
	}
	return "", err
}

// Memory on the host, and in places that do not exist: the driver decides, and only
// memory of the device is charged.
func TestMEM07Locations(t *testing.T) {
	n := simulateGPUs(t, 1, "--driver", "newest")
	program := compile(t, "cases.c")
	want, err := n.bare(program, "locations")
	if err != nil || strings.Count(want, "made") < 3 || strings.Count(want, "untouched") < 6 {
		t.Fatalf("the driver says %v\n%s", err, want)
	}
	got, err := n.container(512*mib).run(program, "locations")
	// Which device that is not there, a container is told by us: NO_DEVICE or the driver's.
	if err != nil || got != want {
		t.Errorf("%v\n%s\nthe driver says\n%s", err, got, want)
	}
}

// Whatever is freed, twice, by mistake or with its context: the count is what the
// driver holds at every step, never below 0 and never over the limit.
func TestMEM08NeverBelowZero(t *testing.T) {
	n := simulate(t)
	if out, err := n.container(256*mib).run(compile(t, "cases.c"), "random"); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
	if high := n.gpu().High; high > 256*mib || high < 200*mib {
		t.Errorf("the simulator held %d bytes at most", high)
	}
}

// Without a current context every allocating call answers what the driver answers, and
// changes nothing where that is an error.
func TestMEM16NoContext(t *testing.T) {
	n := simulateGPUs(t, 1, "--driver", "newest")
	program := walkProgram(t)
	answers := func(w *walker) (said []string) {
		for _, h := range walked(t) {
			w.row = h
			if r := w.ask("ready %s", h.symbol); r[0] != 0 {
				w.errorf("ready: %d", r[0])
				continue
			}
			r := w.ask("lone %s %d", h.symbol, 3*mib)
			said = append(said, h.symbol+map[bool]string{true: " works", false: " fails"}[r[0] == 0])
			if r[0] != 0 {
				said[len(said)-1] += " " + map[bool]string{true: "and leaves the results", false: "and changes the results"}[r[1] == 1]
			}
			w.ask("done %s", h.symbol)
		}
		return said
	}
	ours := startWalker(t, n, program)
	got := answers(ours)
	ours.figures("after all calls without a context")
	ours.end()
	w := &walker{t: t, n: n, program: program, admin: ours.admin, bare: true}
	w.renew()
	t.Cleanup(w.end)
	if want := answers(w); !slices.Equal(got, want) {
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s; the driver: %s", got[i], want[i])
			}
		}
	}
}

// knownCases are those of each kind that public threads have shown.
var knownCases = map[string][]int{
	"INJ":   {1, 2, 3, 4, 5, 7, 10, 11, 12, 13, 14},
	"MEM":   {1, 3, 4, 5, 7, 8, 9, 11, 12, 14, 16, 17},
	"HANG":  {1, 3, 4, 6, 8, 9, 11},
	"SMI":   {1, 3, 4, 6, 7},
	"PROC":  {1, 3, 5, 6, 8},
	"CRASH": {1, 2, 4, 6},
	"VER":   {1, 3, 4, 5},
}

// Every case has tests that exist, or a reason.
func TestEveryCaseHasATest(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "docs/reference/cases.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([A-Z]+-\d+) \| [^|]+ \| [^|]+ \| (.+) \|$`).FindAllStringSubmatch(string(text), -1) {
		if _, twice := rows[m[1]]; twice {
			t.Errorf("%s has two rows", m[1])
		}
		rows[m[1]] = m[2]
	}
	held := 0
	for kind, numbers := range knownCases {
		for _, number := range numbers {
			id := fmt.Sprintf("%s-%02d", kind, number)
			row, is := rows[id]
			delete(rows, id)
			named := regexp.MustCompile("`([\\w/]+) (Test\\w+)`").FindAllStringSubmatch(row, -1)
			switch {
			case !is:
				t.Errorf("%s has no row", id)
			case len(named) == 0 && !strings.HasPrefix(row, "not tried: "):
				t.Errorf("%s names no test and says no reason: %s", id, row)
			case len(named) > 0:
				held++
			}
			for _, m := range named {
				if !testExists(t, m[1], m[2]) {
					t.Errorf("%s names %s, which is not in %s", id, m[2], m[1])
				}
			}
		}
	}
	for id := range rows {
		t.Errorf("%s is no known case", id)
	}
	t.Logf("%d cases are held by tests", held)
}
