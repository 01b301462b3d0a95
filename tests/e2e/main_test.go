// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package e2e starts real containers on a SIMULATED GPU and reads what they got
// from the simulator's own account, never from ours.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

// root is the checkout.
var root string

// nodes are those that are up, so that an interrupt takes them down too.
var nodes struct {
	mu sync.Mutex
	up map[*node.Node]bool
}

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	if os.Geteuid() != 0 {
		fmt.Println("the container tests need root: device nodes, mounts, a private engine")
		return 1
	}
	var err error
	if root, err = filepath.Abs("../.."); err != nil {
		fmt.Println(err)
		return 1
	}
	nodes.up = map[*node.Node]bool{}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		if err := closeAll(); err != nil {
			fmt.Println(err)
		}
		os.Exit(130)
	}()
	status := m.Run()
	if err := errors.Join(writeRecord(), closeAll()); err != nil {
		fmt.Println(err)
		status = 1
	}
	return status
}

// closeAll takes down the nodes that are up.
func closeAll() error {
	nodes.mu.Lock()
	defer nodes.mu.Unlock()
	var errs []error
	for n := range nodes.up {
		errs = append(errs, n.Close())
		delete(nodes.up, n)
	}
	return errors.Join(errs...)
}

// limit bounds every single step of a test.
const limit = 60 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*limit)
	t.Cleanup(cancel)
	return ctx
}

// start starts a node, and on it what then does, if anything. An interrupt waits
// until it is known, and takes it down.
func start(t *testing.T, opts node.Options, then func(n *node.Node) error) *node.Node {
	t.Helper()
	nodes.mu.Lock()
	defer nodes.mu.Unlock()
	opts.Root = root
	if opts.Profile == "" && opts.Memory == "" {
		opts.Profile = os.Getenv("GPUSHARE_TEST_PROFILE")
	}
	n, err := node.Start(within(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	nodes.up[n] = true
	if then != nil {
		if err := then(n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// up starts a node for one test, with the small image loaded.
func up(t *testing.T, opts node.Options) *node.Node {
	t.Helper()
	n := start(t, opts, nil)
	t.Cleanup(func() {
		nodes.mu.Lock()
		defer nodes.mu.Unlock()
		if t.Failed() {
			t.Logf("gpushared's log ends:\n%s", n.LogTail("gpushared", 20))
			t.Logf("simgpu's log ends:\n%s", n.LogTail("simgpu", 10))
		}
		if err := n.Close(); err != nil {
			t.Errorf("take the node down: %v", err)
		}
		delete(nodes.up, n)
	})
	if err := node.SmallImage(within(t), root, image(n)); err != nil {
		t.Fatal(err)
	}
	if !opts.NoEngine {
		if err := n.Import(within(t), image(n), "small"); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// image is the small root file system of a node.
func image(n *node.Node) string { return filepath.Join(n.Dir, "image") }
