// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// Whatever happens to us, not one byte of ours reaches a tenant's output: each case
// compares both streams with exactly what the client itself prints.
func TestNotOneByte(t *testing.T) {
	each(t, node.Options{}, func(t *testing.T, n *node.Node, e engine) {
		const notReady = "client: cuInit: CUDA_ERROR_SYSTEM_NOT_READY (802)\n"
		silent := []string{"sh", "-c", "alloc --take 100MiB >/dev/null && nvml >/dev/null && saturate --launches 200 >/dev/null"}
		want := func(t *testing.T, r node.Result, stdout, stderr string) {
			t.Helper()
			if r.Stdout != stdout || r.Stderr != stderr {
				t.Errorf("stdout %q, want %q; stderr %q, want %q", r.Stdout, stdout, r.Stderr, stderr)
			}
		}
		t.Run("all is well", func(t *testing.T) {
			_, r := e.run(t, append(share("1Gi"), "GPUSHARE_COMPUTE=20%"), silent...)
			want(t, r, "", "")
			if r.Err != nil {
				t.Error(r.Err)
			}
		})
		dir := func(c container) string { return filepath.Join(n.RunDir(), "c", c.id) }
		t.Run("daemon dead", func(t *testing.T) {
			c := e.background(t, share("1Gi")...)
			if err := n.Daemon().Kill(); err != nil {
				t.Fatal(err)
			}
			r := c.exec(within(t), silent...)
			want(t, r, "", "")
			if r.Err != nil {
				t.Error(r.Err)
			}
			if err := n.StartDaemon(within(t)); err != nil {
				t.Fatal(err)
			}
		})
		t.Run("no limits page", func(t *testing.T) {
			c := e.background(t, share("1Gi")...)
			if err := os.Remove(filepath.Join(dir(c), "limits")); err != nil {
				t.Fatal(err)
			}
			r := c.exec(within(t), "alloc", "--take", "1MiB")
			want(t, r, "", notReady)
		})
		t.Run("corrupt limits page", func(t *testing.T) {
			c := e.background(t, share("1Gi")...)
			if err := os.WriteFile(filepath.Join(dir(c), "limits"), make([]byte, 4096), 0o444); err != nil {
				t.Fatal(err)
			}
			want(t, c.exec(within(t), "alloc", "--take", "1MiB"), "", notReady)
		})
		t.Run("corrupt ledger", func(t *testing.T) {
			c := e.background(t, share("1Gi")...)
			// By the tenant itself, who may write it.
			r := c.exec(within(t), "sh", "-c", "dd if=/dev/zero of=/run/gpushare/ledger bs=4096 count=1 conv=notrunc 2>/dev/null")
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			want(t, c.exec(within(t), "alloc", "--take", "1MiB"), "", notReady)
		})
		t.Run("short ledger", func(t *testing.T) {
			c := e.background(t, share("1Gi")...)
			if r := c.exec(within(t), "sh", "-c", ": >/run/gpushare/ledger"); r.Err != nil {
				t.Fatal(r.Err)
			}
			want(t, c.exec(within(t), "alloc", "--take", "1MiB"), "", notReady)
		})
	})
}
