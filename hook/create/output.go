// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package create

import (
	"os"

	"golang.org/x/sys/unix"
)

// hookErrors is the file by which the low-level runtime can open its standard error
// again, which the wrapper hands down to it; empty if it may not be able to: a
// socket cannot be opened, and then the container would not start.
func hookErrors(stderr *os.File) string {
	var st unix.Stat_t
	if err := unix.Fstat(int(stderr.Fd()), &st); err != nil || st.Mode&unix.S_IFMT == unix.S_IFSOCK {
		return ""
	}
	return "/dev/stderr"
}
