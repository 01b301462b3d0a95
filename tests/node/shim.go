// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Memory is what a process holds, in KiB.
type Memory struct {
	// RSS is Anon, its own, and File, which it shares with others of its kind.
	RSS, Anon, File int
}

// StockShim puts a copy of the shim that containerd brings beside ours and returns
// its path, which `ctr run --runtime` takes. What is mapped of a program depends on
// how its file came to be in memory, so both have to come alike.
func (c *Containerd) StockShim() (string, error) {
	const name = "containerd-shim-runc-v2"
	to := c.node.Bin(name)
	if err := copyFile(filepath.Join(c.opts.Bin, name), to, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("copy containerd's shim: %w", err)
	}
	return to, nil
}

// shimIdle is when a shim has given back what its start took: containerd's code
// returns free memory every 30 s, and says nothing when it has.
const shimIdle = 33 * time.Second

// ShimMemory starts count containers in each of the ways that the flags of `ctr run`
// choose, turn about, and returns the median of what an idle shim of each holds.
func (c *Containerd) ShimMemory(ctx context.Context, count int, ways ...[]string) ([]Memory, error) {
	ids := make([][]string, len(ways))
	defer func() {
		for _, id := range slices.Concat(ids...) {
			c.CtrRemove(context.WithoutCancel(ctx), id)
		}
	}()
	for i := range count {
		for w, flags := range ways {
			id := fmt.Sprintf("idle-%d-%d-%d", os.Getpid(), w, i)
			ids[w] = append(ids[w], id)
			run := CtrRun{ID: id, Flags: flags, Args: []string{"sleep", "100000"}, Detach: true}
			if r := Run(ctx, nil, c.RunArgs(run)...); r.Err != nil {
				return nil, fmt.Errorf("start shim: %w", r.Err)
			}
		}
	}
	select {
	case <-time.After(shimIdle):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	out := make([]Memory, len(ways))
	for w := range ways {
		all := make([]Memory, 0, count)
		for _, id := range ids[w] {
			p := c.Shim(id)
			if p == nil {
				return nil, fmt.Errorf("measure shim: %s has none", id)
			}
			m, err := memoryOf(p.PID)
			if err != nil {
				return nil, err
			}
			all = append(all, m)
		}
		slices.SortFunc(all, func(a, b Memory) int { return a.RSS - b.RSS })
		out[w] = all[len(all)/2]
	}
	return out, nil
}

func memoryOf(pid int) (Memory, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("measure process: %w", err)
	}
	var m Memory
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(line, ":")
		to := map[string]*int{"VmRSS": &m.RSS, "RssAnon": &m.Anon, "RssFile": &m.File}[key]
		if to == nil {
			continue
		}
		if *to, err = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB")); err != nil {
			return Memory{}, fmt.Errorf("measure process: %w", err)
		}
	}
	if m.RSS == 0 {
		return Memory{}, fmt.Errorf("measure process %d: no figure in its status", pid)
	}
	return m, nil
}
