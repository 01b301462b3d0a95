// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// code is at the end of each of our error lines.
var code = regexp.MustCompile(`\[GS-[A-Z0-9-]+\]`)

// refused fails the test unless the container was not started and the engine's own
// error output says why in one line with a code.
func refused(t *testing.T, r node.Result, words ...string) {
	t.Helper()
	if r.Code == 0 || r.Err == nil {
		t.Errorf("the container was started: %q", r.Stdout)
		return
	}
	if strings.Contains(r.Stdout, "started") {
		t.Errorf("the program ran: %q", r.Stdout)
	}
	var line string
	for l := range strings.SplitSeq(r.Stderr, "\n") {
		if strings.Contains(l, "gpushare: ") && code.MatchString(l) {
			line = l
			break
		}
	}
	if line == "" {
		t.Errorf("no line with a reason and a code in %q", r.Stderr)
		return
	}
	for _, w := range words {
		if !strings.Contains(line, w) {
			t.Errorf("%q is not said in %q", w, line)
		}
	}
}

// fakeHook puts NVIDIA's hook on dockerd's PATH, without which dockerd itself
// refuses --gpus and a test of it would prove nothing.
func fakeHook(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia-container-runtime-hook"), []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Every way of asking Docker for a GPU without a share, or for more than a share,
// is refused or held to a share.
func TestNothingIsFree(t *testing.T) {
	generations(t, node.Options{EnginePath: fakeHook(t)}, nothingIsFree)
}

func nothingIsFree(t *testing.T, n *node.Node) {
	run := func(args ...string) node.Result {
		return n.Docker(within(t), append([]string{"run", "--rm", "--runtime", node.Runtime, "--network", "none"}, args...)...)
	}
	nvidia := filepath.Join(n.Devices(), "nvidia0")
	for _, c := range []struct {
		name string
		args []string
		word string
	}{
		{"gpus all", []string{"--gpus", "all"}, "GPUSHARE_MEMORY"},
		{"privileged", []string{"--privileged"}, "privileged"},
		{"privileged with a share", []string{"--privileged", "-e", "GPUSHARE_MEMORY=1Gi"}, "privileged"},
		{"bind of /dev", []string{"-v", "/dev:/dev"}, ""},
		{"device", []string{"--device", nvidia + ":/dev/nvidia0"}, "GPUSHARE_MEMORY"},
		{"device cgroup rule", []string{"--device-cgroup-rule", "c 195:* rwm"}, "GPUSHARE_MEMORY"},
		{"every device", []string{"--device-cgroup-rule", "a *:* rwm"}, ""},
		{"compute without memory", []string{"-e", "GPUSHARE_COMPUTE=50%"}, "GPUSHARE_MEMORY"},
		{"misspelt word", []string{"-e", "GPUSHARE_MEMROY=1Gi", "-e", "GPUSHARE_MEMORY=1Gi"}, "GPUSHARE_MEMORY"},
		{"no such GPU", []string{"-e", "GPUSHARE_MEMORY=1Gi", "-e", "GPUSHARE_GPU=7"}, "7"},
		{"more than there is", []string{"-e", "GPUSHARE_MEMORY=81Gi"}, "80"},
		{"the host's /proc", []string{"-e", "GPUSHARE_MEMORY=1Gi", "-v", "/proc:/x:ro"}, "GS-BIND"},
		{"control groups", []string{"-e", "GPUSHARE_MEMORY=1Gi", "-v", "/sys/fs/cgroup:/x:ro"}, "GS-BIND"},
		{"control groups below", []string{"-e", "GPUSHARE_MEMORY=1Gi", "-v", "/sys:/x:ro"}, "GS-BIND"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused(t, run(append(append(c.args, "small"), "echo", "started")...), c.word)
		})
	}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"gpus all with a share", []string{"--gpus", "all", "-e", "GPUSHARE_MEMORY=1Gi"}},
		{"gpus and bind of one node", []string{"--device", nvidia + ":/dev/nvidia0", "-e", "GPUSHARE_MEMORY=1Gi"}},
		{"bind of /dev with a share", []string{"-v", "/dev:/dev", "-e", "GPUSHARE_MEMORY=1Gi"}},
		{"every device with a share", []string{"--device-cgroup-rule", "a *:* rwm", "-e", "GPUSHARE_MEMORY=1Gi"}},
		{"mount over the library", []string{"-e", "GPUSHARE_MEMORY=1Gi", "-v",
			n.DriverLibraries() + ":/usr/lib/x86_64-linux-gnu/other:ro", "-e", "NVIDIA_VISIBLE_DEVICES=all"}},
		{"mount over the page", []string{"-e", "GPUSHARE_MEMORY=1Gi", "--tmpfs", "/run/gpushare"}},
		{"mount over /run", []string{"-e", "GPUSHARE_MEMORY=1Gi", "--tmpfs", "/run"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(append(append(c.args, "small"), "alloc", "--fill")...)
			if r.Err != nil {
				refused(t, r) // refused is fine, free is not
				return
			}
			if !strings.Contains(r.Stdout, fmt.Sprintf("total %d", gib)) {
				t.Errorf("not limited: %s", r.Stdout)
			}
		})
	}
	t.Run("an image that sees all devices", func(t *testing.T) {
		// The variable alone is what every CUDA image carries; it makes no GPU container.
		r := run("-e", "NVIDIA_VISIBLE_DEVICES=all", "small", "sh", "-c", "echo started; ls /dev/nvidia* 2>/dev/null; :")
		if r.Stdout != "started\n" {
			t.Errorf("got %q, %v", r.Stdout, r.Err)
		}
	})
	if r := n.CLI(within(t), "ps", "-q"); strings.TrimSpace(r.Stdout) != "" {
		t.Errorf("a refused container left a share: %s", r.Stdout)
	}
}

