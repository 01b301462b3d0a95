// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// containerdNode is a node with a private containerd, shared by the tests of one
// version; testMain takes it down.
type containerdNode struct {
	n *node.Node
	c *node.Containerd
}

// containerdBuilds are the versions that are tried on each change: the machine's,
// and the newest that tests/setup/engines.sh builds. The limit is tried on the
// others too, if -engines says so.
var (
	containerdBuilds = []string{"apt", "containerd-2.4"}
	olderBuilds      = []string{"containerd-1.7", "containerd-2.2", "containerd-2.3"}
)

var containerdNodes = map[string]*containerdNode{}

// eachContainerd runs a test on the shared node of each version.
func eachContainerd(t *testing.T, test func(t *testing.T, k *containerdNode)) {
	containerds(t, containerdBuilds, test)
}

func containerds(t *testing.T, builds []string, test func(t *testing.T, k *containerdNode)) {
	for _, build := range builds {
		t.Run(build, func(t *testing.T) {
			k := containerdOf(t, build)
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("containerd's log ends:\n%s", k.n.LogTail(k.c.Process().Name, 15))
					t.Logf("gpushared's log ends:\n%s", k.n.LogTail("gpushared", 15))
				}
			})
			test(t, k)
		})
	}
}

func containerdOf(t *testing.T, build string) *containerdNode {
	t.Helper()
	if k := containerdNodes[build]; k != nil {
		return k
	}
	var opts node.ContainerdOptions
	var err error
	if opts.Crictl, err = node.EngineBin(within(t), root, "crictl"); err != nil {
		t.Fatal(err)
	}
	opts.Crictl += "/crictl"
	if build != "apt" {
		if opts.Bin, err = node.EngineBin(within(t), root, build); err != nil {
			t.Fatal(err)
		}
	}
	// It is down at the end of all tests, or at an interrupt.
	var c *node.Containerd
	n := start(t, node.Options{NoEngine: true}, func(n *node.Node) error {
		if err := node.SmallImage(within(t), root, image(n)); err != nil {
			return err
		}
		c, err = n.StartContainerd(within(t), image(n), opts)
		return err
	})
	containerdNodes[build] = &containerdNode{n, c}
	return containerdNodes[build]
}

// way is one way from containerd to our code.
type way struct {
	name string
	engine
}

// ways are all ways: ctr and the CRI plugin, with our shim and with the stock shim
// and our wrapper.
func (k *containerdNode) ways() []way {
	ways := []way{
		{"ctr, shim", ctrEngine{k, k.ctrShim()}},
		{"ctr, wrapper", ctrEngine{k, k.ctrWrapper()}},
		{"cri, shim", criEngine{k, node.HandlerShim}},
		{"cri, wrapper", criEngine{k, node.HandlerWrapper}},
	}
	// Before 1.6.21 containerd reads runtime_path and forgets it: what runs is the
	// stock shim with plain runc, and no error. TestRuntimePathIgnored shows it.
	if !k.ignoresRuntimePath() {
		ways = append(ways, way{"cri, shim by path", criEngine{k, node.HandlerShimPath}})
	}
	return ways
}

func (k *containerdNode) ignoresRuntimePath() bool {
	patch, is16 := strings.CutPrefix(k.c.Version, "1.6.")
	n, err := strconv.Atoi(patch)
	return is16 && err == nil && n < 21
}

func (k *containerdNode) each(t *testing.T, test func(t *testing.T, w way)) {
	for _, w := range k.ways() {
		t.Run(w.name, func(t *testing.T) { test(t, w) })
	}
}

func (k *containerdNode) ctrShim() []string { return []string{"--runtime", node.ShimType} }

func (k *containerdNode) ctrWrapper() []string {
	return []string{"--runtime", "io.containerd.runc.v2", "--runc-binary", k.n.Bin("gpushare-runtime")}
}

// ctrEngine starts containers with `ctr run` and the flags that choose the way.
type ctrEngine struct {
	*containerdNode
	flags []string
}

