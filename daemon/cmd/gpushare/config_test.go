// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfigCheck(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: the check asks who owns the file")
	}
	path := filepath.Join(t.TempDir(), "config.toml")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("compat = \"host\"\n[default_share]\nprofile = \"1of4\"\n[cap.env]\nmemory = \"25%\"\n")
	for _, args := range [][]string{{"config", "check", path}, {"--config", path, "config", "check"}} {
		out, errs, status, _ := call(args...)
		if status != 0 || errs != "" {
			t.Fatalf("%v: %d %q %q", args, status, out, errs)
		}
		for _, want := range []string{"# " + path + " is good", "compat = \"host\"\n", "state_dir = \"/var/lib/gpushare\" # default\n",
			"[default_share]\nprofile = \"1of4\"\n", "[cap.env]\nmemory = \"25%\"\n", "# [cap.annotation]: none\n", "privileged = false # default\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is not in\n%s", want, out)
			}
		}
		// What is printed is a file that is good.
		put(out)
		if again, _, status, _ := call(args...); status != 0 || again != out {
			t.Errorf("%d\n%s\nwant\n%s", status, again, out)
		}
	}
	put("run_dri = \"/x\"\n\n[cap.env]\nmemory = \"4\"\n")
	out, errs, status, _ := call("config", "check", path)
	want := path + ":1: unknown key \"run_dri\": did you mean run_dir?\n" +
		path + ":4: cap.env.memory \"4\": the unit is missing; write 4Gi, 4Mi or a percentage like 33%\n"
	if status != 1 || out != want || errs != "gpushare: "+path+" cannot be used: 2 problems\n" {
		t.Errorf("%d %q %q\nwant %q", status, out, errs, want)
	}
	if _, errs, status, _ := call("config", "check", path+"x"); status != 1 || !strings.Contains(errs, "no such file") {
		t.Errorf("absent: %d %q", status, errs)
	}
	if _, _, status, _ := call("config", "check", path, path); status != 2 {
		t.Errorf("two files: %d", status)
	}
}
