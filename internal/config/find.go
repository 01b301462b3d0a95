// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Find reads the configuration of the running binary: etc/gpushare/config.toml
// of the tree that the binary lies in, else SystemPath, else the defaults.
// A file in the binary's tree counts only if nobody but root can change it or
// anything above it; where somebody can, Find returns ErrUnsafe and does not
// look further, since going on would silently drop what the file says.
func Find() (*Config, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find configuration: %w", err)
	}
	return find(exe, SystemPath)
}

// Path returns the file that Find reads, empty if there is none. The errors are
// Find's.
func Path() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find configuration: %w", err)
	}
	return locate(exe, SystemPath)
}

func find(exe, system string) (*Config, error) {
	path, err := locate(exe, system)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return Default(), nil
	}
	return Load(path)
}

func locate(exe, system string) (string, error) {
	own := filepath.Join(filepath.Dir(filepath.Dir(exe)), "etc", "gpushare", "config.toml")
	for _, path := range []string{own, system} {
		_, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("find configuration: %w", err)
		}
		if err := CheckRootOwned(path); err != nil {
			return "", fmt.Errorf("use configuration %s: %w", path, err)
		}
		if path == own {
			if err := CheckRootOwned(exe); err != nil {
				return "", fmt.Errorf("use configuration %s: %w", path, err)
			}
		}
		return path, nil
	}
	return "", nil
}

// CheckRootOwned returns ErrUnsafe unless path, with links resolved, and every
// directory above it belong to root and cannot be written by group or others.
// A sticky directory such as /tmp may stand above: others cannot replace
// root's entries in it.
func CheckRootOwned(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for p, leaf := real, true; ; p, leaf = filepath.Dir(p), false {
		info, err := os.Lstat(p)
		if err != nil {
			return err
		}
		sticky := !leaf && info.Mode()&fs.ModeSticky != 0
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("%s: owner unknown: %w", p, ErrUnsafe)
		}
		if stat.Uid != 0 {
			return fmt.Errorf("%s belongs to uid %d, not to root: %w; mend it with: chown root:root %s", p, stat.Uid, ErrUnsafe, p)
		}
		if info.Mode().Perm()&0o022 != 0 && !sticky {
			return fmt.Errorf("%s can be written by others than root (mode %04o): %w; mend it with: chmod go-w %s", p, info.Mode().Perm(), ErrUnsafe, p)
		}
		if p == filepath.Dir(p) {
			return nil
		}
	}
}

// LibraryDirectory returns the directory that holds our two libraries now.
// `current` is resolved here, once, so that a container keeps the version that
// it was started with while an upgrade moves the link.
func (c *Config) LibraryDirectory() (string, error) {
	dir := c.LibraryDir
	if dir == "" {
		exe, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find library directory: %w", err)
		}
		dir = filepath.Join(filepath.Dir(filepath.Dir(exe)), "lib", "gpushare")
	}
	current, err := filepath.EvalSymlinks(filepath.Join(dir, "current"))
	if err == nil {
		return current, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("find library directory: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", fmt.Errorf("find library directory: %w", err)
	}
	return dir, nil
}
