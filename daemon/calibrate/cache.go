// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	cacheName    = "context-bytes.json"
	cacheVersion = 1
	maxCache     = 1 << 20
)

// Cache keeps measured figures by driver version and GPU model. It must be used
// by one goroutine at a time.
type Cache struct {
	path    string
	figures map[string]uint64
}

type cacheFile struct {
	Version int               `json:"version"`
	Bytes   map[string]uint64 `json:"context_bytes"`
}

// OpenCache reads the cache in dir. A file that does not read back is as good as
// none: the figures are measured again.
func OpenCache(dir string) *Cache {
	c := &Cache{path: filepath.Join(dir, cacheName), figures: make(map[string]uint64)}
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
	for k, v := range file.Bytes {
		if v > 0 && v <= MaxBytes {
			c.figures[k] = v
		}
	}
	return c
}

func key(driver, model string) string { return driver + "/" + model }

// Get returns the figure in bytes, false if there is none.
func (c *Cache) Get(driver, model string) (uint64, bool) {
	v, ok := c.figures[key(driver, model)]
	return v, ok
}

// Put keeps a figure, on disk too.
func (c *Cache) Put(driver, model string, bytes uint64) error {
	c.figures[key(driver, model)] = bytes
	raw, err := json.MarshalIndent(cacheFile{Version: cacheVersion, Bytes: c.figures}, "", "  ")
	if err != nil {
		return fmt.Errorf("keep context size: %w", err)
	}
	tmp := c.path + ".new"
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return fmt.Errorf("keep context size: %w", err)
	}
	if err := os.WriteFile(tmp, raw, 0o600); err != nil {
		return fmt.Errorf("keep context size: %w", err)
	}
	if err := os.Rename(tmp, c.path); err != nil {
		return errors.Join(fmt.Errorf("keep context size: %w", err), os.Remove(tmp))
	}
	return nil
}
