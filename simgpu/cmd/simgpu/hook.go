// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// containerRoot reads the state that a runtime writes to a hook's standard
// input and returns the container's root directory.
func containerRoot() (string, error) {
	var state struct {
		Bundle string `json:"bundle"`
	}
	if err := json.NewDecoder(io.LimitReader(os.Stdin, 1<<20)).Decode(&state); err != nil {
		return "", fmt.Errorf("read container state: %w", err)
	}
	b, err := os.ReadFile(filepath.Join(state.Bundle, "config.json"))
	if err != nil {
		return "", fmt.Errorf("read container configuration: %w", err)
	}
	var spec struct {
		Root struct {
			Path string `json:"path"`
		} `json:"root"`
	}
	if err := json.Unmarshal(b, &spec); err != nil {
		return "", fmt.Errorf("read container configuration: %w", err)
	}
	if spec.Root.Path == "" {
		return "", errors.New("read container configuration: no root")
	}
	if !filepath.IsAbs(spec.Root.Path) {
		spec.Root.Path = filepath.Join(state.Bundle, spec.Root.Path)
	}
	return spec.Root.Path, nil
}

// inRoot opens the directory of path below root without leaving root.
func inRoot(root, dir string) (int, error) {
	r, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open container root: %w", err)
	}
	defer unix.Close(r) //nolint:errcheck // nothing is lost
	fd, err := unix.Openat2(r, strings.TrimPrefix(dir, "/"), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT,
	})
	if err != nil {
		return -1, fmt.Errorf("open %s in the container: %w", dir, err)
	}
	return fd, nil
}

func createSymlinksCommand() *cli.Command {
	return &cli.Command{
		Name:   "create-symlinks",
		Usage:  "container hook: create links in the container's root",
		Hidden: true,
		Flags:  []cli.Flag{&cli.StringSliceFlag{Name: "link", Usage: "`TARGET::PATH`"}},
		Action: func(c *cli.Context) error {
			root, err := containerRoot()
			if err != nil {
				return err
			}
			for _, l := range c.StringSlice("link") {
				target, path, ok := strings.Cut(l, "::")
				if !ok {
					return fmt.Errorf("link %q: want TARGET::PATH", l)
				}
				dir, err := inRoot(root, filepath.Dir(path))
				if err != nil {
					return err
				}
				err = unix.Symlinkat(target, dir, filepath.Base(path))
				_ = unix.Close(dir)
				if err != nil && !errors.Is(err, unix.EEXIST) {
					return fmt.Errorf("create link %s: %w", path, err)
				}
			}
			return nil
		},
	}
}

func updateLdcacheCommand() *cli.Command {
	return &cli.Command{
		Name:   "update-ldcache",
		Usage:  "container hook: rebuild the container's linker cache",
		Hidden: true,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "folder", Usage: "directory to include"},
			&cli.StringFlag{Name: "ldconfig-path", Usage: "the host's ldconfig"},
		},
		Action: func(c *cli.Context) error {
			root, err := containerRoot()
			if err != nil {
				return err
			}
			dir, err := inRoot(root, "/etc")
			if err != nil {
				return nil // an image without /etc has no cache to keep
			}
			_ = unix.Close(dir)
			ldconfig := c.String("ldconfig-path")
			if ldconfig == "" {
				ldconfig = "/sbin/ldconfig"
			}
			args := append([]string{"-r", root, "-C", "/etc/ld.so.cache"}, c.StringSlice("folder")...)
			if out, err := exec.CommandContext(c.Context, ldconfig, args...).CombinedOutput(); err != nil { //nolint:gosec // the node's own spec
				return fmt.Errorf("rebuild linker cache: %w: %s", err, strings.TrimSpace(string(out)))
			}
			return nil
		},
	}
}
