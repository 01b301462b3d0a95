// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

// TestInstallContainerd installs into a containerd that does not know gpushare, finds
// that its handler enforces a limit through the CRI plugin, and takes it out again.
func TestInstallContainerd(t *testing.T) {
	for _, build := range containerdBuilds {
		t.Run(build, func(t *testing.T) {
			n, c := bareContainerd(t, build)
			file := filepath.Join(c.Dir(), "config.toml")
			before := content(t, file)
			call := func(command string, flags ...string) node.Result {
				t.Helper()
				return n.CLI(within(t), append([]string{command, "--engine", "containerd", "--socket", filepath.Join(c.Dir(), "ctrd.sock")}, flags...)...)
			}
			if r := call("install", "--dry-run"); r.Err != nil || !strings.Contains(r.Stdout, ".containerd.runtimes.gpushare]") {
				t.Fatalf("dry run: %v\n%s", r.Err, r.Stdout)
			}
			if !bytes.Equal(before, content(t, file)) {
				t.Fatal("the dry run wrote config.toml")
			}
			// systemd does not run this containerd, so people are told to restart it.
			r := call("install")
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			for _, want := range []string{"still to do: restart containerd", "a probe container was denied at its limit"} {
				if !strings.Contains(r.Stderr, want) {
					t.Errorf("install does not say %q:\n%s", want, r.Stderr)
				}
			}
			restart(t, c)
			installed := content(t, file)
			if r = call("install"); r.Err != nil || !strings.Contains(r.Stderr, `containerd knows "gpushare"`) {
				t.Fatalf("second install: %v\n%s", r.Err, r.Stderr)
			}
			if !bytes.Equal(installed, content(t, file)) {
				t.Error("the second install wrote config.toml")
			}
			if r := c.Ctr(within(t), "namespaces", "list", "--quiet"); strings.Contains(r.Stdout, "gpushare-probe") {
				t.Errorf("the probe left its namespace: %s", r.Stdout)
			}
			// The handler, and not plain runc in its stead, is what a pod gets.
			fill, out := criEngine{&containerdNode{n, c}, node.HandlerShim}.run(t, share("1Gi"), "alloc", "--fill")
			if !strings.Contains(out.Stdout, "CUDA_ERROR_OUT_OF_MEMORY") {
				t.Errorf("a pod's container: %v\n%s", out.Err, out.Stdout)
			}
			fill.remove()
			if r = call("uninstall"); r.Err != nil {
				t.Fatal(r.Err)
			}
			if now := content(t, file); !bytes.Equal(before, now) {
				t.Errorf("config.toml is not what it was:\n%s", now)
			}
			restart(t, c)
			if r = call("uninstall"); r.Err != nil || !strings.Contains(r.Stderr, "no change") {
				t.Errorf("second uninstall: %v\n%s", r.Err, r.Stderr)
			}
			t.Run("taken back", func(t *testing.T) {
				repair := swap(t, n.Bin("containerd-shim-gpushare-v1"), content(t, filepath.Join(stockBin(c), "containerd-shim-runc-v2")))
				r := call("install")
				repair()
				if r.Code != 1 || !strings.Contains(r.Stderr, "was not held to its limit") || !strings.Contains(r.Stderr, "the change was taken back") {
					t.Errorf("a shim that does nothing: status %d\n%s", r.Code, r.Stderr)
				}
				if !bytes.Equal(before, content(t, file)) {
					t.Error("config.toml is not what it was")
				}
			})
		})
	}
}

