// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package realdriver

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A debugger for the GPU finds the driver's variables and stop functions (cudbg*) by
// name among all loaded libraries. They are the real library's, which is loaded
// beside ours: what it writes is what the driver reads, where it stops is where the
// driver calls. gdb stands for it.
func TestDebugger(t *testing.T) {
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		t.Skip(err)
	}
	program := compile(t, "debuggee.c")
	eachDriver(t, func(t *testing.T, real string) {
		out := run(t, real, ours(t), "", gdb, "-nx", "-batch", "-ex", "set debuginfod enabled off",
			"-ex", "break getppid", "-ex", "run", "-ex", "set *(unsigned *)&cudbgIpcFlag = 5",
			"-ex", "break cudbgReportDriverApiError", "-ex", "continue", "-ex", "info symbol $pc", "-ex", "continue", program)
		at := -1
		for _, want := range []string{"flag 0\n", "flag 5\n", "cudbgReportDriverApiError in section .text of /run/gpushare/driver/cuda.real", "end\n"} {
			next := strings.Index(out[at+1:], want)
			if next < 0 {
				t.Fatalf("no %q in its place:\n%s", want, out)
			}
			at += 1 + next
		}
	})
	for _, lib := range []string{"cuda", "nvml"} {
		name := map[string]string{"cuda": "libcuda.so.1", "nvml": "libnvidia-ml.so.1"}[lib]
		for _, n := range exported(t, filepath.Join(ours(t), name), true) {
			if strings.HasPrefix(n, "cudbg") {
				t.Errorf("%s defines %s, which a debugger would find instead of the driver's", name, n)
			}
		}
	}
}
