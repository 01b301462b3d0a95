// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxMounts bounds the lines of a mountinfo; the kernel's own limit is 100000.
const maxMounts = 200_000

// cover mounts what is at from over to. Both must be the very files that were
// looked at: descriptors, no paths. The mount is read-only before anything can
// see it, and spreads nowhere.
func cover(from, to *file) error {
	fail := func(call string, err error) error {
		return fmt.Errorf("mount %s over %s in the container: %s: %w", from.path, to.path, call, err)
	}
	tree, err := unix.OpenTree(from.fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return fail("open_tree", err)
	}
	defer unix.Close(tree)
	attributes := unix.MountAttr{
		Attr_set:    unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
		Propagation: unix.MS_PRIVATE,
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attributes); err != nil {
		return fail("mount_setattr", err)
	}
	if err := unix.MoveMount(tree, "", to.fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fail("move_mount", err)
	}
	return nil
}

// hostFile opens a regular file of the host, by a path that only root can change.
func hostFile(name string) (*file, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	f, err := describe(fd)
	if err == nil && !f.regular() {
		err = errors.New("no regular file")
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("look at %s: %w", name, err)
	}
	f.path = name
	return f, nil
}

// sharedMounts are the mounts from which a new one would spread to the host.
func sharedMounts() (map[uint64]bool, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read mountinfo: %w", err)
	}
	defer f.Close()
	shared := map[uint64]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 0; lines.Scan(); n++ {
		if n > maxMounts {
			return nil, errors.New("read mountinfo: too many mounts")
		}
		fields := strings.Fields(lines.Text())
		if len(fields) < 7 {
			continue
		}
		id, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil {
			continue
		}
		for _, option := range fields[6:] {
			if option == "-" {
				break
			}
			if strings.HasPrefix(option, "shared:") {
				shared[id] = true
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read mountinfo: %w", err)
	}
	return shared, nil
}
