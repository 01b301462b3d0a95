// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/simgpu/api"
)

// seldom are the names that a driver's libraries may lack: all that came with CUDA
// 10.0 and later, and what libnvidia-ml has beyond the first that was read.
func seldom(nvml bool) (names []string) {
	for _, n := range slices.Concat(api.CUDA(), api.NVML()) {
		if n.NVML == nvml && !n.Data() && (n.Since >= 10000 || nvml && n.First > 11000) {
			names = append(names, n.Symbol)
		}
	}
	return names
}

// together are the questions that came with what they ask of: a driver whose graphs
// allocate memory says how much.
var together = []string{"cuGraphMemAllocNodeGetParams", "cuDeviceGetGraphMemAttribute"}

// without is what simgpu up is told to take out of a driver: of what the library asks
// of the driver all that a driver may lack, and 30 names of each library by chance.
func without(t *testing.T, branch string) (flags, names []string) {
	t.Helper()
	h := fnv.New64()
	_, _ = h.Write([]byte(branch))
	chance := rand.New(rand.NewPCG(h.Sum64(), 1)) //nolint:gosec // no secret
	for nvml, soname := range map[bool]string{false: "libcuda.so.1", true: "libnvidia-ml.so.1"} {
		has := exported(t, filepath.Join(root(t), "build/simgpu/lib", directory(branch), soname))
		could := slices.DeleteFunc(seldom(nvml), func(name string) bool { return !slices.Contains(has, name) })
		for _, name := range used(t, "cuda.def") {
			if slices.Contains(could, name) && !slices.Contains(together, name) {
				names = append(names, name)
			}
		}
		chance.Shuffle(len(could), func(i, j int) { could[i], could[j] = could[j], could[i] })
		could = slices.DeleteFunc(could, func(name string) bool { return slices.Contains(together, name) })
		names = append(names, could[:min(30, len(could))]...)
	}
	for _, name := range names {
		flags = append(flags, "--absent", "="+name)
	}
	slices.Sort(names)
	return flags, slices.Compact(names)
}

func directory(branch string) string {
	if branch == api.Default.Branch {
		return ""
	}
	return branch
}

// used are the functions of the real library that ours calls.
func used(t *testing.T, table string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "cuda-intercept/hooks", table))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if name, is := strings.CutPrefix(line, "USES("); is {
			names = append(names, strings.TrimSuffix(name, ")"))
		}
	}
	return names
}

// onEveryDriver runs a test over each branch, whole and with names taken out.
func onEveryDriver(t *testing.T, test func(t *testing.T, n *node)) {
	t.Helper()
	for _, d := range api.Drivers {
		branch := d.Branch
		flags, names := without(t, branch)
		t.Run(branch, func(t *testing.T) { test(t, simulateGPUs(t, 1, "--driver", branch)) })
		t.Run(branch+"-without", func(t *testing.T) {
			t.Logf("without %s", strings.Join(names, " "))
			test(t, simulateGPUs(t, 1, append(flags, "--driver", branch)...))
		})
	}
}

// Whatever the driver, and whatever it lacks: dlsym and cuGetProcAddress give our
// wrapper of exactly the form that the driver would give, and nothing where it gives
// nothing; also for what runtimes ask.
func TestLookupsOnEveryDriver(t *testing.T) {
	long(t)
	if sanitized() {
		t.Skip("the same code with the same names as without sanitizers, and minutes long with them")
	}
	onEveryDriver(t, func(t *testing.T, n *node) {
		c := n.container(1024 * mib)
		swapped := c.lookups()
		if has := exported(t, c.driver); slices.Contains(has, "cuGetProcAddress") {
			c.replay()
			if swapped == 0 {
				t.Error("no answer is ours")
			}
		}
	})
}

// The walk over each driver: calls that it has are charged as over the newest one,
// those that it lacks are not found.
func TestWalkOnEveryDriver(t *testing.T) {
	long(t)
	program := walkProgram(t)
	onEveryDriver(t, func(t *testing.T, n *node) {
		w := startWalker(t, n, program)
		has := exported(t, w.c.driver)
		calls, lacking := 0, 0
		for _, h := range walked(t) {
			can := w.ask("can %s", h.symbol)[0]
			switch {
			case slices.Contains(has, h.symbol) && can == 1:
				if name := w.lacking(func() { w.walk(h) }); name == "" {
					calls++
					w.renewIfDirty()
				} else if slices.Contains(has, name) {
					t.Errorf("%s: no %s", h.symbol, name)
				} else {
					t.Logf("%s is not tried, for there is no %s", h.symbol, name)
				}
			case !slices.Contains(has, h.symbol) && can == 0:
				lacking++
			default:
				t.Errorf("%s: look-up says %d", h.symbol, can)
			}
		}
		t.Logf("SIMULATED: %d calls walked, %d are not there", calls, lacking)
	})
}

// A program that is linked to names which the driver lacks, and calls them, is told so
// by each of them.
func TestEveryAbsentNameAnswers(t *testing.T) {
	flags, _ := without(t, "450")
	n := simulateGPUs(t, 1, append(flags, "--driver", "450")...)
	c := n.container(512 * mib)
	var declared, calls strings.Builder
	count := 0
	for table, lib := range map[string]string{"cuda.def": c.driver, "nvml.def": c.nvml} {
		has := exported(t, lib)
		for _, name := range tabled(t, table, "HOOK|REFUSE") {
			if slices.Contains(has, name) {
				continue
			}
			count++
			want := 801
			if table == "nvml.def" {
				want = 13
			}
			fmt.Fprintf(&declared, "int %s(long, long, long, long, long, long, long, long, long, long, long, long);\n", name)
			fmt.Fprintf(&calls, "\tr = %s(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);\n\tif (r != %d)\n\t\tprintf(\"%s: %%d\\n\", r);\n", name, want, name)
		}
	}
	src := filepath.Join(t.TempDir(), "calls.c")
	text := "#include <stdio.h>\n" + declared.String() + "int main(void)\n{\n\tint r;\n\n" + calls.String() + "\tprintf(\"done\\n\");\n\treturn 0;\n}\n"
	if err := os.WriteFile(src, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "calls")
	compile(t, "", src, "-o", program, "-Wl,-z,now", filepath.Join(libraries(t), "libcuda.so.1"),
		filepath.Join(libraries(t), "libnvidia-ml.so.1"), "-Wl,--allow-shlib-undefined")
	if out, err := c.run(program); err != nil || out != "done\n" {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%d names are not there", count)
}
