// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wrapper

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// execRuntime becomes the low-level runtime at path: same process, same
// environment, same arguments. It returns only if that fails. The runtime is
// called by its plain name, as it would be without us, since it prints that.
func execRuntime(path string, args []string) error {
	argv := append([]string{filepath.Base(path)}, args...)
	if err := syscall.Exec(path, argv, os.Environ()); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

// closeOnExec keeps descriptors from the low-level runtime that its caller did
// not mean for it: all from 3 on but those that systemd's LISTEN_FDS and
// --preserve-fds count. A leaked one can be a way out of the container.
func closeOnExec(preserve int) error {
	first := 3 + preserve + listenFDs(os.Getpid())
	if first < 3 || first > math.MaxInt32 {
		return nil
	}
	err := unix.CloseRange(uint(first), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	// Before Linux 5.11.
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("close inherited descriptors: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// listenFDs counts the sockets that systemd hands to the process pid.
func listenFDs(pid int) int {
	if os.Getenv("LISTEN_PID") != strconv.Itoa(pid) {
		return 0
	}
	n, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if err != nil || n < 0 || n > 1<<16 {
		return 0
	}
	return n
}
