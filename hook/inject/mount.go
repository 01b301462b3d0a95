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

// tree is a mount that is attached nowhere yet.
type tree struct{ fd int }

// clone makes a read-only mount of the file at fd, or of the host's file at
// name if fd is AT_FDCWD. It has its attributes before anything can see it.
func clone(fd int, name string) (*tree, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	t, err := unix.OpenTree(fd, name, flags)
	if err != nil {
		return nil, fmt.Errorf("open_tree: %w", err)
	}
	attributes := unix.MountAttr{
		Attr_set:    unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
		Propagation: unix.MS_PRIVATE,
	}
	if err := unix.MountSetattr(t, "", unix.AT_EMPTY_PATH, &attributes); err != nil {
		unix.Close(t)
		return nil, fmt.Errorf("mount_setattr: %w", err)
	}
	return &tree{t}, nil
}

// cover mounts the tree over the file, which must be the very one that was
// looked at: a descriptor, no path.
func (t *tree) cover(target *file) error {
	err := unix.MoveMount(t.fd, "", target.fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("move_mount: %w", err)
	}
	return nil
}

func (t *tree) close() { unix.Close(t.fd) }

// hostFile is a regular file of the host, by a path that only root can change.
func hostFile(name string) (*tree, identity, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, identity{}, fmt.Errorf("open %s: %w", name, err)
	}
	defer unix.Close(fd)
	f, err := describe(fd)
	if err == nil && !f.regular() {
		err = errors.New("no regular file")
	}
	if err != nil {
		return nil, identity{}, fmt.Errorf("look at %s: %w", name, err)
	}
	t, err := clone(fd, "")
	if err != nil {
		return nil, identity{}, fmt.Errorf("clone %s: %w", name, err)
	}
	return t, f.id, nil
}

// again clones a clone: a tree can be attached only once.
func (t *tree) again() (*tree, error) { return clone(t.fd, "") }

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
