// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"
)

// guardEvery is how often a daemon looks after itself that no service manager
// watches.
const guardEvery = 5 * time.Second

// guard looks after the daemon: that it answers, which is what the service
// manager's watchdog is told, and that its files are still its own.
type guard struct {
	every time.Duration
	// health asks the daemon by its own socket, as everybody does. A daemon that
	// hangs does not answer, and then the service manager is not told anything.
	health func(ctx context.Context) error
	// files are those that must stay what they are.
	files  []keptFile
	status func() string
	notify func(state ...string) error
	log    *slog.Logger
}

// keptFile is a file that the daemon made.
type keptFile struct {
	path string
	info fs.FileInfo
}

func keep(path string) (keptFile, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return keptFile{}, fmt.Errorf("look up own file: %w", err)
	}
	return keptFile{path, info}, nil
}

// errTaken is returned for a file that was removed or replaced. A daemon whom
// nobody can reach, or beside whom another can start, must end: the service
// manager starts one anew, and containers do not notice.
var errTaken = errors.New("it was removed or replaced while the daemon ran; end this one and start another")

func (k keptFile) check() error {
	info, err := os.Lstat(k.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil // it may be there
	}
	if err != nil || !os.SameFile(info, k.info) {
		return fmt.Errorf("%s: %w", k.path, errTaken)
	}
	return nil
}

// run works until ctx ends, or returns errTaken.
func (g *guard) run(ctx context.Context) error {
	tick := time.NewTicker(g.every)
	defer tick.Stop()
	well := true
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, k := range g.files {
			if err := k.check(); err != nil && ctx.Err() == nil {
				return err
			}
		}
		bounded, cancel := context.WithTimeout(ctx, g.every)
		err := g.health(bounded)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			g.log.Error("no progress, the service manager's watchdog is left alone", "err", err)
			_ = g.notify("STATUS=no progress: " + err.Error())
			well = false
			continue
		}
		if !well {
			g.log.Info("progress again")
			well = true
		}
		if err := g.notify("WATCHDOG=1", "STATUS="+g.status()); err != nil {
			g.log.Warn("service manager not told, carried on", "err", err)
		}
	}
}
