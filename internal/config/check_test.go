// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Every problem is found at once, with its line.
func TestCheckFindsAll(t *testing.T) {
	const bad = `# a comment
run_dir = "run"
"compa\u0074" = "mask"
extra_driver_mounts = [
  "/a:/b",
  "/x",
]
unknown_thing = 1
default_share = { memory = "8G", compute = "10%" }

[cap.env]
memory = "4"
compute_maxx = "50%"

[cap]
annotation.compute = "50%"
annotation.compute_max = "40%"
[overide]
privileged = true
`
	c, problems := Check("x.toml", []byte(bad))
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	want := []string{
		`line 2: run_dir "run" is not an absolute path`,
		`line 3: compat is "mask": write "route", "host" or "refuse"`,
		`line 4: extra_driver_mounts: "/x" is not "host:container" with two absolute paths`,
		`line 8: unknown key "unknown_thing": known are `,
		`line 9: default_share.memory "8G": G is binary in docker and decimal in Kubernetes; write 8Gi or 8000000000B`,
		`line 12: cap.env.memory "4": the unit is missing; write 4Gi, 4Mi or a percentage like 33%`,
		`line 13: unknown key "cap.env.compute_maxx": did you mean cap.env.compute_max?`,
		`line 17: cap.annotation.compute_max 40% is below compute 50%`,
		`line 18: unknown key "overide": did you mean override?`,
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], want[i]) || strings.Contains(got[i], "\n") {
			t.Fatalf("problem %d:\n%s\nwant\n%s", i, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if c.Override.Privileged {
		t.Error("a misspelt table counts")
	}
	if _, err := Parse("x.toml", []byte(bad)); err == nil || !strings.Contains(err.Error(), "line 2: ") || !strings.Contains(err.Error(), "and 8 more: gpushare config check x.toml") {
		t.Errorf("Parse: %v", err)
	}
}

func TestPolicyKeys(t *testing.T) {
	c, err := Parse("x.toml", []byte(`
[default_share]
profile = "1of4"
[cap.env]
memory = "25%"
compute_max = "50%"
[cap.annotation]
memory = "8Gi"
[override]
privileged = true
host_namespaces = true
`))
	if err != nil {
		t.Fatal(err)
	}
	if c.DefaultShare != (Share{Profile: "1of4"}) || c.Override != (Override{true, true}) ||
		c.Cap != (Caps{Env: Most{Memory: "25%", ComputeMax: "50%"}, Annotation: Most{Memory: "8Gi"}}) {
		t.Errorf("%+v", c)
	}
	env, annotation, err := c.Cap.Parse()
	if err != nil || env.Empty() || annotation.Empty() || env.Name != "cap.env" || annotation.Name != "cap.annotation" {
		t.Errorf("%+v, %+v, %v", env, annotation, err)
	}
	if Default().Override != (Override{}) {
		t.Error("an override is on by default")
	}
}

func TestDefaultAgainstCaps(t *testing.T) {
	for _, tc := range []struct {
		name, share, most, want string
	}{
		{"within", `memory = "4Gi"`, `memory = "4Gi"`, ""},
		{"above", `memory = "8Gi"`, `memory = "4Gi"`, `8 GiB asked, 4 GiB allowed (cap.env.memory = "4Gi")`},
		{"percentages", `memory = "50%"`, `memory = "25%"`, `asked`},
		{"not to be said without a GPU", `memory = "50%"`, `memory = "4Gi"`, ""},
		{"guarantee", "memory = \"4Gi\"\ncompute = \"20%\"", `compute = "10%"`, `20% asked, 10% allowed`},
		{"no ceiling", `memory = "4Gi"`, `compute_max = "50%"`, `no compute_max, 50% allowed (cap.env.compute_max)`},
		{"a ceiling", "memory = \"4Gi\"\ncompute_max = \"50%\"", `compute_max = "50%"`, ""},
		{"a profile", `profile = "1of2"`, `memory = "25%"`, "above cap.env"},
		{"a profile within", `profile = "1of4"`, "memory = \"25%\"\ncompute_max = \"25%\"", ""},
		{"a profile and words", "profile = \"1of4\"\nmemory = \"1Gi\"", "", "leave out the other words"},
		{"no profile", `profile = "quarter"`, "", "default_share.profile \"quarter\" is no profile"},
		{"half a share", `compute = "10%"`, "", "default_share: no memory limit"},
	} {
		_, err := Parse("x", []byte("[default_share]\n"+tc.share+"\n[cap.env]\n"+tc.most+"\n"))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestCheckFile(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: the check asks who owns what")
	}
	dir := t.TempDir()
	name := func(n string) string { return filepath.Join(dir, n) }
	put := func(n, text string, mode os.FileMode) string {
		t.Helper()
		if err := os.WriteFile(name(n), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name(n), mode); err != nil {
			t.Fatal(err)
		}
		return name(n)
	}
	put("good", "", 0o644)
	put("open", "", 0o666)
	lib := name("lib")
	if err := os.Mkdir(lib, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{fmt.Sprintf("run_dir = %q\nnvml_library = %q\ncuda_library = \"libcuda.so.1\"\nruntimes = [\"runc\", %q]\nextra_driver_mounts = [\"%s:/x\"]\n",
			name("a/b/c"), name("good"), name("absent"), dir), nil},
		{fmt.Sprintf("\nnvml_library = %q\ndriver_cdi_spec = %q\nstate_dir = %q\n", name("open"), name("absent"), name("good")),
			[]string{"line 2: nvml_library " + name("open") + " can be written by others", "line 3: driver_cdi_spec " + name("absent") + ": not there", "line 4: state_dir " + name("good") + ": not a directory"}},
		{fmt.Sprintf("runtimes = [%q]\nlibrary_dir = %q\nextra_driver_mounts = [\"/\u00e9:/x\"]\n", name("absent"), lib),
			[]string{"line 1: runtimes", "line 2: library_dir " + lib + "/libcuda.so.1: not there", "line 2: library_dir " + lib + "/libnvidia-ml", "line 3: extra_driver_mounts /\u00e9: not there"}},
	} {
		_, problems, err := CheckFile(put("config.toml", tc.text, 0o644))
		if err != nil || len(problems) != len(tc.want) {
			t.Errorf("%s: %v, %v", tc.text, problems, err)
			continue
		}
		for i, p := range problems {
			if !strings.HasPrefix(p.String(), tc.want[i]) {
				t.Errorf("%s, want %s", p, tc.want[i])
			}
		}
	}
	_, problems, err := CheckFile(put("config.toml", "compat = 1", 0o666))
	if err != nil || len(problems) != 2 || !strings.Contains(problems[0].Text, "can be written by others") {
		t.Errorf("writable by all: %v, %v", problems, err)
	}
	if _, _, err := CheckFile(name("absent")); err == nil {
		t.Error("absent file: no error")
	}
}

// What is printed as being in force reads back as the same.
func TestEffective(t *testing.T) {
	for _, text := range []string{"", `
run_dir = "/run/it's \"odd\""
runtimes = ["/usr/bin/runc"]
docker_host = ""
host_memory = "64Gi"
default_share = { profile = "1of4" }
cap.env = { memory = "30%", compute_max = "50%", host_memory = "8Gi" }
override.host_namespaces = true
`} {
		c, err := Parse("x", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.Effective()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("x", []byte(out))
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Errorf("%v\n%s\n%+v\nwant %+v", err, out, again, c)
		}
		for field := range fields(reflect.TypeFor[Config]()) {
			if !strings.Contains(out, field.Tag.Get("toml")) {
				t.Errorf("%s is not in\n%s", field.Tag.Get("toml"), out)
			}
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte("run_dir = \"x\"\n[cap.env]\nmemory = \"4\"\n\"a\\u0062\".c = { d = { e = 1 } }"))
	f.Add([]byte("[[override]]\nprivileged = 1\n[default_share]\ncompute = \"1%\""))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, problems := Check("x", data)
		for _, p := range problems {
			if strings.Contains(p.Text, "\n") || p.Line < 0 || p.Line > 1+strings.Count(string(data), "\n") {
				t.Errorf("%+v", p)
			}
		}
	})
}

// A value of the wrong type is told how it is written, not what the decoder calls it.
func TestCheckTellsHowAValueIsWritten(t *testing.T) {
	for in, want := range map[string]string{
		"host_memory = 4":                `line 1: host_memory is a text: write it in quotes, as "…"`,
		"host_memory = true":             `line 1: host_memory is a text: write it in quotes, as "…"`,
		"[cap.env]\nmemory = 4.5":        `line 2: cap.env.memory is a text: write it in quotes, as "…"`,
		"runtimes = \"runc\"":            `line 1: runtimes is a list of texts: write ["…", "…"]`,
		"[override]\nprivileged = \"1\"": `line 2: override.privileged is true or false, without quotes`,
		"default_share = \"4Gi\"":        `line 1: default_share is a table: write [default_share] on a line of its own and its keys below`,
		"host_memory = 4Gi":              `line 1: column `,
		"host_memory =":                  `line 1: column `,
	} {
		_, problems := Check("x.toml", []byte(in+"\n"))
		if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), want) || strings.Contains(problems[0].String(), "config.") {
			t.Errorf("%s: %v, want %q", in, problems, want)
		}
	}
}
