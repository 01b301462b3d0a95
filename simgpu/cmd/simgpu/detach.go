// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gpushare/gpushare/simgpu/host"
	"github.com/gpushare/gpushare/simgpu/node"
)

// detach starts the same command in a session of its own and waits until it
// answers; the host process writes to DIR/log.
func detach(ctx context.Context, l node.Layout) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own binary: %w", err)
	}
	if err := os.MkdirAll(l.Dir, 0o755); err != nil { //nolint:gosec // tenants read below it
		return fmt.Errorf("create node directory: %w", err)
	}
	logPath := filepath.Join(l.Dir, "log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644) //nolint:gosec // the operator's path
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close() //nolint:errcheck // the child has its own
	start, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool {
		return strings.HasPrefix(strings.TrimLeft(a, "-"), "detach")
	})
	cmd := exec.Command(self, args...) //nolint:gosec,noctx // ourselves; outlives the context
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if wd, err := os.Getwd(); err == nil {
		cmd.Dir = wd
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start host process: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	a := host.NewAdminClient(l.Admin())
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if st, err := a.Status(ctx); err == nil {
			var names []string
			for _, g := range st.GPUs {
				names = append(names, g.Name)
			}
			if _, err := os.Stat(filepath.Join(l.Dir, "dev", "nvidiactl")); errors.Is(err, os.ErrNotExist) {
				fmt.Println(noNodes)
			}
			fmt.Printf("SIMULATED: %s up in %s (pid %d)\n", describe(names), l.Dir, cmd.Process.Pid)
			return nil
		}
		select {
		case err := <-ended:
			b, _ := os.ReadFile(logPath)
			b = b[min(int64(len(b)), start):] // what it wrote, not those before it
			return fmt.Errorf("start host process: %w: %s", err, strings.TrimSpace(string(b)))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("start host process: no answer within 10 s, see %s", logPath)
}
