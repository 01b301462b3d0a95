// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/simgpu/fault"
)

// The walk asks every call of class charge and release, found by every way there is,
// for memory under the limit, at it and over it, and lets the driver fail at it. Each
// call is a row in cuda-intercept/test/walk. Figures are the simulator's.

// granule is the unit in which every driver counts.
const granule = 512

// hooked is a row of cuda.def that has a wrapper.
type hooked struct {
	base, symbol   string
	since          int
	flavour, class string
}

// hookedRows reads the rows that have a wrapper.
func hookedRows(t *testing.T) []hooked {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "cuda-intercept/hooks/cuda.def"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []hooked
	for _, m := range regexp.MustCompile(`(?m)^HOOK\((\w+), (\w+), (\d+), (\w+), (\w+), \w+\)`).FindAllStringSubmatch(string(text), -1) {
		since, _ := strconv.Atoi(m[3])
		rows = append(rows, hooked{m[1], m[2], since, m[4], m[5]})
	}
	if len(rows) < 70 {
		t.Fatalf("%d rows have a wrapper", len(rows))
	}
	return rows
}

// walked are the rows that the walk must have.
func walked(t *testing.T) []hooked {
	t.Helper()
	return slices.DeleteFunc(hookedRows(t), func(h hooked) bool { return h.class != "charge" && h.class != "release" })
}

// walkProgram compiles the rows, linked to the library by the names that have a wrapper.
func walkProgram(t *testing.T) string {
	t.Helper()
	var declared, listed strings.Builder
	flavours := map[string]int{"ANY": 0, "LEGACY": 1, "PER_THREAD": 2}
	for _, h := range hookedRows(t) {
		fmt.Fprintf(&declared, "extern void %s(void);\n", h.symbol)
		fmt.Fprintf(&listed, "\t{\"%s\", \"%s\", %d, %d, (void *)%s},\n", h.base, h.symbol, h.since, flavours[h.flavour], h.symbol)
	}
	list := filepath.Join(t.TempDir(), "names.c")
	text := "struct walk_name { const char *base, *symbol; int since, flavour; void *linked; };\n" + declared.String() +
		"extern const struct walk_name walk_names[];\nconst struct walk_name walk_names[] = {\n" + listed.String() + "\t{0, 0, 0, 0, 0},\n};\n"
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root(t), "cuda-intercept/test/walk/*.c"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		files[i] = filepath.Join("walk", filepath.Base(f))
	}
	// The names are declared as linkers see them, so the wrapper's type is not gcc's business.
	return compile(t, strings.Join(files, " "), list, filepath.Join(libraries(t), "libcuda.so.1"), "-fno-builtin",
		"-Wl,--allow-shlib-undefined")
}

// ways are those by which a program finds a function; leads tells whether it must find
// a row's by it.
var ways = []struct {
	name  string
	leads func(h hooked) bool
}{
	{"link", always},
	{"handle", always},
	{"default", always},
	{"next", always},
	{"dlvsym", func(hooked) bool { return false }}, // the names have no versions; the driver's have none either
	{"get 1 0", legacy},
	{"get 1 1", legacy},
	{"get 1 2", perThread},
	{"get 1 3", perThread},
	{"get 2 0", legacy},
	{"get 2 1", legacy},
	{"get 2 2", perThread},
	{"get 2 3", perThread},
}

func always(hooked) bool      { return true }
func legacy(h hooked) bool    { return h.since > 0 && h.flavour != "PER_THREAD" }
func perThread(h hooked) bool { return h.since > 0 && h.flavour != "LEGACY" }

// TestWalkHasEveryRow: a call that takes memory or gives it back cannot be added
// without a row here.
func TestWalkHasEveryRow(t *testing.T) {
	w := newWalker(t)
	var got, want []string
	for _, h := range walked(t) {
		want = append(want, h.symbol)
	}
	fmt.Fprintln(w.in, "rows")
	for {
		line := w.line()
		if line == "." {
			break
		}
		got = append(got, line)
	}
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s has no row in cuda-intercept/test/walk", name)
		}
	}
	for i, name := range got {
		if slices.Contains(got[:i], name) {
			t.Errorf("%s has two rows", name)
		}
	}
	t.Logf("%d calls of class charge and release, %d rows", len(want), len(got))
}

