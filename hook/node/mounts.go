// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"path"
	"strconv"
	"strings"
)

// maxMounts bounds the text of the mount table, in bytes.
const maxMounts = 64 << 20

// hostMount is a line of the mount table: root, within the file system of that
// device, is mounted at point.
type hostMount struct{ device, root, point, kind string }

// hostMounts reads the host's mount table. An unreadable one is empty; then only
// links are followed.
func hostMounts() []hostMount {
	table, err := readBounded("/proc/self/mountinfo", maxMounts)
	if err != nil {
		return nil
	}
	return parseMounts(string(table))
}

func parseMounts(table string) []hostMount {
	var all []hostMount
	for line := range strings.Lines(table) {
		before, after, ok := strings.Cut(line, " - ")
		f := strings.Fields(before)
		kind := strings.Fields(after)
		if ok && len(f) >= 5 && len(kind) > 0 {
			all = append(all, hostMount{f[2], unescape(f[3]), unescape(f[4]), kind[0]})
		}
	}
	return all
}

// unescape undoes the kernel's \040 for a space, and the like.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
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
func mountOf(all []hostMount, p string) *hostMount {
	var found *hostMount
	for i := range all {
		if _, ok := below(p, all[i].point); ok && (found == nil || len(all[i].point) >= len(found.point)) {
			found = &all[i]
		}
	}
	return found
}

// origin returns the path of p in the widest and oldest mount of its file system:
// what is mounted in two places, such as a volume of an engine, has one origin.
func origin(all []hostMount, p string) string {
	m := mountOf(all, p)
	if m == nil {
		return p
	}
	rest, _ := below(p, m.point)
	inside := path.Join(m.root, rest)
	var widest *hostMount
	for i := range all {
		if all[i].device != m.device || (widest != nil && len(all[i].root) >= len(widest.root)) {
			continue
		}
		if _, ok := below(inside, all[i].root); ok {
			widest = &all[i]
		}
	}
	rest, _ = below(inside, widest.root)
	return path.Join(widest.point, rest)
}

// opensCgroups says whether a bind of p shows a control group hierarchy that can be
// written to. Read-only is the topmost mount alone, unless wholly is set.
func opensCgroups(all []hostMount, p string, recursive, readOnly, wholly bool) bool {
	if wholly {
		return false
	}
	if m := mountOf(all, p); m != nil && isCgroup(m) && !readOnly {
		return true
	}
	for i := range all {
		if rest, ok := below(all[i].point, p); recursive && ok && rest != "" && isCgroup(&all[i]) {
			return true
		}
	}
	return false
}

func isCgroup(m *hostMount) bool { return m.kind == "cgroup" || m.kind == "cgroup2" }