// TestInstallContainerdBySystemd stands in for systemd with a systemctl that keeps a
// containerd: install restarts it, and so does what takes a change back.
func TestInstallContainerdBySystemd(t *testing.T) {
	n, c := bareContainerd(t, "apt")
	file, fake := filepath.Join(c.Dir(), "config.toml"), filepath.Join(n.Dir, "fake")
	if err := os.Mkdir(fake, 0o755); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(systemctl, fake, os.Getpid(), n.Dir, c.Dir())
	for path, text := range map[string]string{"systemctl": script, "pid": fmt.Sprint(c.Process().PID), "calls": ""} {
		if err := os.WriteFile(filepath.Join(fake, path), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // the containerd that the last restart started
		var pid int
		if _, err := fmt.Sscan(string(content(t, filepath.Join(fake, "pid"))), &pid); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGTERM)
			soon(t, limit, "containerd ends", func() bool { return syscall.Kill(pid, 0) != nil })
		}
	})
	// Something to mount on, where systemd has never run.
	if os.Mkdir("/run/systemd", 0o755) == nil {
		t.Cleanup(func() { _ = os.Remove("/run/systemd") })
	}
	call := func(command string, flags ...string) (r node.Result, calls string) {
		t.Helper()
		argv := append([]string{"unshare", "--mount", "sh", "-c",
			`mount -t tmpfs none /run/systemd && mkdir /run/systemd/system && PATH="$0:$PATH" exec "$@"`, fake,
			n.Bin("gpushare"), "--config", n.ConfigFile(), command, "--engine", "containerd", "--socket", filepath.Join(c.Dir(), "ctrd.sock")}, flags...)
		before := len(content(t, filepath.Join(fake, "calls")))
		r = node.Run(within(t), nil, argv...)
		return r, string(content(t, filepath.Join(fake, "calls"))[before:])
	}
	before := content(t, file)

	if err := os.WriteFile(filepath.Join(fake, "unit"), []byte("inactive\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, calls := call("install", "--no-restart")
	if !strings.Contains(r.Stderr, "started gpushared.service") || strings.Count(calls, "enable --now gpushared.service") != 1 {
		t.Errorf("the daemon's unit is not started:\n%s\n%s", r.Stderr, calls)
	}
	if r.Err != nil || strings.Contains(calls, "restart") || !strings.Contains(r.Stderr, "systemctl restart containerd.service") {
		t.Errorf("--no-restart: %v\n%s\n%s", r.Err, r.Stderr, calls)
	}
	r, calls = call("install")
	if r.Err != nil || strings.Contains(calls, "enable") || !strings.Contains(calls, "restart containerd.service") || !strings.Contains(r.Stderr, `containerd knows "gpushare"`) || strings.Contains(r.Stderr, "still to do") {
		t.Errorf("install: %v\n%s\n%s", r.Err, r.Stderr, calls)
	}
	if r, calls = call("install"); r.Err != nil || strings.Contains(calls, "restart") {
		t.Errorf("a second install restarts containerd: %v\n%s", r.Err, calls)
	}
	if r, calls = call("uninstall"); r.Err != nil || !strings.Contains(calls, "restart containerd.service") || !bytes.Equal(before, content(t, file)) {
		t.Errorf("uninstall: %v\n%s\n%s", r.Err, r.Stderr, calls)
	}
	repair := swap(t, filepath.Join(n.Dir, "lib/gpushare/1/libcuda.so.1"), nil)
	r, calls = call("install")
	repair()
	if r.Code != 1 || strings.Count(calls, "restart containerd.service") != 2 || !bytes.Equal(before, content(t, file)) || !strings.Contains(r.Stderr, "libcuda.so.1") {
		t.Errorf("a failed probe: status %d\n%s\n%s", r.Code, r.Stderr, calls)
	}
}

// TestInstallContainerdInterrupted presses Ctrl-C at several moments of an install.
func TestInstallContainerdInterrupted(t *testing.T) {
	n, c := bareContainerd(t, "apt")
	file := filepath.Join(c.Dir(), "config.toml")
	before := content(t, file)
	argv := []string{"--config", n.ConfigFile(), "install", "--engine", "containerd", "--socket", filepath.Join(c.Dir(), "ctrd.sock")}
	begin := time.Now()
	if r := n.CLI(within(t), argv[2:]...); r.Err != nil {
		t.Fatal(r.Err)
	}
	whole, after := time.Since(begin), content(t, file)
	ended := map[int]int{}
	const moments = 10
	for i := range moments {
		if r := n.CLI(within(t), append([]string{"uninstall"}, argv[3:]...)...); r.Err != nil {
			t.Fatal(r.Err)
		}
		cmd := exec.Command(n.Bin("gpushare"), argv...)
		var said strings.Builder
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(whole * time.Duration(i+1) / moments) // any moment will do
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		code := cmd.ProcessState.ExitCode()
		ended[code]++
		want := before
		if code == 0 {
			want = after
		}
		if now := content(t, file); !bytes.Equal(now, want) {
			t.Errorf("status %d and config.toml\n%s\n%s", code, now, said.String())
		}
		if r := c.Ctr(within(t), "namespaces", "list", "--quiet"); strings.Contains(r.Stdout, "gpushare-probe") {
			t.Errorf("status %d, and the probe left its namespace:\n%s", code, said.String())
		}
	}
	t.Logf("an install takes %v; statuses of %d that were interrupted: %v", whole.Round(time.Millisecond), moments, ended)
	if ended[130] == 0 {
		t.Error("no Ctrl-C came in time")
	}
}

// systemctl keeps one containerd, started in the mount namespace of the test. %[1]s is
// where it keeps its pid, %[2]d the test, %[3]s the node, %[4]s containerd's folder.
const systemctl = `#!/bin/sh
echo "$@" >>%[1]s/calls
case "$1 $5" in
"show containerd.service") cat %[1]s/pid ;;
"show gpushared.service") cat %[1]s/unit ;;
"cat "*) [ -e %[1]s/unit ] ;;
"enable "*) echo active >%[1]s/unit ;;
"restart "*)
	pid=$(cat %[1]s/pid)
	kill "$pid"
	while kill -0 "$pid" 2>/dev/null && [ "$(cut -d' ' -f3 /proc/$pid/stat)" != Z ]; do sleep 0.05; done
	PATH=%[3]s/bin:$PATH TMPDIR=%[4]s/temp setsid nsenter -t %[2]d -m /usr/bin/containerd \
		--config %[4]s/config.toml >>%[3]s/log/containerd-fake.log 2>&1 </dev/null &
	echo $! >%[1]s/pid
	;;
*) exit 1 ;;
esac
`

func restart(t *testing.T, c *node.Containerd) {
	t.Helper()
	if err := c.Process().Stop(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(within(t)); err != nil {
		t.Fatal(err)
	}
}

// stockBin is where the stock shim of a containerd is.
func stockBin(c *node.Containerd) string { return filepath.Dir(c.CtrArgs()[0]) }

// bareContainerd is a node with a private containerd whose configuration has no
// handler of ours.
func bareContainerd(t *testing.T, build string) (*node.Node, *node.Containerd) {
	t.Helper()
	var opts node.ContainerdOptions
	var err error
	if opts.Crictl, err = node.EngineBin(within(t), root, "crictl"); err != nil {
		t.Skip(err)
	}
	opts.Crictl += "/crictl"
	opts.Bin = "/usr/bin"
	if build != "apt" {
		if opts.Bin, err = node.EngineBin(within(t), root, build); err != nil {
			t.Skip(err)
		}
	}
	n := up(t, node.Options{Memory: "4GiB", NoEngine: true})
	place(t, "build/lib/gpushare-probe", filepath.Join(n.Dir, "lib/gpushare/probe"))
	c, err := n.StartContainerd(within(t), image(n), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("containerd's log ends:\n%s", n.LogTail(c.Process().Name, 15))
		}
		if err := c.Close(within(t)); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(c.Dir(), "config.toml")
	// From the first handler that is ours on, which is all that follows runc's.
	ours := regexp.MustCompile(`(?s)\[plugins\.[^]]*\.containerd\.runtimes\.gpushare\].*`)
	if err := os.WriteFile(file, ours.ReplaceAll(content(t, file), nil), 0o644); err != nil {
		t.Fatal(err)
	}
	restart(t, c)
	return n, c
}
