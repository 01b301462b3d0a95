// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Close takes the node down: containers, then the processes in the reverse order
// of their start, then whatever a crash may have left: processes that name the
// node's directory, mounts below it, its cgroups, its files. It goes on after an
// error and returns all of them.
func (n *Node) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var errs []error
	if n.process("dockerd").Alive() {
		if r := n.Docker(ctx, "ps", "-aq"); r.Err == nil && strings.TrimSpace(r.Stdout) != "" {
			n.Docker(ctx, append([]string{"rm", "-f", "-v"}, strings.Fields(r.Stdout)...)...)
		}
	}
	for _, c := range n.containerds {
		if err := c.Close(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	n.closeBundles(ctx)
	sockets := n.sockets()
	for i := len(n.Processes) - 1; i >= 0; i-- {
		if err := n.Processes[i].Stop(10 * time.Second); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, n.killLeft())
	n.deleteStates(ctx)
	errs = append(errs, n.unmountLeft(), n.removeCgroups())
	for _, s := range sockets {
		if err := os.Remove(s); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove a shim's socket: %w", err))
		}
	}
	if err := removeTree(n.Dir); err != nil {
		errs = append(errs, fmt.Errorf("remove %s: %w", n.Dir, err))
	}
	return errors.Join(errs...)
}

// killLeft ends processes that carry the node's own directory in their command
// line: shims of a containerd that died first.
func (n *Node) killLeft() error {
	var errs []error
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("look for processes: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil || !bytes.Contains(cmdline, []byte(n.Dir+"/")) || !n.ours(e.Name()) {
			continue
		}
		p := &Process{Name: "left process", PID: pid, Start: startTime(pid)}
		if err := p.Kill(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// deleteStates has runc forget containers whose shim died before it could: runc's
// states are outside of the node's directory, where every containerd wants them.
func (n *Node) deleteStates(ctx context.Context) {
	files, _ := filepath.Glob("/run/containerd/runc/*/*/state.json")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(data, []byte(n.Dir+"/")) {
			continue
		}
		dir := filepath.Dir(file)
		Run(ctx, nil, "runc", "--root", filepath.Dir(dir), "delete", "--force", filepath.Base(dir))
	}
}

// find returns the first process whose command line satisfies match; nil if none.
func (n *Node) find(name string, match func(argv []string) bool) *Process {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || !match(strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			return &Process{Name: name, PID: pid, Start: startTime(pid)}
		}
	}
	return nil
}

// ours says whether a process runs one of the programs that a node starts: a
// user's tail on one of its logs is not ours to end.
func (n *Node) ours(pid string) bool {
	exe, err := os.Readlink(filepath.Join("/proc", pid, "exe"))
	if err != nil {
		return false
	}
	if strings.HasPrefix(exe, n.Dir+"/") {
		return true
	}
	for _, name := range []string{"containerd", "dockerd", "runc"} {
		if strings.HasPrefix(filepath.Base(exe), name) {
			return true
		}
	}
	return false
}

// unmountLeft removes mounts below the node's directory, the innermost first.
func (n *Node) unmountLeft() error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("look for mounts: %w", err)
	}
	var points []string
	for line := range strings.SplitSeq(string(data), "\n") {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], n.Dir+"/") {
			points = append(points, f[4])
		}
	}
	sort.Sort(sort.Reverse(sort.StringSlice(points)))
	var errs []error
	for _, p := range points {
		if err := unix.Unmount(p, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", p, err))
		}
	}
	return errors.Join(errs...)
}

// Mounts counts the mounts below the node's directory whose path has part in it.
func (n *Node) Mounts(part string) int {
	data, _ := os.ReadFile("/proc/self/mountinfo")
	count := 0
	for line := range strings.SplitSeq(string(data), "\n") {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], n.Dir+"/") && strings.Contains(f[4], part) {
			count++
		}
	}
	return count
}

// removeCgroups removes the node's cgroup in every hierarchy. A cgroup can be busy
// for a moment after its last process.
func (n *Node) removeCgroups() error {
	var errs []error
	roots, _ := filepath.Glob("/sys/fs/cgroup/*")
	for _, root := range append(roots, "/sys/fs/cgroup") {
		dir := filepath.Join(root, n.cgroupParent())
		if err := removeCgroup(dir); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func removeCgroup(dir string) error {
	var all []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	for i := len(all) - 1; i >= 0; i-- {
		var err error
		killMembers(all[i])
		for range 50 {
			if err = unix.Rmdir(all[i]); err == nil || errors.Is(err, unix.ENOENT) {
				err = nil
				break
			}
			time.Sleep(20 * time.Millisecond) // the kernel has no event for "not busy any more"
		}
		if err != nil {
			return fmt.Errorf("remove cgroup %s: %w", all[i], err)
		}
	}
	return nil
}

// killMembers ends the processes of one of the node's own cgroups: containers
// whose shim was killed before them.
func killMembers(dir string) {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return
	}
	for _, f := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
			p := &Process{Name: "container process", PID: pid, Start: startTime(pid)}
			_ = p.Kill()
		}
	}
}

// removeTree removes dir, but never through a mount that is still there.
func removeTree(dir string) error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	if strings.Contains(string(data), " "+dir+"/") {
		return errors.New("there are still mounts below it")
	}
	return os.RemoveAll(dir)
}
