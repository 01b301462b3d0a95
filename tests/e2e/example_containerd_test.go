// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/tests/node"
)

var exampleNodes = map[string]*containerdNode{}

// eachExampleNode runs a test on each version's node, which is shared by the tests
// of examples; testMain takes it down.
func eachExampleNode(t *testing.T, test func(t *testing.T, k *containerdNode)) {
	for _, build := range containerdBuilds {
		t.Run(build, func(t *testing.T) {
			k := exampleNodes[build]
			if k == nil {
				k = newExampleNode(t, build)
				exampleNodes[build] = k
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("containerd's log ends:\n%s", k.n.LogTail(k.c.Process().Name, 15))
				}
			})
			test(t, k)
		})
	}
}

// newExampleNode is a node whose containerd has the examples' own configuration and
// image. build is as for containerdOf.
func newExampleNode(t *testing.T, build string) *containerdNode {
	t.Helper()
	var opts node.ContainerdOptions
	crictl, err := node.EngineBin(within(t), root, "crictl")
	if err != nil {
		t.Skip(err)
	}
	opts.Crictl = filepath.Join(crictl, "crictl")
	if build != "apt" {
		if opts.Bin, err = node.EngineBin(within(t), root, build); err != nil {
			t.Skip(err)
		}
	}
	n, err := node.Start(within(t), node.Options{Root: root, NoEngine: true})
	if err != nil {
		t.Fatal(err)
	}
	nodes.mu.Lock()
	nodes.up[n] = true
	nodes.mu.Unlock()
	c, err := n.StartContainerd(within(t), exampleRoot(t, n), opts)
	if err != nil {
		t.Fatal(err)
	}
	k := &containerdNode{n, c}
	for _, namespace := range []string{"default", "k8s.io"} {
		if r := c.Ctr(within(t), "--namespace", namespace, "images", "tag", node.SmallImageName, debian); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	err = c.Reconfigure(within(t), func(config string) string {
		return withExample(t, k, node.WithoutHandler(config, "gpushare"))
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// configFile is the example's file for this containerd.
func configFile(k *containerdNode) string {
	name := "config-v3.toml"
	if strings.HasPrefix(k.c.Version, "1.") {
		name = "config-v2.toml"
	}
	return filepath.Join(root, "examples/containerd", name)
}

// withExample adds the example's file to a configuration that lacks our handler, as
// the file says: to containerd 2 as a file of its own, to containerd 1 the table at
// the end. Only the place of our binaries is another one.
func withExample(t *testing.T, k *containerdNode, config string) string {
	t.Helper()
	data, err := os.ReadFile(configFile(k))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), "/usr/local/bin/", k.n.Bin("")+"/")
	if strings.HasPrefix(k.c.Version, "1.") {
		at := regexp.MustCompile(`(?m)^\[.*\.runtimes\.gpushare\]$`).FindStringIndex(text)
		if at == nil {
			t.Fatalf("%s has no table for the runtime", configFile(k))
		}
		return config + text[at[0]:]
	}
	dir := filepath.Join(k.c.Dir(), "conf.d")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "99-gpushare.toml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("imports = [%q]\n", filepath.Join(dir, "*.toml")) + config
}

// The examples for ctr and for crictl do what they say, with the configuration
// that they come with.
func TestContainerdExamples(t *testing.T) {
	eachExampleNode(t, func(t *testing.T, k *containerdNode) {
		env, err := k.c.Env()
		if err != nil {
			t.Fatal(err)
		}
		t.Run("config", func(t *testing.T) { configIsWhole(t, k) })
		t.Run("ctr", func(t *testing.T) {
			commands := scripts(t, "containerd")
			out := play(t, "containerd", env, commands...).Stdout
			// Now and then ctr 2.4 ends before it has passed on what a short program
			// wrote, with runc's own shim too.
			for again := 0; again < 3 && strings.Count(out, "memory total ") < 3; again++ {
				out = play(t, "containerd", env, commands...).Stdout
			}
			shown(t, out, 6*gib, 6*gib, 2*gib)
			nobody(t, k.n)
		})
		t.Run("crictl", func(t *testing.T) {
			removeCgroups(t, "k8s.io") // where a pod goes that names no parent
			// Its containers are in no cgroup of the node's, by which others are found.
			t.Cleanup(func() { k.c.Crictl(within(t), "rmp", "--all", "--force") })
			all := scripts(t, "cri")
			if len(all) != 2 {
				t.Fatalf("%d blocks of commands, want one that starts and one that removes", len(all))
			}
			const ids = `echo "ids $training $notebook $pod"`
			out := play(t, "cri", env, all[0], ids).Stdout
			shown(t, out, 6*gib, 2*gib)
			found := regexp.MustCompile(`(?m)^ids (\w+) (\w+) (\w+)$`).FindStringSubmatch(out)
			if found == nil {
				t.Fatalf("no ids in:\n%s", out)
			}
			if strings.Count(out, " enforced") != 2 {
				t.Errorf("gpushare ps does not show two limited containers:\n%s", out)
			}
			k.filled(t, found[1], 6*gib)
			k.filled(t, found[2], 2*gib)
			play(t, "cri", append(env, "pod="+found[3]), all[1])
			nobody(t, k.n)
		})
	})
}

// configIsWhole has containerd read the example's file alone, as the only thing in
// its configuration.
func configIsWhole(t *testing.T, k *containerdNode) {
	containerd := strings.TrimSuffix(k.c.CtrArgs()[0], "ctr") + "containerd"
	r := node.Run(within(t), nil, containerd, "--config", configFile(k), "config", "dump")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	for _, want := range []string{`\.runtimes\.runc\]`, `\.runtimes\.gpushare\]`, `default_runtime_name = ['"]runc['"]`,
		`(?s)\.runtimes\.gpushare\].*gpushare[.-]v1['"]`, `pod_annotations = \[['"]gpushare.io/\*['"]\]`} {
		if !regexp.MustCompile(want).MatchString(r.Stdout) {
			t.Errorf("containerd does not make %s of the file:\n%s", want, r.Stdout)
		}
	}
}

// filled has a container of the CRI plugin take all the memory that it gets, and
// compares that with the simulator's account.
func (k *containerdNode) filled(t *testing.T, id string, size uint64) {
	t.Helper()
	r := k.c.Crictl(within(t), "exec", id, "alloc", "--fill")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	a, err := k.n.Account(within(t), id)
	if err != nil {
		t.Fatal(err)
	}
	limitCase{limit: size}.judge(t, r.Stdout, a.HighWaterBytes)
}

// removeCgroups has a cgroup that is not there now removed when the test ends, if
// nothing is in it by then.
func removeCgroups(t *testing.T, name string) {
	roots, _ := filepath.Glob("/sys/fs/cgroup/*")
	for _, dir := range append(roots, "/sys/fs/cgroup") {
		dir = filepath.Join(dir, name)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			t.Cleanup(func() { _ = unix.Rmdir(dir) })
		}
	}
}

// nobody waits until no container holds a share.
func nobody(t *testing.T, n *node.Node) {
	t.Helper()
	soon(t, limit, "all shares are free again", func() bool {
		r := n.CLI(within(t), "ps", "-q")
		return r.Err == nil && strings.TrimSpace(r.Stdout) == ""
	})
}
