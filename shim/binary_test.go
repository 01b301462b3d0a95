// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// gpushare-runtime as BinaryName is passed over, so that a bundle is edited once;
// it is recognised under other names too.
func TestWrapperAsBinaryName(t *testing.T) {
	c := configured(t)
	runc := c.Runtimes[0]
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The one that lies beside the running program.
	beside := filepath.Join(filepath.Dir(self), wrapperName)
	if err := os.WriteFile(beside, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(beside) })
	dir := t.TempDir()
	link, hard := filepath.Join(dir, "link"), filepath.Join(filepath.Dir(self), "another-name")
	if err := os.Symlink(beside, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(beside, hard); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(hard) })
	elsewhere := program(t, wrapperName)
	for _, named := range []string{"", "gpushare-runtime", beside, link, hard, elsewhere, "/no/such/gpushare-runtime"} {
		if got, err := lowLevelRuntime(c, named); err != nil || got != runc {
			t.Errorf("BinaryName %q: %s, %v; want %s", named, got, err, runc)
		}
	}
	// In config.toml it is a mistake: there is nothing to go on with.
	for _, path := range []string{beside, hard, elsewhere} {
		c.Runtimes = []string{path}
		if got, err := lowLevelRuntime(c, ""); err == nil || !strings.Contains(err.Error(), "[GS-RUNTIME]") {
			t.Errorf("runtimes = [%q]: %s, %v", path, got, err)
		}
	}
}

func TestBinaryName(t *testing.T) {
	c := configured(t)
	other := program(t, "crun")
	if got, err := lowLevelRuntime(c, other); err != nil || got != other {
		t.Errorf("%s, %v; want %s", got, err, other)
	}
	if err := os.Chmod(other, 0o777); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{other, self, "/no/such/runc", "no-such-runc"} {
		if got, err := lowLevelRuntime(c, bad); err == nil || !strings.Contains(err.Error(), "BinaryName") || !strings.Contains(err.Error(), "[GS-RUNTIME]") {
			t.Errorf("BinaryName %s: %s, %v", bad, got, err)
		}
	}
}

func TestSandboxed(t *testing.T) {
	runsc := program(t, "runsc")
	link := filepath.Join(t.TempDir(), "runc")
	if err := os.Symlink(runsc, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		runsc: "runsc", link: "runsc", "/opt/kata/bin/kata-qemu": "kata-qemu", "/usr/bin/krun": "krun",
		"/usr/bin/runc": "", "/usr/bin/crun": "", "/usr/bin/youki": "",
	} {
		if got := sandboxed(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
