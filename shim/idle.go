// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/log"
	"golang.org/x/sys/unix"
)

// idleAfter is how long after the last container came or went a shim counts as
// idle. containerd's code gives free memory back every 30 s.
const idleAfter = 10 * time.Second

// idler gives back what a shim needs only while containers come and go.
type idler struct {
	mu    sync.Mutex
	timer *time.Timer
}

// busy puts the moment off. It costs a lock.
func (i *idler) busy() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.timer == nil {
		i.timer = time.AfterFunc(idleAfter, func() {
			if err := unmapProgram(); err != nil {
				log.L.WithError(err).Debug("pages of the program not given back, carried on")
			}
		})
		return
	}
	i.timer.Reset(idleAfter)
}

// unmapProgram takes the pages of our own program file out of our memory. Making a
// container goes through most of the program, waiting for its end through little, and
// there is a shim for every pod. The pages stay in the page cache, which all shims
// share, and come back by themselves when they are needed. Only mappings of which
// nothing is our own are touched.
func unmapProgram() error {
	maps, err := programMaps()
	if err != nil {
		return fmt.Errorf("give the program's pages back: %w", err)
	}
	for _, m := range maps {
		if m.writable || m.anonymous != 0 {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("give the program's pages back: %w", errno)
		}
	}
	return nil
}

// mapping is one of /proc/self/smaps.
type mapping struct {
	start, end uintptr
	writable   bool
	file       string // device and inode
	anonymous  uint64 // KiB of it that are no longer the file's
}

// programMaps returns the mappings of the file that this code is in.
func programMaps() ([]mapping, error) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []mapping
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "Anonymous:"); ok && len(all) > 0 {
			if all[len(all)-1].anonymous, err = strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64); err != nil {
				return nil, err
			}
			continue
		}
		if m, ok := parseMapping(lines.Text()); ok {
			all = append(all, m)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	here := reflect.ValueOf(programMaps).Pointer()
	file := ""
	for _, m := range all {
		if m.start <= here && here < m.end {
			file = m.file
		}
	}
	var ours []mapping
	for _, m := range all {
		if m.file == file && file != "" {
			ours = append(ours, m)
		}
	}
	return ours, nil
}

// parseMapping reads the first line of a mapping of a file.
func parseMapping(line string) (m mapping, ok bool) {
	f := strings.Fields(line)
	if len(f) < 6 || strings.HasSuffix(f[0], ":") || f[4] == "0" {
		return m, false
	}
	from, to, _ := strings.Cut(f[0], "-")
	start, err := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	if err != nil || err2 != nil {
		return m, false
	}
	return mapping{start: uintptr(start), end: uintptr(end), writable: strings.Contains(f[1], "w"), file: f[3] + " " + f[4]}, true
}
