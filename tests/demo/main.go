// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command demo shows gpushare on a SIMULATED GPU: three tenants of one GPU in real
// Docker containers, held to their memory and their share of GPU time.
//
//	demo          up, show, down: about a minute
//	demo --keep   leaves the node up to play with
//	demo --down   ends a node that was left up
//
// The figures that it judges by are the simulator's own, not gpushare's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

// dir is fixed, so that --down finds the node and a second demo the first.
const dir = node.Base + "/gpushare-demo"

func main() {
	keep := flag.Bool("keep", false, "leave the node up")
	down := flag.Bool("down", false, "end a node that was left up")
	flag.Parse()
	// Not SIGPIPE: a reader that went away must not keep the node from being taken down.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var err error
	if *down {
		err = takeDown()
	} else {
		err = demo(ctx, *keep)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func takeDown() error {
	n, err := node.Load(dir)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Println("No demo node is up.")
		return nil
	}
	if err != nil {
		return err
	}
	if err := n.Close(); err != nil {
		return err
	}
	fmt.Println("The demo node is down; nothing of it is left.")
	return nil
}

// alone makes sure that one demo runs at a time; the kernel drops the name with us.
func alone() (net.Listener, error) {
	l, err := net.Listen("unix", "@gpushare-demo")
	if err != nil {
		return nil, errors.New("another demo is running on this machine")
	}
	return l, nil
}

func demo(ctx context.Context, keep bool) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("run it as root: it starts a private dockerd and containers (nothing in /etc is touched)")
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "build/bin/gpushared")); err != nil {
		return errors.New("nothing is built here: run it by `make demo`")
	}
	lock, err := alone()
	if err != nil {
		return err
	}
	defer lock.Close()
	if left, err := node.Load(dir); err == nil {
		fmt.Println("Taking down the node of an earlier demo first.")
		if err := left.Close(); err != nil {
			return err
		}
	}
	p := newPrinter(os.Stdout)
	p.title("gpushare demo", "Every GPU, byte and second of GPU time below is SIMULATED.")
	begin := time.Now()
	n, err := node.Start(ctx, node.Options{
		Root: root, Dir: dir, GPUs: 2, KernelTimes: []string{"short=50us", "long=5ms"},
	})
	if err != nil {
		return err
	}
	kept := false
	defer func() {
		if kept {
			return
		}
		if cerr := n.Close(); cerr != nil {
			err = errors.Join(err, cerr)
			return
		}
		p.note("Everything that was started is down; no process, mount or file is left.")
	}()
	s := show{p: p, n: n, root: root}
	if err := s.all(ctx, begin); err != nil {
		if ctx.Err() != nil {
			p.note("Interrupted: taking the node down.")
			return errors.New("interrupted")
		}
		return err
	}
	p.line("")
	p.line(fmt.Sprintf("%d of %d points as promised, in %.0f s. All of it SIMULATED.", p.good, p.good+p.bad, time.Since(begin).Seconds()))
	if keep {
		kept = true
		s.howToPlay()
	} else {
		p.note("To play with such a node: make demo KEEP=1")
	}
	if p.bad > 0 {
		return fmt.Errorf("%d points are not as promised", p.bad)
	}
	return nil
}
