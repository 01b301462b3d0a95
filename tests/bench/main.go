// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what it costs to be between a program and its driver: the
// same program over the same SIMULATED driver, bare and behind the interception
// library, turn about in one run, so that what is read is a difference under equal
// conditions. On a real GPU, tests/gpu/run.sh measures the same.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

const rounds = 7

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	n, err := node.Start(ctx, node.Options{Root: root, NoEngine: true, KernelTimes: []string{"bench=2us"}})
	if err != nil {
		return err
	}
	defer func() {
		if err := n.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}()
	fmt.Println("All figures are from a SIMULATED GPU: what is added by gpushare is real, the driver's own time is not.")
	fmt.Printf("%-22s %12s %12s %12s\n", "", "bare", "gpushare", "added")
	image := filepath.Join(n.Dir, "image")
	if err := node.SmallImage(ctx, root, image); err != nil {
		return err
	}
	b := bencher{ctx: ctx, n: n, root: root, image: image}
	if err := b.attach(); err != nil {
		return err
	}
	if err := b.clock(); err != nil {
		return err
	}
	if err := b.calls(); err != nil {
		return err
	}
	if err := b.edge(); err != nil {
		return err
	}
	if err := b.starts(); err != nil {
		return err
	}
	return b.shims()
}

type bencher struct {
	ctx         context.Context //nolint:containedctx // lives as long as the one call that makes it
	n           *node.Node
	root, image string
}

// calls compares driver calls of one program inside and outside a container's slice.
func (b *bencher) calls() error {
	client := filepath.Join(b.root, "build/tests/bench")
	bareEnv := []string{"LD_LIBRARY_PATH=" + b.n.DriverLibraries()}
	bundle, err := b.n.NewBundle(b.ctx, "bench", node.Spec{
		Rootfs: b.image, Args: []string{"sleep", "100000"}, Env: []string{"GPUSHARE_MEMORY=8Gi"},
	})
	if err != nil {
		return err
	}
	if err := b.n.Detach(b.ctx, bundle); err != nil {
		return err
	}
	defer bundle.Delete(context.Background())
	for _, op := range calls {
		var bare, ours []float64
		for range rounds {
			args := []string{"--op", op.name, "--count", strconv.Itoa(op.count), "--beside", strconv.Itoa(op.beside)}
			a, err := p50(node.Run(b.ctx, bareEnv, append(append([]string{client}, args...), "--bytes", op.bare)...))
			if err != nil {
				return err
			}
			o, err := p50(b.n.Runc(b.ctx, append(append([]string{"exec", bundle.ID, "bench"}, args...), "--bytes", op.ours)...))
			if err != nil {
				return err
			}
			bare, ours = append(bare, a), append(ours, o)
		}
		show(op.say, median(bare), median(ours), "ns")
	}
	return nil
}

// calls are the calls to compare. An allocation that is refused has the right size for
// the limit of 8 GiB, less a context, and so needs the container's sum; bare, it is
// the driver that refuses.
var calls = []struct {
	name, say  string
	count      int
	beside     int // other processes of the container
	bare, ours string
}{
	{"launch", "kernel launch", 20000, 0, "0", "0"},
	{"alloc", "alloc and free 1 MiB", 2000, 0, "1048576", "1048576"},
	{"alloc", "… 4 MiB", 2000, 0, "4194304", "4194304"},
	{"alloc", "… 16 beside", 2000, 16, "4194304", "4194304"},
	{"reject", "rejected alloc", 20000, 0, "70368744177664", "8500000000"},
	{"reject", "… 16 beside", 20000, 16, "70368744177664", "8500000000"},
	{"reject", "… 256 beside", 20000, 256, "70368744177664", "8500000000"},
	{"reject", "… 1000 beside", 20000, 1000, "70368744177664", "8500000000"},
	{"info", "cuMemGetInfo", 20000, 0, "0", "0"},
	{"info", "… 256 beside", 20000, 256, "0", "0"},
}

// starts compares the start of a container by plain runc and by the wrapper.
func (b *bencher) starts() error {
	var plain, without, with []float64
	for i := range rounds * 2 {
		for _, c := range []struct {
			out *[]float64
			via string
			env []string
		}{{&plain, "runc", nil}, {&without, "", nil}, {&with, "", []string{"GPUSHARE_MEMORY=1Gi"}}} {
			id := fmt.Sprintf("start%d-%d-%d", i, len(c.env), len(c.via))
			bundle, err := b.n.NewBundle(b.ctx, id, node.Spec{Rootfs: b.image, Args: []string{"true"}, Env: c.env})
			if err != nil {
				return err
			}
			cmd := b.n.Command(b.ctx, c.via, "run", "--bundle", bundle.Dir, id)
			begin := time.Now()
			if r := node.Run(b.ctx, nil, cmd.Args...); r.Err != nil {
				return r.Err
			}
			*c.out = append(*c.out, time.Since(begin).Seconds()*1000)
			if err := os.RemoveAll(bundle.Dir); err != nil {
				return err
			}
		}
	}
	show("start without a GPU", median(plain), median(without), "ms")
	show("start with a share", median(plain), median(with), "ms")
	return nil
}

// p50 reads the client's line "OP p50 NS p99 NS …".
func p50(r node.Result) (float64, error) {
	if r.Err != nil {
		return 0, r.Err
	}
	f := strings.Fields(r.Stdout)
	if len(f) < 3 || f[1] != "p50" {
		return 0, fmt.Errorf("read the client's figure: %q", r.Stdout)
	}
	return strconv.ParseFloat(f[2], 64)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

func show(what string, bare, ours float64, unit string) {
	fmt.Printf("%-22s %9.1f %s %9.1f %s %+9.1f %s\n", what, bare, unit, ours, unit, ours-bare, unit)
}
