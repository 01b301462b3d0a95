// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// shimmed is ctr with our shim and more flags.
func (k *containerdNode) shimmed(flags ...string) ctrEngine {
	return ctrEngine{k, append(k.ctrShim(), flags...)}
}

// held are the containers that hold a share, by the daemon's word.
func held(t *testing.T, k *containerdNode) map[string]v1.Container {
	t.Helper()
	list, err := v1.NewClient(filepath.Join(k.n.RunDir(), "gpushared.sock")).Containers(within(t))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]v1.Container{}
	for _, c := range list.Containers {
		out[c.ID] = c
	}
	return out
}

// found waits until the daemon has found the container by the runtime's state, and
// returns its first process.
func found(t *testing.T, k *containerdNode, c container) (pid int) {
	t.Helper()
	soon(t, 2*time.Second, "the daemon finds "+c.id, func() bool { pid = held(t, k)[c.id].PID; return pid != 0 })
	return pid
}

// fills fills the container's share from a new process and looks at the account.
func fills(t *testing.T, k *containerdNode, c container, limit uint64) {
	t.Helper()
	r := c.exec(within(t), "alloc", "--fill")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	fill(limit).judge(t, r.Stdout, high(t, k.n, c))
}

// socketOf is the file of the socket on which a container's shim serves.
func socketOf(t *testing.T, k *containerdNode, id string) string {
	t.Helper()
	address, err := os.ReadFile(k.c.BundleFile("default", id, "address"))
	if errors.Is(err, fs.ErrNotExist) {
		var b struct{ Address string }
		data, err := os.ReadFile(k.c.BundleFile("default", id, "bootstrap.json"))
		if err != nil || json.Unmarshal(data, &b) != nil {
			t.Fatalf("no address of the shim: %v", err)
		}
		address = []byte(b.Address)
	} else if err != nil {
		t.Fatal(err)
	}
	path, ok := strings.CutPrefix(string(address), "unix://")
	if !ok || !filepath.IsAbs(path) {
		t.Fatalf("the shim serves on %q, not on a path", address)
	}
	return path
}

func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Two containers of a group share one shim and not their limits; both outlive
// containerd, and each goes by itself.
func TestShimGroup(t *testing.T) {
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		e := k.shimmed("--annotation", "io.containerd.runc.v2.group=group-"+k.c.Version)
		one := e.background(t, share("1Gi")...)
		two := e.background(t, share("3Gi")...)
		shim := k.c.Shim(one.id)
		if shim == nil || k.c.Shim(two.id) != nil {
			t.Fatalf("shims %v and %v, want one for both", shim, k.c.Shim(two.id))
		}
		socket := socketOf(t, k, one.id)
		if other := socketOf(t, k, two.id); other != socket {
			t.Errorf("sockets %s and %s", socket, other)
		}
		info, err := os.Lstat(socket)
		if err != nil || info.Mode() != fs.ModeSocket|0o600 {
			t.Errorf("socket %s: %v, %v; want mode 0600", socket, info, err)
		}
		fills(t, k, one, gib)
		fills(t, k, two, 3*gib)

		if err := k.c.Process().Kill(); err != nil {
			t.Fatal(err)
		}
		if !shim.Alive() || len(held(t, k)) != 2 {
			t.Errorf("without containerd the shim lives: %t, shares: %v", shim.Alive(), held(t, k))
		}
		if err := k.c.Start(within(t)); err != nil {
			t.Fatal(err)
		}
		fills(t, k, two, 3*gib)
		one.remove()
		soon(t, 2*time.Second, "the first one's share goes back", func() bool { return len(held(t, k)) == 1 })
		fills(t, k, two, 3*gib)
		two.remove()
		soon(t, 2*time.Second, "the second one's share goes back", func() bool { return len(held(t, k)) == 0 })
		soon(t, 10*time.Second, "the shim ends", func() bool { return !shim.Alive() })
		soon(t, 10*time.Second, "its socket goes", func() bool { return absent(socket) })
	})
}

