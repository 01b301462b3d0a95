// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpushare/gpushare/limiter/region"
)

// outputs runs a program and returns what it wrote, each way for itself, and its code.
func (c *container) outputs(program string, args ...string) (stdout, stderr string, code int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	var out, msg bytes.Buffer
	cmd := c.command(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &msg
	_ = cmd.Run()
	return out.String(), msg.String(), cmd.ProcessState.ExitCode()
}

// A program's two outputs and its exit code are its own, to the byte, and so is all
// that it has set up, whatever state our files are in: also case CRASH-06.
func TestQuietInEveryStateCRASH06(t *testing.T) {
	if sanitized() {
		t.Skip("the sanitizers write and start threads")
	}
	if counting() {
		t.Skip("another user cannot write the counts, and gcov says so")
	}
	program := compile(t, "quiet.c", "-lm")
	driver := standIn(t)
	chmod := func(name string, mode os.FileMode) func(string) error {
		return func(dir string) error { return os.Chmod(filepath.Join(dir, name), mode) }
	}
	for name, state := range map[string]struct {
		damage func(dir string) error
		want   string
		user   bool // without root's rights
	}{
		"sound":               {func(string) error { return nil }, "0", false},
		"sound, another user": {func(string) error { return nil }, "0", true},
		"no page":             {func(dir string) error { return os.Remove(filepath.Join(dir, "limits")) }, "802", false},
		"no ledger":           {func(dir string) error { return os.Remove(filepath.Join(dir, "ledger")) }, "802", false},
		"neither":             {func(dir string) error { return os.RemoveAll(filepath.Join(dir, "limits")) }, "802", true},
		"empty ledger":        {func(dir string) error { return os.Truncate(filepath.Join(dir, "ledger"), 0) }, "802", false},
		"zeros for a ledger": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "ledger"), make([]byte, region.LedgerSize(1)), 0o666)
		}, "802", false},
		"a page that cannot be read":      {chmod("limits", 0), "802", true},
		"a ledger that cannot be read":    {chmod("ledger", 0o222), "802", true},
		"a ledger that cannot be written": {chmod("ledger", 0o444), "802", true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newContainer(t, standInLimit())
			c.driver = driver
			if err := state.damage(c.dir); err != nil {
				t.Fatal(err)
			}
			argv := []string{program, state.want, "42"}
			if state.user {
				if err := os.Chmod(filepath.Dir(program), 0o755); err != nil {
					t.Fatal(err)
				}
				argv = append([]string{"setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "--inh-caps=-all"}, argv...)
			}
			if out, msg, code := c.outputs(argv[0], argv[1:]...); out != "out\n" || msg != "err\n" || code != 42 {
				t.Errorf("code %d, output %q, error output %q", code, out, msg)
			}
		})
	}
}

// The libraries are opened and closed a thousand times: nothing grows.
func TestOpenedAgainAndAgain(t *testing.T) {
	if sanitized() {
		t.Skip("the sanitizers' heap is not the C library's")
	}
	n := simulate(t)
	c := n.container(1024 * mib)
	if out, err := c.run(compile(t, "reopen.c"), "1000"); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
}

// Where there is no driver, programs that do not ask for one run as ever, and those
// that do are told by the loader: case INJ-07.
func TestNoDriverINJ07(t *testing.T) {
	c := newContainer(t, standInLimit())
	for _, program := range [][]string{{"true"}, {"bash", "-c", ":"}, {"sh", "-c", "exit 0"}} {
		if out, msg, code := c.outputs(program[0], program[1:]...); out != "" || msg != "" || code != 0 {
			t.Errorf("%q: code %d, output %q, error output %q", program, code, out, msg)
		}
	}
	out, _, code := c.outputs(compile(t, "tenant.c"), "init")
	if code != 2 || !strings.Contains(out, "cuda.real") {
		t.Errorf("a program that wants the driver: code %d, output %q", code, out)
	}
}

// What the driver says of pairs of GPUs is what it says without us, and no variable of
// other limiters, or of a name like ours, takes the limit away: case INJ-11.
func TestPeersAndSwitchesINJ11(t *testing.T) {
	n := simulateGPUs(t, 2)
	c := n.containerOn(n.limit(0, 512*mib), n.limit(1, 512*mib))
	program, tenant := compile(t, "peers.c"), compile(t, "tenant.c")
	ours, err := c.run(program)
	if err != nil || len(linesOf(ours)) != 5 {
		t.Fatalf("%v\n%s", err, ours)
	}
	bare := *c
	bare.env = append(slices.Clone(c.env), "LD_LIBRARY_PATH="+filepath.Join(n.dir, "lib"))
	if sanitized() {
		t.Skip("the simulator alone is not built with sanitizers")
	}
	if want, err := bare.run(program); err != nil || ours != want {
		t.Errorf("%v: through us\n%s\nwithout\n%s", err, ours, want)
	}
	for _, off := range []string{
		"CUDA_DISABLE_CONTROL=true", "GPUSHARE_DISABLE=1", "GPUSHARE_MEMORY=64Gi", "GPU_CORE_UTILIZATION_POLICY=disable",
		"CUDA_DEVICE_MEMORY_LIMIT=0", "ACTIVE_OOM_KILLER=false", "LD_BIND_NOW=1", "NVIDIA_VISIBLE_DEVICES=all",
	} {
		c.env = append(slices.Clone(bare.env[:len(bare.env)-1]), off)
		if out, err := c.run(tenant, "init", "alloc=600000000"); err != nil || out != "alloc 2\n" {
			t.Errorf("%s: %v, output %q", off, err, out)
		}
	}
}
