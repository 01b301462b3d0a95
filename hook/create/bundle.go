// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package create

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxConfig bounds a config.json, in bytes.
const maxConfig = 16 << 20

const configName = "config.json"

// bundle is an OCI bundle, held by a descriptor so that config.json is read
// from and written to the same directory.
type bundle struct {
	path string
	dir  *os.File
	info unix.Stat_t // of the config.json that was read
}

func openBundle(path string) (*bundle, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open bundle: %w", err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open bundle: %w", &fs.PathError{Op: "open", Path: path, Err: err})
	}
	return &bundle{path: path, dir: os.NewFile(uintptr(fd), path)}, nil
}

func (b *bundle) close() { b.dir.Close() }

// read returns the content of config.json. A link is not followed: it could
// lead out of the bundle.
func (b *bundle) read() ([]byte, error) {
	fail := func(err error) ([]byte, error) {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(b.path, configName), err)
	}
	fd, err := unix.Openat(int(b.dir.Fd()), configName, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) {
		return fail(errors.New("it is a symbolic link, which is not followed"))
	}
	if err != nil {
		return fail(err)
	}
	f := os.NewFile(uintptr(fd), configName)
	defer f.Close()
	if err := unix.Fstat(fd, &b.info); err != nil {
		return fail(err)
	}
	if b.info.Mode&unix.S_IFMT != unix.S_IFREG {
		return fail(errors.New("it is no regular file"))
	}
	if b.info.Size > maxConfig {
		return fail(fmt.Errorf("it is larger than %d bytes", maxConfig))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return fail(err)
	}
	if len(data) > maxConfig {
		return fail(fmt.Errorf("it is larger than %d bytes", maxConfig))
	}
	return data, nil
}

// replace puts data in the place of the config.json that was read, with its
// mode and owner. A reader sees the old one or the new one, whole.
func (b *bundle) replace(data []byte) error {
	fail := func(err error) error {
		return fmt.Errorf("write %s: %w", filepath.Join(b.path, configName), err)
	}
	dir := int(b.dir.Fd())
	temporary := ".config.json.gpushare-" + strconv.Itoa(os.Getpid())
	fd, err := unix.Openat(dir, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fail(err)
	}
	f := os.NewFile(uintptr(fd), temporary)
	_, err = f.Write(data)
	if err == nil {
		err = unix.Fchown(fd, int(b.info.Uid), int(b.info.Gid))
	}
	if err == nil {
		err = unix.Fchmod(fd, b.info.Mode&0o7777)
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = unix.Renameat(dir, temporary, dir, configName)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, temporary, 0)
		return fail(err)
	}
	return nil
}