// A shim that is killed takes its containers along, and their shares go back by
// containerd's own clean-up, within two seconds.
func TestShimKilled(t *testing.T) {
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		c := k.shimmed().background(t, share("1Gi")...)
		s := c.enter(t, "alloc", "--fill", "--hold", "stdin")
		expect(t, s, "holding")
		shim, socket := k.c.Shim(c.id), socketOf(t, k, c.id)
		begin := time.Now()
		if err := shim.Kill(); err != nil {
			t.Fatal(err)
		}
		soon(t, 2*time.Second, "the share goes back", func() bool { return len(held(t, k)) == 0 })
		t.Logf("the share was back %v after the kill", time.Since(begin))
		if got := account(t, k.n, c).MemoryBytes; got != 0 {
			t.Errorf("the simulator still counts %d bytes", got)
		}
		soon(t, 10*time.Second, "the dead shim's socket goes", func() bool { return absent(socket) })
		s.End()
	})
}

// Without the daemon GPU containers are refused with the reason, and others run as
// with the stock shim, from the same bytes.
func TestShimWithoutDaemon(t *testing.T) {
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		if err := k.n.Daemon().Kill(); err != nil {
			t.Fatal(err)
		}
		_, r := k.shimmed().run(t, share("1Gi"), "echo", "started")
		refused(t, r, "gpushared", "GS-DAEMON")
		plain := k.shimmed().background(t)
		untouched(t, k, "default", plain.id)
		if r := plain.exec(within(t), "echo", "runs"); r.Err != nil || !strings.Contains(r.Stdout, "runs") {
			t.Errorf("a container without a GPU: %v, %q", r.Err, r.Stdout)
		}
		if err := k.n.StartDaemon(within(t)); err != nil {
			t.Fatal(err)
		}
		if got := held(t, k); len(got) != 0 {
			t.Errorf("shares %v", got)
		}
	})
}

// A container that runc does not make holds no share, although its shim lives on
// for its neighbour.
func TestShimCreateFails(t *testing.T) {
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		e := k.shimmed("--annotation", "io.containerd.runc.v2.group=failing-"+k.c.Version)
		neighbour := e.background(t, share("1Gi")...)
		c, r := e.run(t, share("2Gi"), "/no/such/program")
		if r.Err == nil || !strings.Contains(r.Stderr, "/no/such/program") {
			t.Errorf("runc's own reason is missing: %v: %s", r.Err, r.Stderr)
		}
		soon(t, 2*time.Second, "its share goes back", func() bool { _, there := held(t, k)[c.id]; return !there })
		fills(t, k, neighbour, gib)
		if shim := k.c.Shim(neighbour.id); !shim.Alive() {
			t.Error("the shim is gone")
		}
	})
}

