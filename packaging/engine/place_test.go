// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// place is where a test's engine configuration lies, with programs to name in it.
type place struct {
	t        *testing.T
	dir, bin string
	program  string // containerd
	said     strings.Builder
	out      bytes.Buffer
}

func newPlace(t *testing.T) *place {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: only files of root are edited")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: filepath.Join(dir, "etc"), bin: filepath.Join(dir, "bin")}
	for _, d := range []string{p.dir, p.bin} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range []string{"gpushare-runtime", "containerd-shim-gpushare-v1"} {
		p.write(filepath.Join(p.bin, b), []byte("#!/bin/sh\n"), 0o755)
	}
	return p
}

func (p *place) write(path string, data []byte, mode os.FileMode) {
	p.t.Helper()
	if err := os.WriteFile(path, data, mode); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) read(path string) []byte {
	p.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

// options only write files: no engine runs.
func (p *place) options(engine, config string) Options {
	p.said.Reset()
	p.out.Reset()
	return Options{
		Engine: engine, Config: config, Socket: filepath.Join(p.dir, "absent.sock"),
		BinDir: p.bin, LibDir: p.bin, NoRestart: true, NoProbe: true, Program: p.program,
		Out: &p.out, Say: func(format string, args ...any) { fmt.Fprintf(&p.said, format+"\n", args...) },
	}
}

func (p *place) install(engine, config string) error {
	return Install(context.Background(), p.options(engine, config))
}

func (p *place) uninstall(engine, config string) error {
	return Uninstall(context.Background(), p.options(engine, config))
}

// snapshot is all there is below the configuration's directory: content, mode,
// inode and time of each file.
func (p *place) snapshot() string {
	p.t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(p.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s %v", path, info.Mode())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, " %v %s", info.ModTime(), digest(data))
		}
		out.WriteByte('\n')
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return out.String()
}

// names lists the files below the configuration's directory.
func (p *place) names() []string {
	var all []string
	_ = filepath.WalkDir(p.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, strings.TrimPrefix(path, p.dir+"/"))
		}
		return nil
	})
	return all
}

// kept fails the test unless after is before with one piece put in.
func kept(t *testing.T, before, after []byte) {
	t.Helper()
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	if !bytes.HasSuffix(after, before[head:]) {
		t.Errorf("not all bytes of the original are there:\n%s\nafter:\n%s", before, after)
	}
}
