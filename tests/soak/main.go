// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command soak starts and ends containers with shares of SIMULATED GPUs for a
// while, some of them ended by force, and then
// looks for what is left: shares, mounts, directories, descriptors, memory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

const (
	tenants = 4
	limit   = uint64(1) << 30
)

func main() {
	length := flag.Duration("for", 10*time.Minute, "how long")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := soak(ctx, *length); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func soak(ctx context.Context, length time.Duration) (err error) {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	n, err := node.Start(ctx, node.Options{Root: root, GPUs: 2})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			fmt.Printf("gpushared's log ends:\n%s\n", n.LogTail("gpushared", 40))
		}
		err = errors.Join(err, n.Close())
	}()
	image := filepath.Join(n.Dir, "image")
	if err := node.SmallImage(ctx, root, image); err != nil {
		return err
	}
	if err := n.Import(ctx, image, "small"); err != nil {
		return err
	}
	if err := one(ctx, n, 0); err != nil { // the first of everything is not a leak
		return err
	}
	before := sizes(n.Daemon().PID)
	fmt.Printf("SIMULATED. before: %v\n", before)

	end := time.Now().Add(length)
	var mu sync.Mutex
	var errs []error
	count := 0
	var all sync.WaitGroup
	for w := range tenants {
		all.Go(func() {
			for i := w; time.Now().Before(end) && ctx.Err() == nil; i += tenants {
				err := one(ctx, n, i)
				mu.Lock()
				count++
				if err != nil && ctx.Err() == nil {
					errs = append(errs, err)
				}
				stop := len(errs) > 0
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	time.Sleep(2 * time.Second) // what the daemon does once a second
	after := sizes(n.Daemon().PID)
	fmt.Printf("SIMULATED. after %d containers: %v\n", count, after)
	if out := strings.TrimSpace(n.CLI(ctx, "ps", "-q").Stdout); out != "" {
		errs = append(errs, fmt.Errorf("shares are left: %s", out))
	}
	if m := n.Mounts("/run/c/"); m != 0 {
		errs = append(errs, fmt.Errorf("%d mounts are left", m))
	}
	for _, d := range []string{"run/c", "run/state"} {
		if left, _ := os.ReadDir(filepath.Join(n.Dir, d)); len(left) != 0 {
			errs = append(errs, fmt.Errorf("%d entries are left in %s", len(left), d))
		}
	}
	if after.descriptors > before.descriptors+2 {
		errs = append(errs, fmt.Errorf("gpushared has %d descriptors, %d before", after.descriptors, before.descriptors))
	}
	return errors.Join(errs...)
}

// one container's life; every third is removed by force while it holds memory.
func one(ctx context.Context, n *node.Node, i int) error {
	name := "soak" + strconv.Itoa(i)
	s, err := node.Talk(ctx, n.DockerEnv(), "docker", "run", "-i", "--rm", "--name", name, "--runtime", node.Runtime,
		"--network", "none", "-e", "GPUSHARE_MEMORY="+strconv.FormatUint(limit, 10)+"B", "small", "alloc", "--fill", "--hold", "stdin")
	if err != nil {
		return err
	}
	line, err := s.Expect("holding", time.Minute)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, line)
	}
	if i%3 == 1 {
		if r := n.Docker(ctx, "rm", "-f", name); r.Err != nil {
			return r.Err
		}
		_ = s.Wait() // ends by SIGKILL
		return nil
	}
	return s.Wait()
}

type size struct{ descriptors, residentKiB int }

func (s size) String() string {
	return fmt.Sprintf("gpushared has %d descriptors, %d KiB", s.descriptors, s.residentKiB)
}

func sizes(pid int) size {
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	s := size{descriptors: len(fds)}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.SplitSeq(string(status), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			s.residentKiB, _ = strconv.Atoi(f[1])
		}
	}
	return s
}
