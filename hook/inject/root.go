// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds of what is taken from an image.
const (
	maxFiles   = 512     // candidates
	maxEntries = 1 << 16 // names in one directory
	maxListed  = 1 << 18 // names in all that are listed, and 16 for each
	retries    = 64      // of a resolution that a rename disturbed
)

// root is the container's root file system. Its procfs is the host's.
type root struct {
	fd   int
	proc int // /proc/self/fd
	// listed is how much of maxListed is used up.
	listed int
}

func openRoot(dir string) (*root, error) {
	proc, err := unix.Open("/proc/self/fd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the host's /proc: %w", err)
	}
	var fs unix.Statfs_t
	err = unix.Fstatfs(proc, &fs)
	if err == nil && fs.Type != unix.PROC_SUPER_MAGIC {
		err = errors.New("no procfs is there")
	}
	if err != nil {
		unix.Close(proc)
		return nil, fmt.Errorf("open the host's /proc: %w", err)
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(proc)
		return nil, fmt.Errorf("open root file system %s: %w", dir, err)
	}
	return &root{fd: fd, proc: proc}, nil
}

func (r *root) close() {
	unix.Close(r.fd)
	unix.Close(r.proc)
}

// resolve opens a path of the image. Links, absolute ones too, stay below the
// root; those of procfs, which lead anywhere, are not followed (ELOOP).
func (r *root) resolve(name string, flags uint64) (int, error) {
	how := unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	}
	for i := 0; ; i++ {
		fd, err := unix.Openat2(r.fd, name, &how)
		if (errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)) && i < retries {
			continue // something on the way was renamed meanwhile
		}
		return fd, err
	}
}

// identity tells files apart.
type identity struct{ dev, ino uint64 }

// spot tells apart the places where a file is seen.
type spot struct {
	mount uint64
	id    identity
}

// file is a file of the image, held by a descriptor that reads nothing.
type file struct {
	root  *root
	fd    int
	path  string // as it was asked for
	id    identity
	mount uint64
	size  int64
	mode  uint32
}

func (f *file) regular() bool { return f.mode&unix.S_IFMT == unix.S_IFREG }

func (f *file) close() { unix.Close(f.fd) }

// file resolves a path without opening what is there.
func (r *root) file(name string) (*file, error) {
	fd, err := r.resolve(name, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	f, err := describe(fd)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	f.root, f.path = r, name
	return f, nil
}

func describe(fd int) (*file, error) {
	var st unix.Statx_t
	const want = unix.STATX_BASIC_STATS | unix.STATX_MNT_ID
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_NO_AUTOMOUNT, want, &st); err != nil {
		return nil, err
	}
	if st.Mask&unix.STATX_MNT_ID == 0 {
		return nil, fmt.Errorf("statx names no mount: %w", unix.ENOSYS)
	}
	return &file{
		fd: fd, mount: st.Mnt_id, size: int64(st.Size), mode: uint32(st.Mode),
		id: identity{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino},
	}, nil
}

// open makes a file that is known to be regular readable. The way leads through
// the descriptor, so no path is resolved again.
func (f *file) open() (*os.File, error) {
	if !f.regular() {
		return nil, errors.New("not a regular file")
	}
	fd, err := unix.Openat(f.root.proc, strconv.Itoa(f.fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.path), nil
}

var errTooLarge = errors.New("larger than is ever needed")

// read returns the whole file, which must not have more than limit bytes.
func (f *file) read(limit int64) ([]byte, error) {
	if f.size > limit {
		return nil, errTooLarge
	}
	o, err := f.open()
	if err != nil {
		return nil, err
	}
	defer o.Close()
	// What is written to it meanwhile is of no interest.
	data := make([]byte, f.size)
	n, err := io.ReadFull(o, data)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:n], err
}

// real returns the path that the file was found at, all links followed, as the
// host sees it. It is only a text: to read a version from, never to be opened.
func (f *file) real() string {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(f.root.proc, strconv.Itoa(f.fd), buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

// list returns the names in a directory; none if there is no such directory, or
// if seen, which may be nil, has it already under another path. Only names that
// keep wants are returned, most libraries being of no interest.
func (r *root) list(dir string, seen map[spot]bool, keep func(string) bool) ([]string, error) {
	fd, err := r.resolve(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		if absent(err) {
			return nil, nil
		}
		return nil, err
	}
	defer unix.Close(fd)
	if seen != nil {
		is, err := describe(fd)
		if err != nil {
			return nil, err
		}
		at := spot{is.mount, is.id}
		if seen[at] {
			return nil, nil
		}
		seen[at] = true
	}
	var names []string
	buf := make([]byte, 64<<10)
	if r.listed += 16; r.listed > maxListed {
		return nil, fmt.Errorf("all directories together have more than %d entries", maxListed)
	}
	for entries := 0; ; {
		n, err := unix.ReadDirent(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n == 0 || err != nil {
			r.listed += entries
			return names, err
		}
		// A record: inode 8, offset 8, length 2, type 1, name with a zero byte.
		for rest := buf[:n]; len(rest) > 19; entries++ {
			length := int(binary.NativeEndian.Uint16(rest[16:]))
			if length <= 19 || length > len(rest) {
				return nil, errors.New("it is listed wrongly")
			}
			name, _, _ := bytes.Cut(rest[19:length], []byte{0})
			if keep(string(name)) && string(name) != "." && string(name) != ".." {
				names = append(names, string(name))
			}
			rest = rest[length:]
		}
		if entries > maxEntries {
			return nil, fmt.Errorf("it has more than %d entries", maxEntries)
		}
	}
}

// inside returns the path of a file, links followed, as the container sees it.
func (r *root) inside(f *file) string {
	top := &file{root: r, fd: r.fd}
	if p, ok := strings.CutPrefix(f.real(), top.real()); ok && strings.HasPrefix(p, "/") {
		return p
	}
	return f.path
}

// join puts a name below a directory. The path is not cleaned: with links on the
// way, ".." is not what it looks like.
func join(dir, name string) string { return dir + "/" + name }

// parent is the directory part of a path, as it is.
func parent(name string) string { return name[:strings.LastIndexByte(name, '/')+1] }

// absent says whether an error means that nothing is there, for the container's
// loader as well.
func absent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENAMETOOLONG)
}
