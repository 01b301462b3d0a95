// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/internal/config"
)

// maxFile bounds what is read of an engine's configuration, bytes.
const maxFile = 8 << 20

// file is a configuration file as it was read.
type file struct {
	// path is what it is called, real what is written: the same with links resolved.
	path, real string
	exists     bool
	data       []byte
	mode       fs.FileMode
	uid, gid   int
	// noDir is set if the directory is not there either.
	noDir bool
}

// readFile reads the file at path, or finds that there is none. Only root must be
// able to change it or what lies above it: it decides what root runs.
func readFile(path string) (*file, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	f := &file{path: path, mode: 0o644}
	if f.real, err = filepath.EvalSymlinks(path); errors.Is(err, fs.ErrNotExist) {
		return absent(f)
	} else if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if err := config.CheckRootOwned(f.real); err != nil {
		return nil, refuse("%s decides what root runs: %w", path, err)
	}
	in, err := os.OpenFile(f.real, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, refuse("%s is not a regular file", path)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, fmt.Errorf("read %s: owner unknown", path)
	}
	f.exists, f.mode, f.uid, f.gid = true, info.Mode().Perm(), int(stat.Uid), int(stat.Gid)
	f.data, err = io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(f.data) > maxFile {
		return nil, refuse("%s is larger than %d bytes", path, maxFile)
	}
	return f, nil
}

// absent completes a file that is not there. A link to nothing is not ours to fill.
func absent(f *file) (*file, error) {
	if _, err := os.Lstat(f.path); err == nil {
		return nil, refuse("%s is a link to a file that is not there", f.path)
	}
	dir := filepath.Dir(f.path)
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		f.noDir = true
		if real, err = filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
			f.real = filepath.Join(real, filepath.Base(dir), filepath.Base(f.path))
		}
	} else {
		f.real = filepath.Join(real, filepath.Base(f.path))
	}
	if err != nil {
		return nil, refuse("no place for %s: %w", f.path, err)
	}
	if err := config.CheckRootOwned(real); err != nil {
		return nil, refuse("%s decides what root runs: %w", f.path, err)
	}
	return f, nil
}

// content is what the file has; nil if it is not there.
func (f *file) content() []byte {
	if !f.exists {
		return nil
	}
	if f.data == nil {
		return []byte{}
	}
	return f.data
}

// put gives the file its new content, or removes it for nil. Whoever reads it sees
// the old or the new content, whole; owner and mode stay.
func (f *file) put(data []byte) error {
	if data == nil {
		if err := os.Remove(f.real); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", f.path, err)
		}
		return syncDir(filepath.Dir(f.real))
	}
	return writeWhole(f.real, data, f.mode, f.uid, f.gid)
}

// writeWhole replaces or makes a file by a rename within its directory.
func writeWhole(path string, data []byte, mode fs.FileMode, uid, gid int) (err error) {
	dir := filepath.Dir(path)
	// The name ends in no suffix that an engine would read from a directory.
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".gpushare-new-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	defer tmp.Close()
	if _, err = tmp.Write(data); err == nil {
		if err = tmp.Chown(uid, gid); err == nil {
			if err = tmp.Chmod(mode); err == nil {
				err = tmp.Sync()
			}
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	return nil
}

// lock keeps a second install or uninstall of the same file away until unlock. The
// lock is on the directory and leaves nothing behind.
func (f *file) lock() (unlock func(), err error) {
	dir := filepath.Dir(f.real)
	if f.noDir {
		dir = filepath.Dir(dir)
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = unix.Close(fd)
		return nil, refuse("%s is being changed by another gpushare install or uninstall", f.path)
	}
	return func() { _ = unix.Close(fd) }, nil
}

// digest names a content; a file that is not there has none.
func digest(data []byte) string {
	if data == nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
