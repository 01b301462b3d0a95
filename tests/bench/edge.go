// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

const (
	// contextBytes is what a context takes on the card exact.
	contextBytes = 300 * mib

	gib = 1 << 30
	mib = 1 << 20
)

// edges are the races for the last bytes in which public peers were measured.
var edges = []struct {
	processes, step, runs int
}{
	{1, 1 * mib, 1}, {1, 64 * mib, 1}, {1, 1 * gib, 1}, {8, 64 * mib, 40}, {16, 256 * mib, 10},
}

// edge lets processes of a container take all that they can get. The limit leaves 4 GiB
// beside their contexts.
func (b *bencher) edge() error {
	fmt.Printf("%-32s %10s %14s %14s\n", "to the last byte", "runs", "obtained/limit", "bytes over")
	for _, e := range edges {
		if err := b.edgeOf(e.processes, e.step, e.runs); err != nil {
			return err
		}
	}
	return nil
}

func (b *bencher) edgeOf(processes, step, runs int) error {
	limit := uint64(4*gib) + uint64(processes)*contextBytes
	id := fmt.Sprintf("edge%d-%d", processes, step/mib)
	bundle, err := b.n.NewBundle(b.ctx, id, node.Spec{
		Rootfs: b.image, Args: []string{"sleep", "100000"}, Env: []string{fmt.Sprintf("GPUSHARE_MEMORY=%dB", limit)},
	})
	if err != nil {
		return err
	}
	if err := b.n.Detach(b.ctx, bundle); err != nil {
		return err
	}
	defer bundle.Delete(context.Background())
	var least, over, slowest uint64 = limit, 0, 0
	for range runs {
		r := b.n.Runc(b.ctx, "exec", id, "edge", strconv.Itoa(processes), strconv.Itoa(step))
		if r.Err != nil {
			return r.Err
		}
		var got, slow uint64
		if _, err := fmt.Sscanf(r.Stdout, "obtained %d slowest %d", &got, &slow); err != nil {
			return fmt.Errorf("read the client's figure: %q", r.Stdout)
		}
		a, err := b.n.Account(b.ctx, id)
		if err != nil {
			return err
		}
		least = min(least, got+uint64(processes)*contextBytes)
		slowest = max(slowest, slow)
		if a.HighWaterBytes > limit {
			over = max(over, a.HighWaterBytes-limit)
		}
	}
	fmt.Printf("%2d in steps of %4d MiB, slowest call %5.1f ms %5d %14.5f %14d\n", processes, step/mib,
		time.Duration(slowest).Seconds()*1000, runs, float64(least)/float64(limit), over)
	return nil
}
