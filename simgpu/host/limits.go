// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"math"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// memoryLimit is what a control group may take of a GPU's memory.
type memoryLimit struct{ soft, hard uint64 }

// noLimit clears a hard limit: NVML_DEVICE_MEMORY_LIMIT_MAX.
const noLimit = math.MaxUint64

// limitKey names a control group on a GPU: by the group's path below the mount
// point of its hierarchy, as /proc/PID/cgroup shows it.
type limitKey struct {
	gpu  int
	path string
}

// maxLimits bounds how many limits are remembered.
const maxLimits = 1 << 16

// groupPath turns the path of a control group's directory into what
// /proc/PID/cgroup calls it. It reports false for what is no control group. The
// path is a client's, and looked up in the host process's own view of the files.
func groupPath(dir string) (string, bool) {
	if !filepath.IsAbs(dir) || len(dir) > 4000 || strings.ContainsRune(dir, 0) {
		return "", false
	}
	real, err := filepath.EvalSymlinks(filepath.Clean(dir))
	if err != nil {
		return "", false
	}
	var fs unix.Statfs_t
	if unix.Statfs(real, &fs) != nil || (fs.Type != unix.CGROUP_SUPER_MAGIC && fs.Type != unix.CGROUP2_SUPER_MAGIC) {
		return "", false
	}
	root := real
	for {
		up := filepath.Dir(root)
		var parent unix.Statfs_t
		if up == root || unix.Statfs(up, &parent) != nil || parent.Type != fs.Type {
			break
		}
		if _, err := os.Stat(filepath.Join(up, "cgroup.procs")); err != nil {
			break
		}
		root = up
	}
	rel, err := filepath.Rel(root, real)
	if err != nil {
		return "", false
	}
	return filepath.Clean("/" + rel), true
}

// setLimit sets or clears the limits of a control group. The caller holds mu.
func (h *Host) setLimit(i int, dir string, soft, hard uint64) int32 {
	path, ok := groupPath(dir)
	total := h.gpus[i].info.MemoryBytes
	key := limitKey{i, path}
	switch {
	case !ok:
		return nvmlOperatingSystem
	case soft == 0 && hard == noLimit:
		delete(h.limits, key)
		return 0
	case soft > hard, soft > total, hard > total:
		return nvmlInvalidArgument
	case len(h.limits) >= maxLimits:
		return nvmlInsufficientResources
	}
	h.limits[key] = memoryLimit{soft: soft, hard: hard}
	return 0
}

// limit answers a question for the limits of a control group.
func (h *Host) limit(i int, dir string) wire.Reply {
	path, ok := groupPath(dir)
	if !ok {
		return wire.Reply{Status: nvmlOperatingSystem}
	}
	l, ok := h.limits[limitKey{i, path}]
	if !ok {
		return wire.Reply{Status: nvmlNotFound}
	}
	return wire.Reply{A: l.soft, B: l.hard, C: h.usedBelow(i, path)}
}

// usedBelow sums what a control group and the groups in it hold of GPU i.
func (h *Host) usedBelow(i int, path string) (sum uint64) {
	for _, g := range h.groups {
		if g.path == path || strings.HasPrefix(g.path, strings.TrimSuffix(path, "/")+"/") {
			sum += g.use[i].used
		}
	}
	return sum
}

// withinLimits reports whether a group may take n more bytes of GPU i: its own
// hard limit and that of every group around it must hold, as with the kernel's
// memory controller; the soft limit takes nothing away. The caller holds mu.
func (h *Host) withinLimits(group *group, i int, n uint64) bool {
	if len(h.limits) == 0 {
		return true
	}
	for path := group.path; path != ""; path = filepath.Dir(path) {
		if l, ok := h.limits[limitKey{i, path}]; ok && l.hard != noLimit {
			if used := h.usedBelow(i, path); used > l.hard || n > l.hard-used {
				return false
			}
		}
		if path == "/" || path == "." {
			break
		}
	}
	return true
}
