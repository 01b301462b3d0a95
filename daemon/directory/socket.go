// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

const (
	socketName = "control.sock"
	socketNew  = "control.new"
)

// bind makes dir's control socket anew. Its name is always there: the new one
// takes the place of the old one at once, ready for use.
func bind(dir string) (*net.UnixConn, error) {
	// Addressed through a descriptor: a socket's path may have 107 bytes only.
	dirfd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make control socket in %s: %w", dir, err)
	}
	defer unix.Close(dirfd)
	_ = unix.Unlinkat(dirfd, socketNew, 0) // of a daemon that died in the middle
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("make control socket in %s: %w", dir, err)
	}
	f := os.NewFile(uintptr(fd), socketName)
	defer f.Close()
	at := fmt.Sprintf("/proc/self/fd/%d/%s", dirfd, socketNew)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: at}); err != nil {
		return nil, fmt.Errorf("make control socket in %s: %w", dir, err)
	}
	if err := unix.Fchmodat(dirfd, socketNew, 0o666, 0); err != nil {
		return nil, fmt.Errorf("make control socket in %s: %w", dir, err)
	}
	if err := unix.Renameat(dirfd, socketNew, dirfd, socketName); err != nil {
		return nil, fmt.Errorf("make control socket in %s: %w", dir, err)
	}
	conn, err := net.FilePacketConn(f)
	if err != nil {
		return nil, fmt.Errorf("make control socket in %s: %w", dir, err)
	}
	return conn.(*net.UnixConn), nil
}
