// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wrapper_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// evil leaves a mark at a path of the host when it is loaded.
const evil = `
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void)
{
	int fd = open(%q, O_CREAT | O_WRONLY, 0666);
	if (fd >= 0)
		close(fd);
}`

// An image's variables, search path and working directory cannot make the hook
// run a byte of the image.
func TestHookRunsNothingOfTheImage(t *testing.T) {
	m := newMachine(t)
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skipf("needs gcc for the library that an attacker would bring: %v", err)
	}
	marker := m.path("marker")
	m.write("evil.c", fmt.Sprintf(evil, marker), 0o644)
	if r := m.command(os.Environ(), gcc, "-shared", "-fPIC", "-o", m.path("evil.so"), m.path("evil.c")); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	hostile := []string{
		"LD_PRELOAD=./evil.so /evil.so", "LD_AUDIT=./evil.so", "LD_LIBRARY_PATH=.", "GLIBC_TUNABLES=x=y",
		"GODEBUG=execerrdot=0", "GOTRACEBACK=crash", "PATH=.:/proc/self/cwd", "TMPDIR=.", "HOME=.", "GCONV_PATH=.", "IFS=/", "BASH_ENV=./evil.sh", "ENV=./evil.sh",
	}
	bring := func(name string, env []string, edit func(spec map[string]any)) string {
		b := m.bundle(name, "echo started", func(spec map[string]any) {
			setenv(spec, env...)
			spec["process"].(map[string]any)["args"] = []any{"/bin/sh", "-c", "echo started"}
			edit(spec)
		})
		m.write(name+"/rootfs/evil.so", m.read("evil.so"), 0o755)
		for _, program := range []string{"gpushare-hook", "ldconfig", "mount", "sh", "evil.sh", "env"} {
			m.write(name+"/rootfs/"+program, "#!/bin/sh\necho >"+marker+"\n", 0o755)
		}
		for _, lib := range []string{"libc.so.6", "libcuda.so.1", "libnvidia-ml.so.1", "libdl.so.2"} {
			m.write(name+"/rootfs/"+lib, m.read("evil.so"), 0o755)
		}
		return b
	}
	left := func() bool {
		_, err := os.Stat(marker)
		return err == nil
	}
	// The same image runs its code on the host through a hook that inherits the
	// container's variables; else this test would prove nothing.
	control := bring("control", []string{"LD_PRELOAD=./evil.so"}, func(spec map[string]any) {
		spec["hooks"] = map[string]any{"createContainer": []any{map[string]any{"path": "/bin/true"}}}
	})
	m.command(os.Environ(), "runc", "--root", m.path("root"), "run", "--bundle", control, m.id("control"))
	if !left() {
		t.Log("this runc gives hooks no variables of the container: the attack is none here")
	} else if err := os.Remove(marker); err != nil {
		t.Fatal(err)
	}
	b := bring("b", hostile, asks)
	r := m.runtime("run", "--bundle", b, m.id("evil"))
	if left() {
		t.Error("the image's code ran on the host")
	}
	if r.code != 0 || r.stdout != "started\n" || r.stderr != "" {
		t.Errorf("%+v", r)
	}
	// What leads through /proc the hook cannot follow, so it refuses.
	r = m.runtime("run", "--bundle", bring("proc", []string{"LD_PRELOAD=/proc/self/cwd/evil.so"}, asks), m.id("proc"))
	if left() || r.code == 0 || !strings.Contains(r.stderr, "[GS-LOADER]") {
		t.Errorf("by way of /proc: %v %+v", left(), r)
	}
	// What it found in the working directory it has covered.
	var spec struct {
		Hooks struct {
			CreateContainer []struct {
				Path    string
				Env     []string
				Timeout int
			}
		}
	}
	if err := json.Unmarshal([]byte(m.read("b/config.json")), &spec); err != nil {
		t.Fatal(err)
	}
	list := spec.Hooks.CreateContainer
	if len(list) == 0 {
		t.Fatal("no hook in the spec")
	}
	last := list[len(list)-1]
	if last.Path != m.path("prefix/bin/gpushare-hook") || len(last.Env) != 1 || !strings.HasPrefix(last.Env[0], "PATH=/usr/local/sbin") || last.Timeout <= 0 {
		t.Errorf("the last hook is %+v", last)
	}
}

// An image with a libcuda of its own, under real runc and each policy.
func TestCompatPolicies(t *testing.T) {
	m := newMachine(t)
	const script = `cat /opt/x/libcuda.so.1; cat /run/gpushare/driver/cuda.real`
	b := m.bundle("b", script, func(spec map[string]any) { setenv(spec, "GPUSHARE_MEMORY=8Gi", "LD_LIBRARY_PATH=/opt/x") })
	image := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 57)...)
	image[18] = 62
	m.write("b/rootfs/opt/x/libcuda.so.1", string(image)+"the image's", 0o755)
	for policy, want := range map[string]string{
		"":                    "our libcuda" + string(image) + "the image's",
		`compat = "route"`:    "our libcuda" + string(image) + "the image's",
		`compat = "host"`:     "our libcudareal libcuda.so.999.1",
		`compat = "refuse"`:   "",
		`compat = "whatever"`: "",
	} {
		m.config(policy)
		r := m.runtime("run", "--bundle", b, m.id("policy"))
		if r.stdout != want || (r.code == 0) != (want != "") {
			t.Errorf("%s: %+v, want %q", policy, r, want)
		}
		if strings.Contains(policy, "refuse") && (!strings.Contains(r.stderr, "[GS-COMPAT]") || strings.Count(r.stderr, "\n") != 1) {
			t.Errorf("%s: %q", policy, r.stderr)
		}
	}
}

// Without its hook a GPU container is not started.
func TestHookIsMissing(t *testing.T) {
	m := newMachine(t)
	b := m.bundle("b", "echo started", asks)
	if err := os.Chmod(m.path("prefix/bin/gpushare-hook"), 0o777); err != nil {
		t.Fatal(err)
	}
	refused(t, m, b, "run", "can be written by others", "[GS-HOOK]")
	if err := os.Remove(m.path("prefix/bin/gpushare-hook")); err != nil {
		t.Fatal(err)
	}
	refused(t, m, b, "run", "gpushare-hook", "[GS-HOOK]")
}

// A musl image is refused before its program runs, in one line.
func TestMuslImage(t *testing.T) {
	m := newMachine(t)
	b := m.bundle("b", "echo started", asks)
	if err := os.RemoveAll(m.path("b/rootfs/lib64")); err != nil {
		t.Fatal(err)
	}
	m.write("b/rootfs/lib/ld-musl-x86_64.so.1", "musl", 0o755)
	r := m.runtime("run", "--bundle", b, m.id("musl"))
	if r.code == 0 || r.stdout != "" || !strings.Contains(r.stderr, "musl's loader") || !strings.Contains(r.stderr, "[GS-IMAGE]") {
		t.Errorf("%+v", r)
	}
}