// TestWalk: by every way, on a card that counts to the byte.
func TestWalk(t *testing.T) {
	program := walkProgram(t)
	for _, way := range ways {
		t.Run(strings.ReplaceAll(way.name, " ", "-"), func(t *testing.T) {
			n := simulateGPUs(t, 1, "--driver", "newest")
			w := startWalker(t, n, program)
			calls, led, costly := 0, 0, 0
			for _, h := range walked(t) {
				w.ask("way %s", way.name)
				can := w.ask("can %s", h.symbol)
				switch {
				case can[0] == -1:
					t.Errorf("%s leads to another function than dlsym", h.symbol)
				case can[0] == 0 && way.leads(h):
					t.Errorf("%s is not found", h.symbol)
				case can[0] == 1:
					led++
				}
				if !way.leads(h) {
					continue
				}
				calls++
				if w.walk(h) {
					costly++
				}
				w.renewIfDirty()
			}
			t.Logf("SIMULATED: %d calls walked, %d with a cost, %d found this way", calls, costly, led)
		})
	}
}

// TestWalkOnACard: the same on a card that takes memory in blocks, by itself for code and
// heaps, and in advance for pools: the ledger is never below the simulator's figure, within
// 1 % of it once settled, and the card never holds more than the limit.
func TestWalkOnACard(t *testing.T) {
	n := simulateGPUs(t, 1, "--driver", "newest", "--profile", "h100")
	w := startWalker(t, n, walkProgram(t))
	w.card = true
	w.renew()
	for _, h := range walked(t) {
		w.walk(h)
		w.renewIfDirty()
	}
}

// TestWalkDriverWritesAndFails: the driver does what it is asked, writes its results and
// says that it has failed. What it has taken it keeps, whoever is in between; not more
// than that is charged, and the caller's results are as they were.
func TestWalkDriverWritesAndFails(t *testing.T) {
	n := simulateGPUs(t, 1, "--driver", "newest")
	w := startWalker(t, n, walkProgram(t))
	for _, h := range walked(t) {
		w.failsAfterAll(h)
		w.renew()
	}
}

// walk takes one row through all that there is to try. It tells whether the call has a
// cost on this card.
func (w *walker) walk(h hooked) (costs bool) {
	w.row = h
	const bytes = 5*mib + 1
	if r := w.ask("ready %s", h.symbol); r[0] != 0 {
		w.errorf("ready: %d", r[0])
		return false
	}
	costs = w.walkReady(h, bytes)
	if r := w.ask("done %s", h.symbol); r[0] != 0 {
		w.errorf("done: %d", r[0])
	}
	return costs
}

func (w *walker) walkReady(h hooked, bytes uint64) (costs bool) {
	w.settle()
	before := w.figures("before")
	if not := w.take(bytes); not != 0 {
		w.notSimulated(before, not)
		return false
	}
	if w.card { // what stays with the context is there from now on
		w.give("first", before)
		before = w.figures("before")
		if not := w.take(bytes); not != 0 {
			w.errorf("again: %d", not)
			return false
		}
	}
	held := w.figures("taken")
	cost, driver := held.ledger-before.ledger, held.driver-before.driver
	if cost < driver || !w.card && cost != driver {
		w.errorf("the driver took %d, charged were %d", driver, cost)
	}
	w.settle()
	w.close("taken", w.figures("taken, settled"))
	w.give("given back", before)
	if h.class == "release" {
		w.driverFailsAtGive(before, bytes)
		return cost > 0
	}
	if cost > 0 {
		w.limits(cost, bytes)
	}
	w.driverFailsAtTake(bytes)
	return cost > 0
}

