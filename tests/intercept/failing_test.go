// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
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

// Each function of the driver that the library calls fails, as if it had never been
// called: the program goes on, the sanitizers have nothing to say (make test-asan), and
// the ledger is never below the driver's own figure and no other than it once the
// driver works again. GPUSHARE_TEST_FAULTS=all lets each fail at its first, second and
// fifth call by themselves, also with results full of nonsense.

// called are the functions of the real library that ours calls.
func called(t *testing.T, table string) []string {
	t.Helper()
	names := slices.Concat(tabled(t, table, "HOOK"), used(t, table))
	slices.Sort(names)
	return slices.Compact(names)
}

// plan is one way in which a call fails.
type plan struct {
	nth     []uint64
	outputs string
}

func (p plan) String() string { return fmt.Sprintf("%d %s", p.nth, p.outputs) }

func plans() []plan {
	if os.Getenv("GPUSHARE_TEST_FAULTS") != "all" {
		return []plan{{[]uint64{1, 2, 5}, "untouched"}}
	}
	var all []plan
	for _, outputs := range []string{"untouched", "garbage"} {
		for _, nth := range []uint64{1, 2, 5} {
			all = append(all, plan{[]uint64{nth}, outputs})
		}
	}
	return all
}

// arm makes a call fail and returns how often it has, and the end of it.
func (p plan) arm(t *testing.T, a *host.AdminClient, call string) (end func() (hits uint64)) {
	t.Helper()
	var ids []int
	for _, nth := range p.nth {
		r, err := a.AddFault(t.Context(), fault.Spec{Call: "=" + call, RC: "999", Nth: nth, Outputs: p.outputs})
		if err != nil {
			t.Fatalf("%s: %v", call, err)
		}
		ids = append(ids, r.ID)
	}
	return func() (hits uint64) {
		rules, err := a.Faults(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules {
			hits += r.Hits
		}
		for _, id := range ids {
			if err := a.RemoveFault(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		return hits
	}
}

// TestCRASH01EveryCallFails: the walk over all rows, and launches of every form.
func TestCRASH01EveryCallFails(t *testing.T) {
	long(t)
	program := walkProgram(t)
	calls := slices.DeleteFunc(called(t, "cuda.def"), func(call string) bool {
		return strings.HasPrefix(call, "cuGetProcAddress") || call == "cuGetExportTable" // only asked; TestLookups
	})
	never := failEach(t, program, calls, false)
	never = failEach(t, program, never, true) // more is asked about a card
	t.Logf("never called: %v", never)
}

// failEach lets each of the calls fail while the walk goes over all rows, and returns
// those that were never made.
func failEach(t *testing.T, program string, calls []string, card bool) (never []string) {
	flags := []string{"--driver", "newest"}
	if card {
		flags = append(flags, "--profile", "h100")
	}
	w := startWalker(t, simulateGPUs(t, 1, flags...), program)
	w.args, w.ceiling, w.card = []string{"again"}, 500, card
	runs, hit := 0, 0
	for _, call := range calls {
		touched := false
		for _, p := range plans() {
			runs++
			w.row = hooked{symbol: call + " " + p.String()}
			end := p.arm(t, w.admin, call)
			w.renew()
			w.all()
			now := figures{w.driverNow(), w.ledgerNow()}
			hits := end()
			touched = touched || hits > 0
			if now.ledger < now.driver {
				w.errorf("ledger %d, driver %d", now.ledger, now.driver)
			}
			if said := w.all(); said != "" {
				w.errorf("when the driver works again: %s", said)
			}
			w.settle()
			w.close("when the driver works again", w.figures("when the driver works again"))
			if said := w.stderr.String(); said != "" {
				w.errorf("the program says: %s", said)
				w.stderr.Reset()
			}
		}
		if touched {
			hit++
		} else {
			never = append(never, call)
		}
	}
	t.Logf("SIMULATED: %d runs, %d functions have failed", runs, hit)
	return never
}

// TestCRASH01ThreadsWhileCallsFail: threads take memory and give it back at the limit,
// and every seventh call of a function fails.
func TestCRASH01ThreadsWhileCallsFail(t *testing.T) {
	const limit = 256 * mib
	n := simulateGPUs(t, 1, "--driver", "newest")
	admin := host.NewAdminClient(filepath.Join(n.dir, "admin.sock"))
	program := compile(t, "edge.c")
	for _, call := range []string{
		"cuCtxGetCurrent", "cuCtxGetDevice", "cuDeviceGetUuid", "cuMemAlloc_v2", "cuMemAllocManaged", "cuMemAllocPitch_v2",
		"cuMemCreate", "cuArrayCreate_v2", "cuMemFree_v2", "cuMemRelease", "cuArrayDestroy",
	} {
		t.Run(call, func(t *testing.T) {
			r, err := admin.AddFault(t.Context(), fault.Spec{Call: "=" + call, RC: "999", Nth: 20, Every: 7})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = admin.RemoveFault(t.Context(), r.ID) }()
			waitFor(t, "an empty GPU", func() bool { return n.gpu().Used == 0 })
			c := n.container(limit)
			c.t = t
			reports := c.reports()
			h := c.start(true, program, "2", "4", "2000", edgeWays())
			if used, charged := n.gpu().Used, c.ledger()[0]; charged != used || n.gpu().High > limit {
				t.Errorf("ledger %d, simulator %d, %d at most", charged, used, n.gpu().High)
			}
			_ = h.in.Close()
			if err := h.cmd.Wait(); err != nil {
				t.Error(err)
			}
			reports()
		})
	}
}

// reports has the sanitizers of all processes write to files; the function that it
// returns fails the test if one has.
func (c *container) reports() func() {
	c.t.Helper()
	dir := c.t.TempDir()
	for _, s := range []string{"ASAN_OPTIONS=detect_leaks=0:", "UBSAN_OPTIONS=print_stacktrace=1:", "TSAN_OPTIONS="} {
		c.env = append(c.env, s+"log_path="+filepath.Join(dir, "report"))
	}
	return func() {
		c.t.Helper()
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, f := range files {
			text, err := os.ReadFile(f)
			c.t.Errorf("%s: %v\n%s", filepath.Base(f), err, text)
		}
	}
}

// TestCRASH01EveryQuestionToNVMLFails: each getter is asked, and tenant's view of its
// card, while a function of NVML fails that the library calls.
func TestCRASH01EveryQuestionToNVMLFails(t *testing.T) {
	long(t)
	n := simulateGPUs(t, 1, "--profile", "h100", "--driver", "newest")
	admin := host.NewAdminClient(filepath.Join(n.dir, "admin.sock"))
	source, _ := getters(t)
	source = strings.Replace(source, "int n = SIZE;", "int n = 64;", 1) // to look at little of each answer saves a minute
	src := filepath.Join(t.TempDir(), "getters.c")
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "getters")
	compile(t, "", src, "-o", program)
	c := n.container(1024 * mib)
	tenant := compile(t, "tenant.c")
	c.start(true, tenant, "init", fmt.Sprintf("alloc=%d", 100*mib), "hold")
	runs, hit, shown, never := 0, 0, 0, []string{}
	for _, call := range called(t, "nvml.def") {
		touched := false
		for _, p := range plans() {
			runs++
			end := p.arm(t, admin, call)
			cmd, view := c.command(t.Context(), program), c.command(t.Context(), tenant, "nvml")
			var said bytes.Buffer
			cmd.Stderr, view.Stderr = &said, &said
			out, err := cmd.Output()
			verr := view.Run() // ends with 1 where an answer is not what it wants
			touched = end() > 0 || touched
			if err != nil || view.ProcessState.ExitCode() < 0 || view.ProcessState.ExitCode() > 1 || said.Len() > 0 {
				t.Errorf("%s %v: %v, %v\n%s", call, p, err, verr, said.String())
			}
			// What is told of memory is the slice, or an error: never the card.
			for _, m := range regexp.MustCompile(`(?m)^nvmlDeviceGetMemoryInfo 0 (\w{16})`).FindAllStringSubmatch(string(out), -1) {
				shown++
				if m[1] != "0000004000000000" {
					t.Errorf("%s %v: total is %s", call, p, m[1])
				}
			}
		}
		if touched {
			hit++
		} else {
			never = append(never, call)
		}
	}
	if shown < runs/2 {
		t.Errorf("memory was shown in %d of %d runs", shown, runs)
	}
	t.Logf("SIMULATED: %d runs, %d functions have failed; never called: %v", runs, hit, never)
}

// all takes every row through, and returns what failed.
func (w *walker) all() string {
	w.t.Helper()
	fmt.Fprintf(w.in, "all %d\n", 3*mib)
	var failed []string
	for _, word := range strings.Fields(w.line()) {
		symbol, code, _ := strings.Cut(word, ":")
		if want, known := notSimulated[symbol]; !known || code != fmt.Sprintf("take:%d", want) {
			failed = append(failed, word)
		}
	}
	return strings.Join(failed, " ")
}
