// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gpushare/gpushare/internal/mountinfo"
)

// Group is a control group: its hierarchy ("" is version 2, else a version 1
// controller) and its path as /proc/PID/cgroup writes it.
type Group struct {
	Hierarchy string `json:"hierarchy"`
	Path      string `json:"path"`
}

// IsZero reports whether g names no group.
func (g Group) IsZero() bool { return g.Path == "" }

// Usable reports whether g can tell a container's processes from others: the
// root group holds everybody's.
func (g Group) Usable() bool { return g.Path != "" && g.Path != "/" }

// GroupOf returns the group of a process that runtimes make for each container:
// of the devices controller, else of pids, else of version 2.
func GroupOf(pid int) (Group, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrGone
		}
		return Group{}, fmt.Errorf("read control group of process %d: %w", pid, err)
	}
	g := parseGroup(string(raw))
	if g.IsZero() {
		return Group{}, fmt.Errorf("read control group of process %d: none that is known", pid)
	}
	return g, nil
}

// parseGroup picks the group out of the text of /proc/PID/cgroup.
func parseGroup(text string) Group {
	found := make(map[string]string)
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		for c := range strings.SplitSeq(parts[1], ",") {
			found[c] = parts[2]
		}
	}
	for _, h := range []string{"devices", "pids", ""} {
		if p := found[h]; p != "" {
			return Group{Hierarchy: h, Path: p}
		}
	}
	return Group{}
}

// Tree finds groups in the file system.
type Tree struct{ roots map[string]string } // hierarchy → mount point

// OpenTree reads where the hierarchies are mounted.
func OpenTree() (*Tree, error) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("find control groups: %w", err)
	}
	return parseTree(string(raw)), nil
}

func parseTree(table string) *Tree {
	t := &Tree{roots: make(map[string]string)}
	for line := range strings.Lines(table) {
		m, ok := mountinfo.Parse(line)
		if !ok || m.Root != "/" {
			continue
		}
		switch m.Kind {
		case "cgroup2":
			t.roots[""] = m.Point
		case "cgroup":
			for o := range strings.SplitSeq(m.Options, ",") {
				if o == "devices" || o == "pids" {
					t.roots[o] = m.Point
				}
			}
		}
	}
	return t
}

// Processes returns the PIDs in the group and in the groups below it. A group
// that does not exist has none.
func (t *Tree) Processes(g Group) ([]int, error) {
	root, ok := t.roots[g.Hierarchy]
	if !ok {
		return nil, fmt.Errorf("list processes of %s: hierarchy %q is not mounted", g.Path, g.Hierarchy)
	}
	var pids []int
	err := filepath.WalkDir(filepath.Join(root, g.Path), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			return nil
		}
		if err == nil {
			var here []int
			here, err = readPIDs(filepath.Join(path, "cgroup.procs"))
			pids = append(pids, here...)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoDevice) {
			return nil // went away meanwhile
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list processes of %s: %w", g.Path, err)
	}
	return pids, nil
}

func readPIDs(path string) ([]int, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var pids []int
	for f := range strings.FieldsSeq(string(raw)) {
		if pid, err := strconv.Atoi(f); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
