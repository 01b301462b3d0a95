// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

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
	if st.Nlink == 3 && len(p.links) == 0 {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid)); err != nil || stateOf(b) == 'Z' {
			return 0
		}
	}
	return int(st.Nlink) - 2 //nolint:gosec // a small number
}

func (procWatcher) children(p *process) (pids []uint32) {
	news := false
	for _, t := range p.seen {
		news = news || t.news
		t.news = false
	}
	if !news {
		return nil
	}
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.pid))
	for _, t := range tasks {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", p.pid, t.Name()))
		for _, f := range bytes.Fields(b) {
			pid, err := strconv.ParseUint(string(f), 10, 32)
			if err != nil {
				continue
			}
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err == nil && stateOf(stat) != 'Z' {
				pids = append(pids, uint32(pid))
			}
		}
	}
	return pids
}

func (procWatcher) asleep(p *process) (ok bool, why string, sum uint64) {
	if p.tasks < 0 {
		return false, "cannot be seen from here", 0
	}
	// Every thread known from before is alive or counted below as gone, so if
	// there are as many as then, there is no other.
	n := procWatcher{}.threads(p)
	for again := 0; again < 2; again++ {
		if len(p.seen) != n || again > 0 {
			p.forgetThreads()
			tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.pid))
			if err != nil {
				return true, "", 0 // gone; the end of its connection is looked for elsewhere
			}
			for _, t := range tasks {
				p.seen = append(p.seen, newThread(p.pid, t.Name()))
			}
		}
		gone, zombie := false, false
		for pass := 0; pass < 2; pass++ {
			for i, t := range p.seen {
				// Where the first thread has ended, the others may be about to be:
				// what they say they wait for means nothing then.
				if !zombie && slices.Contains(p.waiting, t.inner) {
					continue
				}
				why, ran, dead := t.look()
				if i >= maxSeen {
					t.close()
				}
				if why != "" {
					return false, why, 0
				}
				gone, zombie = gone || dead, zombie || t.zombie
				sum = sum*31 + ran
			}
			if !zombie {
				break
			}
		}
		if !gone {
			break
		}
		sum = 0
	}
	return true, "", sum
}

// bury frees the places in p's tables of threads that are none of its, or no more.
func (procWatcher) bury(p *process) {
	type place struct {
		w          *wire.Waiter
		state, tid uint32
	}
	var odd []place
	for _, l := range p.links {
		for i := range l.high() {
			w := &l.waits.Waiter[i]
			state, tid := atomic.LoadUint32(&w.State), atomic.LoadUint32(&w.TID)
			if state != wire.WaiterFree && state != wire.WaiterClaimed &&
				!slices.ContainsFunc(p.seen, func(t *thread) bool { return t.inner == tid }) {
				odd = append(odd, place{w, state, tid})
			}
		}
	}
	if len(odd) == 0 {
		return
	}
	// It may have come since p was looked at; but not since its place was.
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.pid))
	alive := map[uint32]bool{}
	for _, t := range tasks {
		alive[newThread(p.pid, t.Name()).inner] = true
	}
	for _, o := range odd {
		if len(tasks) > 0 && !alive[o.tid] {
			atomic.CompareAndSwapUint32(&o.w.State, o.state, wire.WaiterFree)
		}
	}
}

// maxSeen bounds the descriptors that are kept of one process.
const maxSeen = 128

// thread is what is known of a thread that was looked at.
type thread struct {
	path   string
	inner  uint32 // its number as its process has it
	fds    [3]int // of its files stat, syscall and schedstat; -1: not open
	last   []byte // what the second said when the thread slept with no time set
	buffer [512]byte
	zombie bool // it has ended, and others of its process have not
	news   bool // it has done something since children were looked for
}

func newThread(pid uint32, name string) *thread {
	t := &thread{path: fmt.Sprintf("/proc/%d/task/%s", pid, name), fds: [3]int{-1, -1, -1}, news: true}
	n, _ := strconv.ParseUint(name, 10, 32)
	// Another number where the process lies in a namespace of its own.
	b, _ := os.ReadFile(t.path + "/status")
	if _, rest, ok := strings.Cut(string(b), "\nNSpid:"); ok {
		line, _, _ := strings.Cut(rest, "\n")
		if f := strings.Fields(line); len(f) > 0 {
			n, _ = strconv.ParseUint(f[len(f)-1], 10, 32)
		}
	}
	t.inner = uint32(n)
	return t
}

func (p *process) forgetThreads() {
	for _, t := range p.seen {
		t.close()
	}
	p.seen = nil
}

func (t *thread) close() {
	for i, fd := range t.fds {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		t.fds[i] = -1
	}
}

// look returns "" if the thread sleeps with no time set or is dead, else what it
// does; ran is how often it has run.
func (t *thread) look() (why string, ran uint64, dead bool) {
	for i, name := range []string{"/stat", "/syscall", "/schedstat"} {
		if t.fds[i] >= 0 {
			continue
		}
		var err error
		if t.fds[i], err = unix.Open(t.path+name, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
				return "", 0, true
			}
			return "sleeps, and why cannot be seen from here", 0, false
		}
	}
	// Its state is asked first and each time: a thread that is being woken still
	// has the call in which it slept.
	b, ok := t.read(0)
	if !ok {
		return "", 0, true
	}
	switch state := stateOf(b); state {
	case 'X':
		return "", 0, true
	case 'Z':
		t.zombie, t.news = true, true
		return "", 0, false
	case 'T', 't':
		return "is stopped", 0, false
	case 'S':
	default:
		return "runs", 0, false
	}
	if b, ok = t.read(1); !ok {
		return "sleeps, and why cannot be seen from here", 0, false
	}
	if !bytes.Equal(b, t.last) {
		t.last, t.news = t.last[:0], true
		if why := inCall(string(b)); why != "" {
			return why, 0, false
		}
		t.last = append(t.last, b...)
	}
	if b, ok = t.read(2); ok {
		if f := bytes.Fields(b); len(f) == 3 {
			ran, _ = strconv.ParseUint(string(f[2]), 10, 64)
		}
	}
	return "", ran, false
}

func (t *thread) read(i int) ([]byte, bool) {
	n, err := unix.Pread(t.fds[i], t.buffer[:], 0)
	return t.buffer[:max(n, 0)], err == nil
}

// inCall reads what /proc says of the system call in which a thread sleeps.
func inCall(call string) string {
	f := strings.Fields(call)
	if len(f) < 7 {
		return "runs"
	}
	nr, err := strconv.Atoi(f[0])
	if err != nil {
		return "runs"
	}
	var args [6]uint64
	for i := range args {
		args[i], _ = strconv.ParseUint(strings.TrimPrefix(f[i+1], "0x"), 16, 64)
	}
	return untimed(nr, args)
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
	case unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP:
		known, limited = true, true
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