// limits asks at the limit and one granule below what is needed.
func (w *walker) limits(cost, bytes uint64) {
	defer w.setLimit(plenty)
	for _, at := range []struct {
		what string
		room uint64
		want int
	}{
		{"at the limit", cost, 0},
		{"one granule over", cost - granule, 2},
		{"one byte over", cost - 1, 2},
		{"at the limit again", cost, 0},
		{"nothing left", 0, 2},
	} {
		before := w.figures(at.what)
		limit := before.ledger + at.room
		w.setLimit(limit)
		got := w.take(bytes)
		if w.card && cautious[w.row.symbol] && at.want == 0 && got == 2 {
			w.t.Logf("%s: %s: refused, though it fits", w.row.symbol, at.what)
		} else if got != at.want {
			w.errorf("%s: %d, want %d", at.what, got, at.want)
		}
		if got == 0 {
			w.give(at.what, before)
		}
		if now := w.figures(at.what); now.driver != before.driver || now.ledger != before.ledger {
			w.errorf("%s: driver %d, ledger %d, want %d and %d", at.what, now.driver, now.ledger, before.driver, before.ledger)
		}
		if high := w.high(); high > limit {
			w.errorf("%s: the driver has held %d bytes over the limit", at.what, high-limit)
		}
	}
}

// cautious are the calls that on a card may be refused although they fit: all memory of
// a graph is charged before it is known how much of it the driver has already.
var cautious = map[string]bool{"cuGraphInstantiateWithParams": true, "cuGraphInstantiateWithParams_ptsz": true}

// faults are the ways in which a call fails that the driver does not make.
var faults = []string{"untouched", "garbage"}

const failure = 719

func (w *walker) driverFailsAtTake(bytes uint64) {
	before := w.figures("before failures")
	for _, outputs := range faults {
		clear := w.fail(outputs)
		if got := w.take(bytes); got != failure {
			w.errorf("the driver fails, outputs %s: %d, want %d", outputs, got, failure)
		}
		clear()
		w.settle()
		if now := w.figures(outputs); now != before {
			w.errorf("the driver failed, outputs %s: %+v, before %+v", outputs, now, before)
		}
	}
	if got := w.take(bytes); got != 0 {
		w.errorf("after failures: %d", got)
	} else {
		w.give("after failures", before)
	}
}

func (w *walker) driverFailsAtGive(before figures, bytes uint64) {
	if got := w.take(bytes); got != 0 {
		w.errorf("again: %d", got)
		return
	}
	w.settle()
	held := w.figures("held")
	for _, outputs := range faults {
		clear := w.fail(outputs)
		if got := w.ask("give %s", w.row.symbol); got[0] != failure {
			w.errorf("the driver fails to give back: %d, want %d", got[0], failure)
		}
		clear()
		if now := w.figures(outputs); now != held {
			w.errorf("the driver failed to give back: %+v, held %+v", now, held)
		}
	}
	w.give("after failures", before)
}

// failsAfterAll lets the driver make the call and say that it failed.
func (w *walker) failsAfterAll(h hooked) {
	w.row = h
	w.ask("ready %s", h.symbol)
	before := w.figures("before")
	if h.class == "charge" {
		clear := w.fail("written")
		got := w.take(4 * mib)
		clear()
		if got == notSimulated[h.symbol] {
			return // the simulator has no such call
		}
		// Where the driver can be asked (pools, the primary context) what it holds is seen.
		if now := w.ledgerNow(); got != failure || now != before.ledger && now != w.driverNow() {
			w.errorf("made, then failed: %d, ledger %d, before %d, driver %d", got, now, before.ledger, w.driverNow())
		}
		return
	}
	if got := w.take(4 * mib); got != 0 {
		w.errorf("take: %d", got)
		return
	}
	clear := w.fail("written")
	got := w.ask("give %s", h.symbol)
	clear()
	// It is gone and stays charged: above the driver's figure, never below.
	if now := w.ledgerNow(); got[0] != failure || now < w.driverNow() {
		w.errorf("given back, then failed: %d, ledger %d, driver %d", got[0], now, w.driverNow())
	}
}

// fail makes the row's own call fail until clear is called.
func (w *walker) fail(outputs string) (clear func()) {
	w.t.Helper()
	r, err := w.admin.AddFault(w.t.Context(), fault.Spec{
		Call: "=" + w.row.symbol, RC: fault.Text(fmt.Sprint(failure)), Outputs: outputs,
	})
	if err != nil {
		w.t.Fatalf("%s: %v", w.row.symbol, err)
	}
	return func() {
		if err := w.admin.RemoveFault(w.t.Context(), r.ID); err != nil {
			w.t.Fatalf("%s: %v", w.row.symbol, err)
		}
	}
}
