// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

// tenants is how many processes start at once.
const tenants = 64

// attach measures how long processes take to get at a GPU: many at once, from
// cuInit to a primary context each, and the first one of a node that is not up yet.
func (b *bencher) attach() error {
	if r := node.Run(b.ctx, nil, "make", "-s", "-C", filepath.Join(b.root, "simgpu"), "tests"); r.Err != nil {
		return r.Err
	}
	client := filepath.Join(b.root, "build/simgpu/test/attach")
	text, err := os.ReadFile(client)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.image, "attach"), text, 0o755); err != nil {
		return err
	}
	bundle, err := b.n.NewBundle(b.ctx, "attach", node.Spec{
		Rootfs: b.image, Args: []string{"sleep", "100000"}, Env: []string{"GPUSHARE_MEMORY=60Gi"},
	})
	if err != nil {
		return err
	}
	if err := b.n.Detach(b.ctx, bundle); err != nil {
		return err
	}
	defer bundle.Delete(context.Background())
	env := []string{"LD_LIBRARY_PATH=" + b.n.DriverLibraries()}
	var bare, ours []float64
	for range rounds {
		a, err := milliseconds(node.Run(b.ctx, env, client, strconv.Itoa(tenants)))
		if err != nil {
			return err
		}
		o, err := milliseconds(b.n.Runc(b.ctx, "exec", bundle.ID, "/attach", strconv.Itoa(tenants)))
		if err != nil {
			return err
		}
		bare, ours = append(bare, a), append(ours, o)
	}
	show(fmt.Sprintf("%d processes attach", tenants), median(bare), median(ours), "ms")
	return b.first(client)
}

// first prints the time from nothing to the first call of a fresh process, on a
// node of eight cards.
func (b *bencher) first(client string) error {
	var up, call []float64
	for range rounds {
		dir := filepath.Join(b.n.Dir, "first")
		begin := time.Now()
		r := node.Run(b.ctx, nil, b.n.Bin("simgpu"), "up", "--dir", dir, "--profile", "8xh100", "--detach",
			"--lib-dir", filepath.Join(b.root, "build/simgpu/lib"))
		if r.Err != nil {
			return r.Err
		}
		isUp := time.Now()
		r = node.Run(b.ctx, []string{"LD_LIBRARY_PATH=" + filepath.Join(dir, "lib")}, client, "1")
		done := time.Now()
		if d := node.Run(b.ctx, nil, b.n.Bin("simgpu"), "down", "--dir", dir); r.Err != nil || d.Err != nil {
			return fmt.Errorf("first call of a node: %w, %w", r.Err, d.Err)
		}
		up, call = append(up, isUp.Sub(begin).Seconds()*1000), append(call, done.Sub(isUp).Seconds()*1000)
	}
	fmt.Printf("simgpu up --profile 8xh100: %.0f ms until it is up, %.0f ms more until a fresh process has made its first calls\n",
		median(up), median(call))
	return nil
}

// milliseconds reads the client's line "all US us …".
func milliseconds(r node.Result) (float64, error) {
	if r.Err != nil {
		return 0, r.Err
	}
	var us float64
	if _, err := fmt.Sscanf(r.Stdout, "all %f us", &us); err != nil {
		return 0, fmt.Errorf("read the client's figure: %q", r.Stdout)
	}
	return us / 1000, nil
}