func (e ctrEngine) container(env []string, args ...string) (container, node.CtrRun) {
	// runc keeps the states of all containerds of a machine in one place: an id of
	// its own for each run of the tests.
	run := node.CtrRun{ID: fmt.Sprintf("ctr%d-%04d", os.Getpid(), serial.Add(1)), Flags: e.flags, Args: args}
	for _, v := range env {
		run.Flags = append(run.Flags[:len(run.Flags):len(run.Flags)], "--env", v)
	}
	return container{
		id: run.ID,
		exec: func(ctx context.Context, args ...string) node.Result {
			return node.Run(ctx, nil, e.c.ExecArgs(run.ID, args...)...)
		},
		enter: func(t *testing.T, args ...string) *node.Session {
			return talk(t, nil, e.c.ExecArgs(run.ID, args...)...)
		},
		remove: func() { e.c.CtrRemove(context.Background(), run.ID) },
	}, run
}

func (e ctrEngine) background(t *testing.T, env ...string) container {
	t.Helper()
	c, run := e.container(env, "sleep", "100000")
	t.Cleanup(c.remove)
	run.Detach = true
	if r := node.Run(within(t), nil, e.c.RunArgs(run)...); r.Err != nil {
		t.Fatal(r.Err)
	}
	return c
}

func (e ctrEngine) talk(t *testing.T, env []string, args ...string) (container, *node.Session) {
	t.Helper()
	c, run := e.container(env, args...)
	t.Cleanup(c.remove)
	return c, talk(t, nil, e.c.RunArgs(run)...)
}

func (e ctrEngine) run(t *testing.T, env []string, args ...string) (container, node.Result) {
	t.Helper()
	c, run := e.container(env, args...)
	t.Cleanup(c.remove)
	return c, node.Run(within(t), nil, e.c.RunArgs(run)...)
}

// criEngine starts containers through the CRI plugin, each in a pod of its own.
type criEngine struct {
	*containerdNode
	handler string
}

func (e criEngine) pod(t *testing.T, annotations map[string]string, edits ...func(map[string]any)) *node.Pod {
	t.Helper()
	p, err := e.c.NewPod(within(t), e.handler, annotations, edits...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Remove(context.Background()) })
	return p
}

func (e criEngine) container(p *node.Pod, id string) container {
	return container{
		id: id,
		exec: func(ctx context.Context, args ...string) node.Result {
			return e.c.Crictl(ctx, append([]string{"exec", id}, args...)...)
		},
		enter: func(t *testing.T, args ...string) *node.Session {
			return talk(t, nil, e.c.CrictlArgs(append([]string{"exec", "-i", id}, args...)...)...)
		},
		remove: func() { p.Remove(context.Background()) },
	}
}

// start makes and starts a container of a pod.
func (e criEngine) start(t *testing.T, p *node.Pod, k node.CRIContainer) container {
	t.Helper()
	id, r := p.Create(within(t), k)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if r := e.c.Crictl(within(t), "start", id); r.Err != nil {
		t.Fatal(r.Err)
	}
	return e.container(p, id)
}

func (e criEngine) background(t *testing.T, env ...string) container {
	t.Helper()
	p := e.pod(t, nil)
	return e.start(t, p, node.CRIContainer{Name: "main", Args: []string{"sleep", "100000"}, Env: env})
}

func (e criEngine) talk(t *testing.T, env []string, args ...string) (container, *node.Session) {
	t.Helper()
	p := e.pod(t, nil)
	id, r := p.Create(within(t), node.CRIContainer{Name: "main", Args: args, Env: env, Stdin: true})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	s := talk(t, nil, e.c.CrictlArgs("attach", "-i", id)...)
	if r := e.c.Crictl(within(t), "start", id); r.Err != nil {
		t.Fatal(r.Err)
	}
	return e.container(p, id), s
}

func (e criEngine) run(t *testing.T, env []string, args ...string) (container, node.Result) {
	t.Helper()
	p := e.pod(t, nil)
	id, r := p.Run(within(t), node.CRIContainer{Name: "main", Args: args, Env: env})
	return e.container(p, id), r
}
