// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import "golang.org/x/sys/unix"

// untimedHere knows the calls that this architecture has and others have not.
func untimedHere(nr int, a [6]uint64) (known, limited bool) {
	switch nr {
	case unix.SYS_POLL:
		return true, int32(a[2]) >= 0 //nolint:gosec // a C int
	case unix.SYS_SELECT:
		return true, a[4] != 0
	case unix.SYS_EPOLL_WAIT:
		return true, int32(a[3]) >= 0 //nolint:gosec // a C int
	case unix.SYS_PAUSE, unix.SYS_OPEN:
		return true, false
	}
	return false, false
}
