// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/internal/mountinfo"
)

// errNoDevice is what reading a file of a removed control group gives.
var errNoDevice error = unix.ENODEV

// Device is the number of the file system that holds path, as mountinfo writes
// it.
func Device(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return "", fmt.Errorf("look up the file system of %s: %w", path, err)
	}
	return fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)), nil
}

// Mounted returns the processes that have the file system of that device number
// mounted at a path that ends in suffix: the processes of the container whose
// directory it is. A namespace that merely shows the host's mounts has it under
// the host's path. It reads every mount namespace's table, so it is for the rare
// moment in which nothing else tells.
func Mounted(device, suffix string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	seen := make(map[string]bool) // mount namespace → has it
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		ns, err := os.Readlink("/proc/" + e.Name() + "/ns/mnt")
		if err != nil {
			continue // ended, or a kernel thread
		}
		has, known := seen[ns]
		if !known {
			raw, err := os.ReadFile("/proc/" + e.Name() + "/mountinfo")
			if err != nil {
				continue
			}
			has = hasMount(string(raw), device, suffix)
			seen[ns] = has
		}
		if has {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func hasMount(table, device, suffix string) bool {
	for line := range strings.Lines(table) {
		if !strings.Contains(line, " "+device+" ") {
			continue
		}
		if m, ok := mountinfo.Parse(line); ok && m.Device == device && strings.HasSuffix(m.Point, suffix) {
			return true
		}
	}
	return false
}

// MountDevices returns the device number of every mount point of this process.
// Where several are mounted over each other the last one counts.
func MountDevices() (map[string]string, error) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	out := make(map[string]string)
	for line := range strings.Lines(string(raw)) {
		if m, ok := mountinfo.Parse(line); ok {
			out[m.Point] = m.Device
		}
	}
	return out, nil
}
