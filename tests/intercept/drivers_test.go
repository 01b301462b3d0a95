// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/simgpu/api"
)

// Over each simulated driver, CUDA 11.0 to 13.5, whole and with names taken out, a
// program finds the names which that driver has and no other, gets its memory, is
// refused what is over the limit, and is shown its slice.
func TestEveryDriver(t *testing.T) {
	long(t)
	tenant := compile(t, "tenant.c")
	names := compile(t, "../../tests/realdriver/testdata/names.c")
	for _, d := range api.Drivers {
		if !strings.HasPrefix(d.Version, d.Branch) && d.Branch != "newest" {
			t.Errorf("driver %s calls itself %s", d.Branch, d.Version)
		}
	}
	onEveryDriver(t, func(t *testing.T, n *node) {
		c := n.container(512 * mib)
		for table, soname := range map[string]string{"cuda.def": "libcuda.so.1", "nvml.def": "libnvidia-ml.so.1"} {
			every, has := tabled(t, table, "HOOK|REFUSE|FORWARD|LATER"), exported(t, filepath.Join(n.dir, "lib", soname))
			want := slices.DeleteFunc(slices.Clone(every), func(name string) bool { return !slices.Contains(has, name) })
			if got := linesOf(c.ask(every, names, soname)); !slices.Equal(got, want) {
				t.Errorf("%s: %d names are found, want %d", soname, len(got), len(want))
			}
		}
		out, err := c.run(tenant, "init", fmt.Sprintf("alloc=%d", 100*mib), "info", fmt.Sprintf("alloc=%d", 500*mib), "nvml", "pid")
		used := uint64(100*mib + contextBytes)
		pid := out[strings.LastIndexByte(out, ' ')+1:]
		want := fmt.Sprintf("alloc 0\ninfo 0 %d %d\nalloc 2\nnvml %d %d %d %s:%d\npid %s", 512*mib-used, 512*mib, 512*mib,
			512*mib-used, used, strings.TrimSpace(pid), used, pid)
		if err != nil || out != want {
			t.Errorf("%v, output %q, want %q", err, out, want)
		}
		if used := n.gpu().Used; used != 0 {
			t.Errorf("%d bytes are left", used)
		}
	})
}
