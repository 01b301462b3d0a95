// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/limiter/region"
	"github.com/gpushare/gpushare/simgpu/host"
)

// plenty is a limit that no row comes near.
const plenty = 4096 * mib

// walker drives the program of cuda-intercept/test/walk and looks at both accounts.
type walker struct {
	t       *testing.T
	n       *node
	c       *container
	admin   *host.AdminClient
	ledger  *region.Ledger
	program string
	row     hooked
	card    bool // it counts in blocks: the ledger may be above the driver's figure
	args    []string
	ceiling uint32 // milli-GPU; 0: all of it
	bare    bool   // over the driver by itself

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	stderr bytes.Buffer
}

// figures are both accounts at one moment at which nobody works.
type figures struct{ driver, ledger uint64 }

func newWalker(t *testing.T) *walker {
	t.Helper()
	return startWalker(t, simulateGPUs(t, 1, "--driver", "newest"), walkProgram(t))
}

func startWalker(t *testing.T, n *node, program string) *walker {
	t.Helper()
	w := &walker{t: t, n: n, program: program, admin: host.NewAdminClient(filepath.Join(n.dir, "admin.sock"))}
	n.t = t
	w.renew()
	t.Cleanup(w.end)
	return w
}

// renew starts the program anew, in a new container.
func (w *walker) renew() {
	w.t.Helper()
	w.end()
	waitFor(w.t, "an empty GPU", func() bool { return w.n.gpu().Used == 0 })
	g := w.n.limit(0, plenty)
	if w.ceiling > 0 {
		g.ComputeMilli, g.CeilingMilli = w.ceiling, w.ceiling
	}
	w.c = w.n.containerOn(g)
	if w.bare {
		w.c.env = append(w.c.env, "LD_LIBRARY_PATH="+filepath.Join(w.n.dir, "lib"))
	}
	l, err := region.OpenLedger(filepath.Join(w.c.dir, "ledger"), 1)
	if err != nil {
		w.t.Fatal(err)
	}
	w.ledger = l
	w.cmd = w.c.command(w.t.Context(), w.program, w.args...)
	w.cmd.Stderr = &w.stderr
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		w.t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	w.out = bufio.NewScanner(out)
	if err := w.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	if r := w.line(); r != "0" {
		w.t.Fatalf("the walk does not start: %s", r)
	}
}

func (w *walker) end() {
	if w.cmd == nil {
		return
	}
	_ = w.in.Close()
	_ = w.cmd.Wait()
	w.ledger.Close()
	w.cmd = nil
}

// renewIfDirty starts anew after a row that left something, so that others are not
// blamed for it.
func (w *walker) renewIfDirty() {
	if now := (figures{w.driverNow(), w.ledgerNow()}); now.driver != contextBytes || now.ledger != contextBytes {
		if !w.card {
			w.errorf("afterwards the driver holds %d and the ledger %d", now.driver, now.ledger)
		}
		w.renew()
	}
}

func (w *walker) line() string {
	w.t.Helper()
	if !w.out.Scan() {
		w.t.Fatalf("%s: the program has ended: %v\n%s", w.row.symbol, w.cmd.Wait(), w.stderr.String())
	}
	return w.out.Text()
}

// ask sends a command and returns the numbers of the answer.
func (w *walker) ask(format string, args ...any) []int {
	w.t.Helper()
	fmt.Fprintf(w.in, format+"\n", args...)
	line := w.line()
	if name, is := strings.CutPrefix(line, "no "); is {
		panic(lacks(name))
	}
	var got []int
	for _, f := range strings.Fields(line) {
		n, err := strconv.Atoi(f)
		if err != nil {
			w.t.Fatalf("%s: %q", fmt.Sprintf(format, args...), line)
		}
		got = append(got, n)
	}
	return got
}

// lacks is what ask panics with where a driver lacks a function that a row needs.
type lacks string

// lacking walks and returns the name of the function for whose lack that ended, if so.
func (w *walker) lacking(walk func()) (name string) {
	w.t.Helper()
	defer func() {
		switch e := recover().(type) {
		case nil:
		case lacks:
			name = string(e)
			w.renew()
		default:
			panic(e)
		}
	}()
	walk()
	return ""
}

