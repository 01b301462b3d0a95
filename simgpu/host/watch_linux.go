// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// procWatcher reads what threads do from /proc.
type procWatcher struct{}

var _ watcher = procWatcher{}

// threads counts without reading: the kernel keeps the number of links.
func (procWatcher) threads(p *process) int {
	var st unix.Stat_t
	if p.tasks < 0 {
		return 1 << 30 // cannot be seen: nothing that it says is enough
	}
	if unix.Fstat(p.tasks, &st) != nil || st.Nlink <= 2 {
		return 0
	}
	return int(st.Nlink) - 2 //nolint:gosec // a small number
}

func (procWatcher) asleep(p *process) (ok bool, why string, sum uint64) {
	if p.tasks < 0 {
		return false, "cannot be seen from here", 0
	}
	dir := fmt.Sprintf("/proc/%d/task", p.pid)
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return true, "", 0 // gone; the end of its connection is looked for elsewhere
	}
	for _, t := range tasks {
		path := dir + "/" + t.Name()
		why, n := lookAt(path)
		if why != "" {
			return false, why, 0
		}
		sum = sum*31 + n
	}
	return true, "", sum
}

// lookAt returns "" if a thread sleeps with no time set, and how often it has
// run, or what else it does.
func lookAt(path string) (why string, ran uint64) {
	stat, err := os.ReadFile(path + "/stat")
	if err != nil {
		return "", 0
	}
	switch state := stateOf(stat); state {
	case 'Z', 'X':
		return "", 0
	case 'T', 't':
		return "is stopped", 0
	case 'S':
	default:
		return "runs", 0
	}
	b, err := os.ReadFile(path + "/syscall")
	if err != nil {
		if os.IsNotExist(err) {
			return "", 0
		}
		return "sleeps, and why cannot be seen from here", 0
	}
	f := strings.Fields(string(b))
	if len(f) < 7 {
		return "runs", 0
	}
	nr, err := strconv.Atoi(f[0])
	if err != nil {
		return "runs", 0
	}
	var args [6]uint64
	for i := range args {
		args[i], _ = strconv.ParseUint(strings.TrimPrefix(f[i+1], "0x"), 16, 64)
	}
	if why = untimed(nr, args); why != "" {
		return why, 0
	}
	b, _ = os.ReadFile(path + "/schedstat")
	if f := bytes.Fields(b); len(f) == 3 {
		ran, _ = strconv.ParseUint(string(f[2]), 10, 64)
	}
	return "", ran
}

func stateOf(stat []byte) byte {
	i := bytes.LastIndexByte(stat, ')')
	if i < 0 || i+2 >= len(stat) {
		return 'X'
	}
	return stat[i+2]
}

// untimed returns "" for a call of the system's that ends only by what another
// thread or the outside does.
func untimed(nr int, a [6]uint64) string {
	const timed = "sleeps on the machine's clock"
	known, limited := false, false
	switch nr {
	case unix.SYS_FUTEX:
		known = true
		op := a[1] & 0x7f
		ours := op == futexWaitBitset && uint32(a[5]) == wire.WaitBits
		limited = a[3] != 0 && !ours
	case unix.SYS_PPOLL:
		known, limited = true, a[2] != 0
	case unix.SYS_PSELECT6:
		known, limited = true, a[4] != 0
	case unix.SYS_EPOLL_PWAIT:
		known, limited = true, int32(a[3]) >= 0 //nolint:gosec // a C int
	case unix.SYS_RT_SIGTIMEDWAIT:
		known, limited = true, a[2] != 0
	case unix.SYS_READ, unix.SYS_READV, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_RECVFROM, unix.SYS_SENDTO,
		unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_CONNECT, unix.SYS_WAIT4, unix.SYS_WAITID,
		unix.SYS_RT_SIGSUSPEND, unix.SYS_FLOCK, unix.SYS_FCNTL, unix.SYS_OPENAT:
		known = true
	default:
		known, limited = untimedHere(nr, a)
	}
	switch {
	case !known:
		return fmt.Sprintf("is in system call %d", nr)
	case limited:
		return timed
	}
	return ""
}