// The runtime's options in a TOML file, as the CRI plugin passes them to a runtime
// type that it does not know: our own wrapper as BinaryName neither edits a second
// time nor calls itself, a runtime with a kernel of its own gets no GPU container,
// and an option that is misspelt is not dropped.
func TestShimOptions(t *testing.T) {
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		options := func(t *testing.T, text string) ctrEngine {
			file := filepath.Join(k.n.Dir, "options.toml")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			return k.shimmed("--runtime-config-path", file)
		}
		t.Run("wrapper", func(t *testing.T) {
			c := options(t, "BinaryName = \""+k.n.Bin("gpushare-runtime")+"\"\nRoot = \""+k.n.Dir+"/other-root\"\n").background(t, share("1Gi")...)
			config, err := os.ReadFile(k.c.BundleFile("default", c.id, "config.json"))
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(config, []byte(`gpushare-hook"`)); n == 0 || n != bytes.Count(onceEdited(t, k), []byte(`gpushare-hook"`)) {
				t.Errorf("the hook is entered %d times", n)
			}
			runtime, err := os.ReadFile(k.c.BundleFile("default", c.id, "runtime"))
			if err != nil || !filepath.IsAbs(string(runtime)) || strings.Contains(string(runtime), "gpushare") {
				t.Errorf("the low-level runtime is %q, %v", runtime, err)
			}
			if _, err := os.Stat(filepath.Join(k.n.Dir, "other-root/default", c.id, "state.json")); err != nil {
				t.Errorf("Root is not followed: %v", err)
			}
			found(t, k, c)
			fills(t, k, c, gib)
			c.remove()
			soon(t, 2*time.Second, "the share goes back", func() bool { return len(held(t, k)) == 0 })
		})
		t.Run("runsc", func(t *testing.T) {
			runsc := k.n.Bin("runsc")
			if err := os.WriteFile(runsc, []byte("#!/bin/sh\nexec runc \"$@\"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			e := options(t, "BinaryName = \""+runsc+"\"\n")
			_, r := e.run(t, share("1Gi"), "echo", "started")
			refused(t, r, "runsc", "GS-RUNTIME")
			if _, r := e.run(t, nil, "echo", "runs"); r.Err != nil || !strings.Contains(r.Stdout, "runs") {
				t.Errorf("a container without a GPU: %v, %q", r.Err, r.Stdout)
			}
		})
		t.Run("misspelt", func(t *testing.T) {
			_, r := options(t, "SystemdCgrup = true\n").run(t, nil, "echo", "started")
			if r.Err == nil || !strings.Contains(r.Stderr, "SystemdCgrup") || !strings.Contains(r.Stderr, "invalid argument") {
				t.Errorf("%v: %s", r.Err, r.Stderr)
			}
		})
	})
}

// onceEdited is the config.json of a container that is made without options.
func onceEdited(t *testing.T, k *containerdNode) []byte {
	t.Helper()
	c := k.shimmed().background(t, share("1Gi")...)
	defer c.remove()
	data, err := os.ReadFile(k.c.BundleFile("default", c.id, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The daemon may come and go under a shim: a container that it has not seen start
// is found by the runtime's state, and its share goes back once.
func TestShimAndDaemonRestart(t *testing.T) {
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		c := k.shimmed().background(t, share("1Gi")...)
		pid := found(t, k, c)
		for range 2 {
			if err := k.n.Daemon().Kill(); err != nil {
				t.Fatal(err)
			}
			if err := k.n.StartDaemon(within(t)); err != nil {
				t.Fatal(err)
			}
			if got := found(t, k, c); got != pid {
				t.Errorf("first process %d, was %d", got, pid)
			}
		}
		fills(t, k, c, gib)
		// Deleted while the daemon is away: the delete is not kept waiting, and the
		// next daemon finds the container ended.
		if err := k.n.Daemon().Kill(); err != nil {
			t.Fatal(err)
		}
		c.remove()
		if r := k.c.Ctr(context.Background(), "task", "list", "--quiet"); strings.Contains(r.Stdout, c.id) {
			t.Error("the task is still there")
		}
		if err := k.n.StartDaemon(within(t)); err != nil {
			t.Fatal(err)
		}
		if got := held(t, k); len(got) != 0 {
			t.Errorf("shares %v", got)
		}
	})
}

// An idle shim has at most 1 MB more of its own than containerd's, built alike, under the
// same containerd, in the same run. The pages of the program file are not counted: all
// shims of a node share them, and the kernel decides how many are mapped.
func TestShimMemory(t *testing.T) {
	k := containerdOf(t, "containerd-2.4")
	stock, err := k.c.StockShim()
	if err != nil {
		t.Fatal(err)
	}
	m, err := k.c.ShimMemory(within(t), 3, []string{"--runtime", stock}, k.ctrShim(),
		append(k.ctrShim(), "--env", "GPUSHARE_MEMORY=1Gi"))
	if err != nil {
		t.Fatal(err)
	}
	for i, what := range []string{"without a GPU", "with a share"} {
		t.Logf("%s: %+v KiB, containerd's own %+v", what, m[i+1], m[0])
		if more := m[i+1].Anon - m[0].Anon; more > 1000000/1024 {
			t.Errorf("%s: %d KiB more than containerd's own", what, more)
		}
	}
}
