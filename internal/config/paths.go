// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// libraries are the two files of a library directory.
var libraries = []string{"libcuda.so.1", "libnvidia-ml.so.1"}

// CheckFile says all that is wrong with the file at path: what Check finds in it,
// and what CheckPaths finds on this machine. The error is for a file that cannot
// be read.
func CheckFile(path string) (*Config, []Problem, error) {
	data, err := read(path)
	if err != nil {
		return nil, nil, err
	}
	c, problems := Check(path, data)
	if err := CheckRootOwned(path); err != nil {
		problems = append([]Problem{{0, err.Error()}}, problems...)
	}
	if len(problems) > 0 {
		return c, problems, nil
	}
	at := lines(data)
	for _, p := range c.CheckPaths() {
		key, _, _ := strings.Cut(p.Text, " ")
		p.Line = at[key]
		problems = append(problems, p)
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.Line - b.Line })
	return c, problems, nil
}

// CheckPaths looks at the files that a valid configuration names: they must be
// there, and what root runs or believes must be root's. Keys at their defaults are
// left out. Each text begins with its key.
func (c *Config) CheckPaths() []Problem {
	var problems []Problem
	add := func(key string, err error) {
		if err != nil {
			problems = append(problems, Problem{0, key + " " + err.Error()})
		}
	}
	for _, d := range []struct{ key, path, usual string }{
		{"run_dir", c.RunDir, DefaultRunDir}, {"state_dir", c.StateDir, DefaultStateDir},
	} {
		if d.path != d.usual {
			add(d.key, checkDirectory(d.path))
		}
	}
	if c.LibraryDir != "" {
		dir, err := c.LibraryDirectory()
		add("library_dir", err)
		for _, l := range libraries {
			if err == nil {
				add("library_dir", checkFile(filepath.Join(dir, l)))
			}
		}
	}
	for _, f := range []struct{ key, path string }{
		{"driver_cdi_spec", c.DriverCDISpec}, {"nvml_library", c.NVMLLibrary}, {"cuda_library", c.CUDALibrary},
	} {
		if strings.Contains(f.path, "/") {
			add(f.key, checkFile(f.path))
		}
	}
	add("runtimes", c.checkRuntimes())
	for _, m := range c.ExtraDriverMounts {
		if host, _, err := SplitMount(m); err == nil {
			_, err = os.Stat(host)
			add("extra_driver_mounts", plain(host, err))
		}
	}
	return problems
}

// checkFile accepts a regular file of root.
func checkFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return plain(path, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a file", path)
	}
	return CheckRootOwned(path)
}

// checkDirectory accepts a directory of root, or a place where root would make one.
func checkDirectory(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s: not a directory", path)
	}
	for errors.Is(err, fs.ErrNotExist) && path != "/" {
		path = filepath.Dir(path)
		_, err = os.Stat(path)
	}
	if err != nil {
		return plain(path, err)
	}
	return CheckRootOwned(path)
}

// checkRuntimes accepts runtimes of root, and a list that is not made of absent
// files alone. Plain names are the search path's affair.
func (c *Config) checkRuntimes() error {
	var absent []string
	for _, r := range c.Runtimes {
		if !filepath.IsAbs(r) {
			continue
		}
		switch _, err := os.Stat(r); {
		case errors.Is(err, fs.ErrNotExist):
			absent = append(absent, r)
		default:
			if err := checkFile(r); err != nil {
				return err
			}
		}
	}
	if len(absent) > 0 && len(absent) == len(c.Runtimes) {
		return fmt.Errorf("%s: not there", strings.Join(absent, ", "))
	}
	return nil
}

// plain is err without the name of the system call.
func plain(path string, err error) error {
	var p *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: not there", path)
	case errors.As(err, &p):
		return fmt.Errorf("%s: %w", path, p.Err)
	}
	return err
}