// take makes the row's call and checks that a failed one leaves its results alone.
func (w *walker) take(bytes uint64) int {
	w.t.Helper()
	if err := w.admin.Reset(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	got := w.ask("take %s %d", w.row.symbol, bytes)
	if w.row.class == "charge" && got[0] != 0 && got[1] != 1 {
		w.errorf("failed with %d and changed its results", got[0])
	}
	return got[0]
}

// give gives back what was taken. To the byte all is as before; on a card, where code
// and heaps may stay with a context, it is once the driver's figure has been looked at.
func (w *walker) give(what string, want figures) {
	w.t.Helper()
	if r := w.ask("give %s", w.row.symbol); r[0] != 0 {
		w.errorf("%s: giving back: %d", what, r[0])
	}
	w.settle()
	now := w.figures(what)
	if !w.card && now != want {
		w.errorf("%s: driver %d, ledger %d, before %d and %d", what, now.driver, now.ledger, want.driver, want.ledger)
	}
	w.close(what, now)
}

// close wants both accounts within 1 % of each other.
func (w *walker) close(what string, now figures) {
	w.t.Helper()
	// Managed memory is charged in full, wherever its pages are.
	if now.ledger > now.driver+now.driver/100 && w.row.symbol != "cuMemAllocManaged" {
		w.errorf("%s, settled: ledger %d, driver %d", what, now.ledger, now.driver)
	}
}

// settle does what the daemon does: it looks at the driver's figure and says what the
// driver has taken beyond what the ledger announces.
func (w *walker) settle() {
	w.t.Helper()
	if !w.card {
		return
	}
	look := w.c.limits.BeginSettle()
	driver, announced := w.driverNow(), w.usage().Bytes
	w.c.limits.EndSettle(0, look, max(driver, announced)-announced)
}

func (w *walker) driverNow() uint64 { return w.status().UsedBytes }

func (w *walker) status() host.GPUStatus {
	w.t.Helper()
	s, err := w.admin.Status(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return s.GPUs[0]
}

func (w *walker) usage() region.GPUUsage {
	w.t.Helper()
	u, err := w.ledger.Read()
	if err != nil {
		w.t.Fatal(err)
	}
	return u.GPU[0]
}

// ledgerNow is what is charged: what is announced, guesses that no look has seen, and
// what looks have found.
func (w *walker) ledgerNow() uint64 {
	w.t.Helper()
	u, g := w.usage(), w.c.limits.GPU(0)
	if g.SettleDone >= u.GuessMark {
		u.Guess = 0
	}
	return u.Bytes + u.Guess + g.Growth
}

// figures compares the accounts.
func (w *walker) figures(what string) figures {
	w.t.Helper()
	now := figures{w.driverNow(), w.ledgerNow()}
	if now.ledger < now.driver || !w.card && now.ledger != now.driver {
		w.errorf("%s: ledger %d, driver %d", what, now.ledger, now.driver)
	}
	return now
}

// high is the most that the driver has held since the last take began.
func (w *walker) high() uint64 { return w.status().HighBytes }

func (w *walker) setLimit(bytes uint64) { w.c.limits.SetMemory(0, bytes) }

// notSimulated are the calls that the simulator refuses, with what it says: there is no
// graphics driver. That nothing is charged for them shows here, the rest in TestABIs.
var notSimulated = map[string]int{
	"cuGLCtxCreate": 219, "cuGLCtxCreate_v2": 219, "cuVDPAUCtxCreate": 801, "cuVDPAUCtxCreate_v2": 801,
	"cuLibraryGetManaged": 500,
}

// costless are those of them that cost nothing on a card that counts to the byte; what
// they cost on another is in TestCode.
var costless = map[string]bool{"cuLibraryGetManaged": true}

func (w *walker) notSimulated(before figures, got int) {
	w.t.Helper()
	if want, known := notSimulated[w.row.symbol]; !known || got != want {
		w.errorf("%d under the limit", got)
	}
	if now := w.figures("refused"); now != before {
		w.errorf("the driver refused: %+v, before %+v", now, before)
	}
	w.setLimit(before.ledger)
	if got := w.take(mib); got != 2 && !costless[w.row.symbol] {
		w.errorf("nothing left: %d, want 2", got)
	}
	w.setLimit(plenty)
}

func (w *walker) errorf(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("%s: %s", w.row.symbol, fmt.Sprintf(format, args...))
}
