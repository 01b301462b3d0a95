// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// However a name that has a wrapper is reached, it is the wrapper: linked, by handle,
// RTLD_DEFAULT, RTLD_NEXT, dlvsym, RTLD_DEEPBIND, its path, dlmopen, from the program
// and from a library. By cuGetProcAddress: TestLookups.
func TestWays(t *testing.T) {
	if sanitized() {
		t.Skip("the sanitizers do not stand RTLD_DEEPBIND and dlmopen")
	}
	n := simulate(t)
	c := n.container(1024 * mib)
	for _, lib := range []struct{ table, soname, real, driver string }{
		{"cuda.def", "libcuda.so.1", "/run/gpushare/driver/cuda.real", c.driver},
		{"nvml.def", "libnvidia-ml.so.1", "/run/gpushare/driver/nvml.real", c.nvml},
	} {
		t.Run(lib.soname, func(t *testing.T) {
			var declared, listed strings.Builder
			has := exported(t, lib.driver)
			names := slices.DeleteFunc(tabled(t, lib.table, "HOOK|REFUSE"), func(name string) bool { return !slices.Contains(has, name) })
			for _, name := range names {
				fmt.Fprintf(&declared, "extern void %s(void);\n", name)
				fmt.Fprintf(&listed, "\t{\"%s\", (void *)%s},\n", name, name)
			}
			list := filepath.Join(t.TempDir(), "names.c")
			text := "struct way { const char *name; void *linked; };\n" + declared.String() +
				"extern const struct way ways_names[];\nconst struct way ways_names[] = {\n" + listed.String() + "\t{0, 0},\n};\n"
			if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			link := []string{list, filepath.Join(libraries(t), lib.soname), "-Wl,--allow-shlib-undefined"}
			plugin := compile(t, "ways.c", append(link, "-DPLUGIN", "-fPIC", "-shared")...)
			rest := tabled(t, lib.table, "FORWARD|LATER")
			out := c.ask(rest, compile(t, "ways.c", link...), lib.soname, lib.real, plugin)
			if want := fmt.Sprintf("%d names, 0 failures\n", len(names)+len(rest)); out != want {
				t.Errorf("%s\nwant %s", out, want)
			}
		})
	}
}
