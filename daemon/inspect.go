// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/engine"
	"github.com/gpushare/gpushare/daemon/proc"
	"github.com/gpushare/gpushare/limiter/region"
)

const (
	// maxProcesses is how many processes of a container are described.
	maxProcesses = 64
	// maxVersions is how many versions of our libraries are looked at.
	maxVersions = 256
	// recentEvents is how many events of a container are shown with it.
	recentEvents = 10
)

// details says what is known of one container.
func (m *Manager) details(e entry) *v1.Details {
	r := e.rec
	d := &v1.Details{
		Asked: r.Original(), Bundle: r.Bundle, RuntimeRoot: r.RuntimeRoot, Cgroup: r.Group.Path,
		Directory: filepath.Join(m.containersDir(), r.ID), ClaimantPID: r.Claimant.PID,
		Processes: []v1.Process{}, Libraries: []v1.Library{}, Events: m.recent(r.ID, recentEvents),
	}
	if d.Events == nil {
		d.Events = []v1.Event{}
	}
	if len(r.Set) > 0 {
		d.Set = make(map[string]v1.SetWord, len(r.Set))
		for name, w := range r.Set {
			d.Set[name] = v1.SetWord{Word: w.Word, Time: w.Time}
		}
	}
	if p, err := engine.PodOf(r.Bundle); err == nil {
		d.Pod = &v1.Pod{Namespace: p.Namespace, Name: p.Name, Container: p.Container}
	}
	pids := m.processesOf(e)
	d.ProcessesTotal = len(pids)
	d.Processes = append(d.Processes, m.describeProcesses(e.c, pids)...)
	d.Libraries = append(d.Libraries, m.libraries(d.Processes)...)
	return d
}

// processesOf returns the container's processes as far as they can be told from
// others.
func (m *Manager) processesOf(e entry) []int {
	var pids []int
	if e.rec.Group.Usable() {
		pids, _ = m.tree.Processes(e.rec.Group)
	} else if e.c.dir != nil && !e.rec.Init.IsZero() {
		pids, _ = proc.Mounted(e.c.dir.Device, mountPoint)
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// holders are the processes with a slot, by their own word.
func (c *container) holders() []region.Holder {
	c.acct.Lock()
	defer c.acct.Unlock()
	if c.closed || c.dir == nil {
		return nil
	}
	h, _ := c.dir.Ledger.Holders(region.SlotCount)
	return h
}

// describeProcesses describes some of the processes, those with a slot first.
func (m *Manager) describeProcesses(c *container, pids []int) []v1.Process {
	slots := make(map[int]region.Holder)
	for _, h := range c.holders() {
		slots[h.PID] = h
	}
	out := make([]v1.Process, 0, len(pids))
	for _, pid := range pids {
		p := v1.Process{PID: pid, ContainerPID: proc.InnerPID(pid)}
		if h, ok := slots[p.ContainerPID]; ok && p.ContainerPID != 0 {
			slot := h.Slot
			p.Slot, p.MemoryBytes = &slot, h.Bytes
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b v1.Process) int { return cmp.Compare(rank(a), rank(b)) })
	out = out[:min(len(out), maxProcesses)]
	versions := m.versions()
	for i := range out {
		p := &out[i]
		p.Command = proc.Command(p.PID)
		p.Library = mappedVersion(p.PID, versions)
	}
	return out
}

func rank(p v1.Process) int {
	if p.Slot != nil {
		return 0
	}
	return 1
}

// unknownLibrary is what is said of a library in no directory that is there.
const unknownLibrary = "(unknown)"

// library is a directory of our libraries and the file in it that is mapped.
type library struct {
	dir  string
	file os.FileInfo
}

// versions lists the versioned directories of our libraries.
func (m *Manager) versions() []library {
	if m.opt.Libraries == nil {
		return nil
	}
	current, err := m.opt.Libraries()
	if err != nil {
		return nil
	}
	base := filepath.Dir(current)
	entries, _ := os.ReadDir(base)
	var out []library
	for _, e := range entries[:min(len(entries), maxVersions)] {
		if !e.IsDir() {
			continue
		}
		dir := filepath.Join(base, e.Name())
		if info, err := os.Stat(filepath.Join(dir, "libcuda.so.1")); err == nil {
			out = append(out, library{dir, info})
		}
	}
	return out
}

// mappedVersion is the directory of the library that a process has mapped.
func mappedVersion(pid int, versions []library) string {
	files, err := proc.MappedFiles(pid, "libcuda.so")
	if err != nil || len(files) == 0 {
		return ""
	}
	for _, v := range versions {
		if slices.ContainsFunc(files, func(f os.FileInfo) bool { return os.SameFile(v.file, f) }) {
			return v.dir
		}
	}
	return unknownLibrary
}

// libraries counts the versions that the processes have mapped.
func (m *Manager) libraries(processes []v1.Process) []v1.Library {
	current := ""
	if m.opt.Libraries != nil {
		current, _ = m.opt.Libraries()
	}
	count := make(map[string]int)
	for _, p := range processes {
		if p.Library != "" {
			count[p.Library]++
		}
	}
	var out []v1.Library
	for dir, n := range count {
		l := v1.Library{Directory: dir, Current: dir == current, Processes: n}
		if dir == unknownLibrary {
			l.Directory = ""
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b v1.Library) int { return cmp.Compare(a.Directory, b.Directory) })
	return out
}
