// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"path"
	"strings"

	"github.com/gpushare/gpushare/internal/mountinfo"
)

// maxMounts bounds the text of the mount table, in bytes.
const maxMounts = 64 << 20

// hostMounts reads the host's mount table. An unreadable one is empty; then only
// links are followed.
func hostMounts() []mountinfo.Mount {
	table, err := readBounded("/proc/self/mountinfo", maxMounts)
	if err != nil {
		return nil
	}
	return parseMounts(string(table))
}

func parseMounts(table string) []mountinfo.Mount {
	var all []mountinfo.Mount
	for line := range strings.Lines(table) {
		if m, ok := mountinfo.Parse(line); ok {
			all = append(all, m)
		}
	}
	return all
}

// below returns p as seen from dir, with a leading slash; false if it is elsewhere.
func below(p, dir string) (string, bool) {
	if dir == "/" {
		return p, true
	}
	rest, ok := strings.CutPrefix(p, dir)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// mountOf returns the mount that p, without links, lies in.
func mountOf(all []mountinfo.Mount, p string) *mountinfo.Mount {
	var found *mountinfo.Mount
	for i := range all {
		if _, ok := below(p, all[i].Point); ok && (found == nil || len(all[i].Point) >= len(found.Point)) {
			found = &all[i]
		}
	}
	return found
}

// origin returns the path of p in the widest and oldest mount of its file system:
// what is mounted in two places, such as a volume of an engine, has one origin.
func origin(all []mountinfo.Mount, p string) string {
	m := mountOf(all, p)
	if m == nil {
		return p
	}
	rest, _ := below(p, m.Point)
	inside := path.Join(m.Root, rest)
	var widest *mountinfo.Mount
	for i := range all {
		if all[i].Device != m.Device || (widest != nil && len(all[i].Root) >= len(widest.Root)) {
			continue
		}
		if _, ok := below(inside, all[i].Root); ok {
			widest = &all[i]
		}
	}
	rest, _ = below(inside, widest.Root)
	return path.Join(widest.Point, rest)
}

// opensCgroups says whether a bind of p shows a control group hierarchy that can be
// written to. Read-only is the topmost mount alone, unless wholly is set.
func opensCgroups(all []mountinfo.Mount, p string, recursive, readOnly, wholly bool) bool {
	if wholly {
		return false
	}
	if m := mountOf(all, p); m != nil && isCgroup(m) && !readOnly {
		return true
	}
	for i := range all {
		if rest, ok := below(all[i].Point, p); recursive && ok && rest != "" && isCgroup(&all[i]) {
			return true
		}
	}
	return false
}

func isCgroup(m *mountinfo.Mount) bool { return m.Kind == "cgroup" || m.Kind == "cgroup2" }
