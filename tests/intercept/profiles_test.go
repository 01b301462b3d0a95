// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// profile is a library with the names that a CUDA release's driver has, and nothing
// behind them; the lists are simgpu/api.
func profile(t *testing.T, list, soname, release string) (lib string, names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "simgpu/api", list))
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]int{"cuda-driver.tsv": 2, "nvml.tsv": 1}[list]
	var src strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		f := strings.Split(line, "\t")
		if older(release, f[first]) {
			continue
		}
		names = append(names, f[0])
		fmt.Fprintf(&src, "int %s(void) { return 0; }\n", f[0])
	}
	lib = filepath.Join(t.TempDir(), soname)
	cmd := exec.Command("gcc", "-xc", "-O0", "-w", "-fno-builtin", "-fPIC", "-shared", "-Wl,-soname,"+soname, "-o", lib, "-")
	cmd.Stdin = strings.NewReader(src.String())
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("profile %s: %v\n%s", release, err, msg)
	}
	return lib, names
}

// older tells whether release a comes before b.
func older(a, b string) bool {
	var x, y [2]int
	_, _ = fmt.Sscanf(a, "%d.%d", &x[0], &x[1])
	_, _ = fmt.Sscanf(b, "%d.%d", &y[0], &y[1])
	return slices.Compare(x[:], y[:]) < 0
}

// Over a driver of each release dlsym finds the names which that driver has, and no
// other. The same over real drivers is tests/realdriver.
func TestProfiles(t *testing.T) {
	program := compile(t, "../../tests/realdriver/testdata/names.c")
	every := map[string][]string{
		"libcuda.so.1":      tabled(t, "cuda.def", "HOOK|FORWARD|LATER"),
		"libnvidia-ml.so.1": tabled(t, "nvml.def", "HOOK|REFUSE|FORWARD|LATER"),
	}
	for _, release := range []string{"11.4", "12.0", "12.4", "13.0", "13.5"} {
		t.Run(release, func(t *testing.T) {
			c := newContainer(t, standInLimit())
			has := map[string][]string{}
			c.driver, has["libcuda.so.1"] = profile(t, "cuda-driver.tsv", "libcuda.so.1", release)
			c.nvml, has["libnvidia-ml.so.1"] = profile(t, "nvml.tsv", "libnvidia-ml.so.1", release)
			for soname, names := range every {
				var want []string
				for _, name := range names {
					if slices.Contains(has[soname], name) {
						want = append(want, name)
					}
				}
				out := c.ask(names, program, soname)
				if got := linesOf(out); !slices.Equal(got, want) {
					t.Errorf("%s: %d names are found, want %d", soname, len(got), len(want))
					for _, name := range got {
						if !slices.Contains(want, name) {
							t.Errorf("%s is found", name)
						}
					}
				}
				t.Logf("%s: %d of %d names", soname, len(want), len(names))
			}
		})
	}
}

// A program that is linked against names which the driver lacks: bound at its start
// it runs and is told so; bound at the call it ends there, as over the bare driver.
func TestLinkedAgainstAbsent(t *testing.T) {
	c := newContainer(t, standInLimit())
	c.driver, _ = profile(t, "cuda-driver.tsv", "libcuda.so.1", "11.4")
	c.nvml, _ = profile(t, "nvml.tsv", "libnvidia-ml.so.1", "11.4")
	lib := libraries(t)
	for binding, want := range map[string]string{"now": "801 13\n", "lazy": "undefined symbol: "} {
		program := compile(t, "absent.c", "-Wl,-z,"+binding, filepath.Join(lib, "libcuda.so.1"),
			filepath.Join(lib, "libnvidia-ml.so.1"), "-Wl,--allow-shlib-undefined")
		out, err := c.run(program)
		if (err == nil) != (binding == "now") || !strings.Contains(out, want) {
			t.Errorf("%s: %v, output %q", binding, err, out)
		}
	}
}
