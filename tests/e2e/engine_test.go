// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

// engine starts containers in one of the ways that exist.
type engine interface {
	// background starts a container that only waits, for exec.
	background(t *testing.T, env ...string) container
	// talk starts a container with the test at its standard input and output.
	talk(t *testing.T, env []string, args ...string) (container, *node.Session)
	// run runs a container to its end.
	run(t *testing.T, env []string, args ...string) (container, node.Result)
}

// container is known to the simulator by the last part of its cgroup's path.
type container struct {
	id     string
	exec   func(ctx context.Context, args ...string) node.Result
	enter  func(t *testing.T, args ...string) *node.Session
	remove func()
}

// engines are Docker in path mode, and no engine at all.
func engines(n *node.Node) map[string]engine {
	return map[string]engine{"docker": docker{n}, "runc": bare{n}}
}

// each runs a test on a node of its own for each engine.
func each(t *testing.T, opts node.Options, test func(t *testing.T, n *node.Node, e engine)) {
	for _, name := range []string{"docker", "runc"} {
		t.Run(name, func(t *testing.T) {
			o := opts
			o.NoEngine = name == "runc"
			n := up(t, o)
			test(t, n, engines(n)[name])
		})
	}
}

var serial atomic.Int64

type docker struct{ n *node.Node }

func (d docker) args(env []string) []string {
	a := []string{"--runtime", node.Runtime, "--network", "none"}
	for _, e := range env {
		a = append(a, "-e", e)
	}
	return a
}

func (d docker) create(t *testing.T, env []string, flags []string, args ...string) container {
	t.Helper()
	argv := append([]string{"create"}, d.args(env)...)
	argv = append(append(append(argv, flags...), "small"), args...)
	r := d.n.Docker(within(t), argv...)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	id := strings.TrimSpace(r.Stdout)
	return container{
		id: id,
		exec: func(ctx context.Context, args ...string) node.Result {
			return d.n.Docker(ctx, append([]string{"exec", id}, args...)...)
		},
		enter: func(t *testing.T, args ...string) *node.Session {
			return talk(t, d.n.DockerEnv(), append([]string{d.n.DockerCommand(), "exec", "-i", id}, args...)...)
		},
		remove: func() { d.n.Docker(context.Background(), "rm", "-f", id) },
	}
}

func talk(t *testing.T, env []string, argv ...string) *node.Session {
	t.Helper()
	s, err := node.Talk(within(t), env, argv...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (d docker) background(t *testing.T, env ...string) container {
	t.Helper()
	c := d.create(t, env, nil, "sleep", "100000")
	t.Cleanup(c.remove)
	if r := d.n.Docker(within(t), "start", c.id); r.Err != nil {
		t.Fatal(r.Err)
	}
	return c
}

func (d docker) talk(t *testing.T, env []string, args ...string) (container, *node.Session) {
	t.Helper()
	c := d.create(t, env, []string{"-i"}, args...)
	t.Cleanup(c.remove)
	return c, talk(t, d.n.DockerEnv(), d.n.DockerCommand(), "start", "-ai", c.id)
}

func (d docker) run(t *testing.T, env []string, args ...string) (container, node.Result) {
	t.Helper()
	c := d.create(t, env, nil, args...)
	t.Cleanup(c.remove)
	return c, d.n.Docker(within(t), "start", "-a", c.id)
}

// bare is the wrapper called as runc is, without any engine.
type bare struct{ n *node.Node }

func (b bare) bundle(t *testing.T, env []string, args ...string) (container, *node.Bundle) {
	t.Helper()
	id := fmt.Sprintf("c%04d", serial.Add(1)) // none is part of another
	bundle, err := b.n.NewBundle(within(t), id, node.Spec{Rootfs: image(b.n), Args: args, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	return container{
		id: id,
		exec: func(ctx context.Context, args ...string) node.Result {
			return b.n.Runc(ctx, append([]string{"exec", id}, args...)...)
		},
		enter: func(t *testing.T, args ...string) *node.Session {
			return talk(t, nil, b.n.Command(context.Background(), "", append([]string{"exec", id}, args...)...).Args...)
		},
		remove: func() { bundle.Delete(context.Background()) },
	}, bundle
}

func (b bare) background(t *testing.T, env ...string) container {
	t.Helper()
	c, bundle := b.bundle(t, env, "sleep", "100000")
	t.Cleanup(c.remove)
	if err := b.n.Detach(within(t), bundle); err != nil {
		t.Fatal(err)
	}
	return c
}

func (b bare) talk(t *testing.T, env []string, args ...string) (container, *node.Session) {
	t.Helper()
	c, bundle := b.bundle(t, env, args...)
	t.Cleanup(c.remove)
	return c, talk(t, nil, b.n.Command(context.Background(), "", "run", "--bundle", bundle.Dir, c.id).Args...)
}

func (b bare) run(t *testing.T, env []string, args ...string) (container, node.Result) {
	t.Helper()
	c, bundle := b.bundle(t, env, args...)
	t.Cleanup(c.remove)
	return c, bundle.Run(within(t))
}

// expect waits for a line of a session and fails the test if it does not come.
func expect(t *testing.T, s *node.Session, prefix string) string {
	t.Helper()
	line, err := s.Expect(prefix, limit)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// soon waits until check is true and returns how long that took; the test fails
// after patience.
func soon(t *testing.T, patience time.Duration, what string, check func() bool) time.Duration {
	t.Helper()
	begin := time.Now()
	for !check() {
		if time.Since(begin) > patience {
			t.Errorf("%s: not within %v", what, patience)
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(begin)
}
