// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The thunks of this machine, and where the toolchain and an emulator are at hand
// those of the other architecture.
func TestThunks(t *testing.T) {
	ofLibraries(t)
	sources := []string{"-O2", "-Wall", "-Wextra", "-Werror", "-I../lib", "thunk/thunk.c", "../lib/cuda_thunks_gen.S"}
	bin := filepath.Join(t.TempDir(), "thunk")
	if out, err := exec.Command("gcc", append([]string{"-o", bin}, sources...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(bin).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Run("aarch64", func(t *testing.T) {
		zig, err := filepath.Abs("../../.cache/toolchain/zig/ziglang/zig")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(zig); err != nil {
			t.Skip("no cross compiler: make intercept fetches it")
		}
		build := func(args ...string) {
			cmd := exec.Command(zig, append([]string{"cc"}, args...)...)
			cache := filepath.Join(filepath.Dir(zig), "../../cache")
			cmd.Env = append(os.Environ(), "ZIG_GLOBAL_CACHE_DIR="+cache, "ZIG_LOCAL_CACHE_DIR="+cache)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		bin := filepath.Join(t.TempDir(), "thunk-aarch64")
		for _, name := range []string{"qemu-aarch64-static", "qemu-aarch64"} {
			qemu, err := exec.LookPath(name)
			if err != nil {
				continue
			}
			build(append([]string{"-target", "aarch64-linux-musl", "-static", "-o", bin}, sources...)...)
			if out, err := exec.Command(qemu, bin).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			return
		}
		build("-target", "aarch64-linux-gnu.2.17", "-I../lib", "-c", "-o", bin, "../lib/cuda_thunks_gen.S")
		t.Skip("they assemble; no emulator to run them: apt-get install qemu-user-static")
	})
}
