// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gpushare/gpushare/simgpu/host"
	"github.com/gpushare/gpushare/tests/node"
)

// clock prints how fast a virtual clock runs: a minute of two programs that launch
// 64 kernels, wait, think for 30 ms, and so on.
func (b *bencher) clock() error {
	dir := filepath.Join(b.n.Dir, "clock")
	if r := node.Run(b.ctx, nil, b.n.Bin("simgpu"), "up", "--dir", dir, "--clock", "virtual",
		"--kernel-time", "short=20us", "--detach", "--lib-dir", filepath.Join(b.root, "build/simgpu/lib")); r.Err != nil {
		return r.Err
	}
	defer node.Run(context.Background(), nil, b.n.Bin("simgpu"), "down", "--dir", dir)
	a := host.NewAdminClient(filepath.Join(dir, "admin.sock"))
	if err := a.HoldClock(b.ctx, true); err != nil {
		return err
	}
	for i := range 2 {
		cmd := exec.CommandContext(b.ctx, filepath.Join(b.root, "build/simgpu/test/tenant"), "launches", "1000000")
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "lib"), fmt.Sprintf("SIMGPU_CLIENT=t%d", i),
			"LD_PRELOAD="+filepath.Join(dir, "lib/libsimgpu-time.so"))
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		for s := (host.ClockState{}); len(s.Clients) <= i; time.Sleep(10 * time.Millisecond) {
			var err error
			if s, err = a.Clock(b.ctx); err != nil {
				return err
			}
		}
	}
	begin := time.Now()
	if _, err := a.MoveClock(b.ctx, host.ClockMove{UntilNS: time.Minute.Nanoseconds()}); err != nil {
		return err
	}
	wall := time.Since(begin).Seconds()
	st, err := a.Status(b.ctx)
	if err != nil {
		return err
	}
	launched := uint64(0)
	for _, p := range st.Processes {
		launched += p.Launches
	}
	fmt.Printf("virtual clock: %.0f s a second (a minute with %d launches in %.2f s)\n", 60/wall, launched, wall)
	return nil
}
