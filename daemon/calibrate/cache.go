// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	cacheName    = "calibration.json"
	cacheVersion = 2
	maxCache     = 1 << 20
)

// Cache keeps measured figures by driver version and GPU model. It must be used
// by one goroutine at a time.
type Cache struct {
	path    string
	figures map[string]Figures
}

type cacheFile struct {
	Version int                `json:"version"`
	Figures map[string]Figures `json:"figures"`
}

// OpenCache reads the cache in dir. A file that does not read back is as good as
// none: the figures are measured again.
func OpenCache(dir string) *Cache {
	c := &Cache{path: filepath.Join(dir, cacheName), figures: make(map[string]Figures)}
	f, err := os.OpenFile(c.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return c
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxCache))
	if err != nil {
		return c
	}
	var file cacheFile
	if json.Unmarshal(raw, &file) != nil || file.Version != cacheVersion {
		return c
	}
	for k, v := range file.Figures {
		if v.sane() {
			c.figures[k] = v
		}
	}
	return c
}

func key(driver, model string) string { return driver + "/" + model }

// sane reports whether the figures can have been measured.
func (f Figures) sane() bool {
	return f.ContextBytes > 0 && f.ContextBytes <= MaxBytes && f.NextContextBytes <= MaxBytes &&
		f.BlockBytes <= maxBlock && f.BlockBytes&(f.BlockBytes-1) == 0 &&
		f.ModuleBytes <= maxModule && f.StackThreads <= math.MaxUint32
}

// Get returns the figures, false if there are none.
func (c *Cache) Get(driver, model string) (Figures, bool) {
	v, ok := c.figures[key(driver, model)]
	return v, ok
}

// Put keeps figures, on disk too. Those that lack one are kept until the daemon
// ends: the next one tries again.
func (c *Cache) Put(driver, model string, f Figures) error {
	c.figures[key(driver, model)] = f
	if len(f.Unknown) > 0 {
		return nil
	}
	file := cacheFile{Version: cacheVersion, Figures: make(map[string]Figures)}
	for k, v := range c.figures {
		if len(v.Unknown) == 0 {
			file.Figures[k] = v
		}
	}
	raw, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return fmt.Errorf("keep calibration: %w", err)
	}
	tmp := c.path + ".new"
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return fmt.Errorf("keep calibration: %w", err)
	}
	if err := os.WriteFile(tmp, raw, 0o600); err != nil {
		return fmt.Errorf("keep calibration: %w", err)
	}
	if err := os.Rename(tmp, c.path); err != nil {
		return errors.Join(fmt.Errorf("keep calibration: %w", err), os.Remove(tmp))
	}
	return nil
}
