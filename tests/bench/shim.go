// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

// shims compares our containerd shim with the one that containerd brings, both built
// alike, under the same containerd.
func (b *bencher) shims() error {
	bin, err := node.EngineBin(b.ctx, b.root, "containerd-2.4")
	if err != nil {
		fmt.Printf("shim: not measured: %v\n", err)
		return nil
	}
	c, err := b.n.StartContainerd(b.ctx, b.image, node.ContainerdOptions{Bin: bin})
	if err != nil {
		return err
	}
	path, err := c.StockShim()
	if err != nil {
		return err
	}
	stock := []string{"--runtime", path}
	ours := []string{"--runtime", node.ShimType}
	shared := append(ours[:2:2], "--env", "GPUSHARE_MEMORY=1Gi")

	var took [3][]float64
	for i := range rounds * 2 {
		for w, flags := range [][]string{stock, ours, shared} {
			run := node.CtrRun{ID: fmt.Sprintf("shim-%d-%d", i, w), Flags: append(flags[:len(flags):len(flags)], "--rm"), Args: []string{"true"}}
			begin := time.Now()
			if r := node.Run(b.ctx, nil, c.RunArgs(run)...); r.Err != nil {
				return r.Err
			}
			took[w] = append(took[w], time.Since(begin).Seconds()*1000)
		}
	}
	show("ctr run without a GPU", median(took[0]), median(took[1]), "ms")
	show("ctr run with a share", median(took[0]), median(took[2]), "ms")

	m, err := c.ShimMemory(b.ctx, 5, stock, ours, shared)
	if err != nil {
		return err
	}
	for i, what := range []string{"", "without a GPU", "with a share"} {
		if i == 0 {
			continue
		}
		show("idle shim, "+what, float64(m[0].RSS), float64(m[i].RSS), "KB")
		show("  of it, its own", float64(m[0].Anon), float64(m[i].Anon), "KB")
	}
	return c.Close(b.ctx)
}