// With the daemon dead a GPU container is refused, anything else starts as ever.
func TestDaemonDown(t *testing.T) {
	each(t, node.Options{}, func(t *testing.T, n *node.Node, e engine) {
		if err := n.Daemon().Kill(); err != nil {
			t.Fatal(err)
		}
		d, isDocker := e.(docker)
		if isDocker {
			refused(t, n.Docker(within(t), "run", "--rm", "--runtime", node.Runtime, "--network", "none",
				"-e", "GPUSHARE_MEMORY=1Gi", "small", "echo", "started"), "gpushared")
		} else {
			_, r := e.run(t, share("1Gi"), "echo", "started")
			refused(t, r, "gpushared")
		}
		_, r := e.run(t, nil, "echo", "started")
		if r.Stdout != "started\n" || r.Stderr != "" {
			t.Errorf("a container without a GPU: %q %q %v", r.Stdout, r.Stderr, r.Err)
		}
		if isDocker {
			dockerSpecUntouched(t, d)
		} else {
			bareSpecUntouched(t, e.(bare))
		}
	})
}

// dockerSpecUntouched compares config.json as dockerd wrote it with what the
// wrapper hands to runc, for a container that has nothing to do with GPUs.
func dockerSpecUntouched(t *testing.T, d docker) {
	t.Helper()
	r := d.n.Docker(within(t), "create", "--runtime", node.Recorded, "--network", "none", "-e", "NVIDIA_VISIBLE_DEVICES=all",
		"small", "sleep", "100000")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	id := strings.TrimSpace(r.Stdout)
	t.Cleanup(func() { d.n.Docker(context.Background(), "rm", "-f", id) })
	if r := d.n.Docker(within(t), "start", id); r.Err != nil {
		t.Fatal(r.Err)
	}
	before, err := d.n.BundleFile(id, "config.json.before")
	if err != nil {
		t.Fatal(err)
	}
	after, err := d.n.BundleFile(id, "config.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) || len(after) == 0 {
		t.Errorf("config.json was changed:\n%s\n%s", before, after)
	}
}

func bareSpecUntouched(t *testing.T, b bare) {
	t.Helper()
	c, bundle := b.bundle(t, nil, "true")
	t.Cleanup(c.remove)
	file := filepath.Join(bundle.Dir, "config.json")
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := bundle.Config()
	if r := bundle.Run(within(t)); r.Err != nil {
		t.Fatal(r.Err)
	}
	after, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if now, _ := bundle.Config(); now != text || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Error("config.json of a container without a GPU was written")
	}
}
