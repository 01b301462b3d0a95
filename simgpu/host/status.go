// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// Use is what a process, a control group or everybody used on one GPU.
type Use struct {
	GPU       int    `json:"gpu"`
	UsedBytes uint64 `json:"used_bytes"`
	HighBytes uint64 `json:"high_bytes"` // since the start or the last reset
	Contexts  int    `json:"contexts"`
	GPUTimeNS int64  `json:"gpu_time_ns"`            // compute engine time executed, likewise
	CopyNS    int64  `json:"copy_time_ns,omitempty"` // of the copy engines, all together
	// Memory is UsedBytes by what it was taken for: linear, pool, physical,
	// array, managed, module, growth, graph, context. The parts add up to it.
	Memory map[string]uint64 `json:"memory"`
}

var useNames = [wire.Uses]string{
	wire.UseLinear: "linear", wire.UsePool: "pool", wire.UsePhysical: "physical", wire.UseArray: "array",
	wire.UseManaged: "managed", wire.UseModule: "module", wire.UseGrowth: "growth", wire.UseGraph: "graph",
	wire.UseToken: "token", wire.UseContext: "context",
}

// GPUStatus is the account of one GPU.
type GPUStatus struct {
	Use
	UUID        string `json:"uuid"`
	Name        string `json:"name"`
	Profile     string `json:"profile"`
	MemoryBytes uint64 `json:"memory_bytes"` // that programs can have
	NVMLBytes   uint64 `json:"nvml_bytes"`   // what NVML calls total: with the driver's own
	Reading
	// OrphanBytes belong to no process: an exported descriptor holds them. They
	// and the processes' UsedBytes add up to the GPU's.
	OrphanBytes uint64 `json:"orphan_bytes"`
}

// ProcessStatus is the account of one client connection.
type ProcessStatus struct {
	PID      uint32 `json:"pid"` // of the process that connected, on the host
	Command  string `json:"command"`
	Cgroup   string `json:"cgroup"`
	Launches uint64 `json:"launches"` // kernels submitted
	Pending  int    `json:"pending"`  // operations not complete
	GPUs     []Use  `json:"gpus"`
}

// CgroupStatus is the account of all processes of a control group, also those
// that are gone.
type CgroupStatus struct {
	Path      string `json:"path"`
	Line      string `json:"line"` // of /proc/PID/cgroup
	Processes int    `json:"processes"`
	GPUs      []Use  `json:"gpus"`
}

// Status is the simulator's own account. TimeNS is the moment it was taken
// (CLOCK_MONOTONIC).
type Status struct {
	Simulated bool            `json:"simulated"`
	Driver    string          `json:"driver"`
	CUDA      int             `json:"cuda_version"` // 12090
	TimeNS    int64           `json:"time_ns"`
	GPUs      []GPUStatus     `json:"gpus"`
	Processes []ProcessStatus `json:"processes"`
	Cgroups   []CgroupStatus  `json:"cgroups"`
}

func (u usage) export(i int) Use {
	by := map[string]uint64{}
	for use, n := range u.by {
		if n != 0 {
			by[useNames[use]] = n
		}
	}
	return Use{GPU: i, Memory: by, UsedBytes: u.used, HighBytes: u.high, Contexts: u.contexts, GPUTimeNS: u.ran, CopyNS: u.copied}
}

func exportAll(us []usage) []Use {
	out := make([]Use, len(us))
	for i, u := range us {
		out[i] = u.export(i)
	}
	return out
}

// Status simulates up to now and returns the account.
func (h *Host) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wakeAll() // also what a client has just submitted
	h.catchUp()
	h.seeHangups()
	st := Status{
		Simulated: true, Driver: unix.ByteSliceToString(h.node.DriverVersion[:]), CUDA: int(h.node.CUDAVersion),
		TimeNS: h.machine.Now(), GPUs: []GPUStatus{},
		Processes: []ProcessStatus{}, Cgroups: []CgroupStatus{},
	}
	contexts := map[*group][]int{}
	all := make([]int, len(h.gpus))
	for _, c := range h.clients {
		n := contexts[c.group]
		if n == nil {
			n = make([]int, len(h.gpus))
			contexts[c.group] = n
		}
		for i := range c.use {
			n[i] += c.use[i].contexts
			all[i] += c.use[i].contexts
		}
		st.Processes = append(st.Processes, ProcessStatus{
			PID: c.pid, Command: commandOf(c.pid), Cgroup: c.group.path,
			Launches: c.launches, Pending: c.pending, GPUs: exportAll(c.use),
		})
	}
	for i, g := range h.gpus {
		u := g.use.export(i)
		u.Contexts = all[i]
		orphans := u.UsedBytes
		for _, c := range h.clients {
			orphans -= c.use[i].used
		}
		st.GPUs = append(st.GPUs, GPUStatus{
			Use: u, UUID: g.uuid, Name: g.name, Profile: g.profile.Profile,
			MemoryBytes: g.info.MemoryBytes, NVMLBytes: g.info.MemoryBytes + g.info.ReservedBytes,
			Reading:     h.reading(i),
			OrphanBytes: orphans,
		})
	}
	for _, g := range h.groups {
		cs := CgroupStatus{Path: g.path, Line: g.line, Processes: g.clients, GPUs: exportAll(g.use)}
		for i, n := range contexts[g] {
			cs.GPUs[i].Contexts = n
		}
		st.Cgroups = append(st.Cgroups, cs)
	}
	slices.SortFunc(st.Processes, func(a, b ProcessStatus) int { return cmp.Compare(a.PID, b.PID) })
	slices.SortFunc(st.Cgroups, func(a, b CgroupStatus) int { return cmp.Compare(a.Line, b.Line) })
	return st
}

// Reset sets high-water marks to the present use and engine times to zero, and
// forgets control groups that have no process.
func (h *Host) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wakeAll()
	h.catchUp()
	reset := func(u *usage) { u.high, u.ran, u.copied = u.used, 0, 0 }
	for _, g := range h.gpus {
		reset(&g.use)
	}
	for _, c := range h.clients {
		c.launches = 0
		for i := range c.use {
			reset(&c.use[i])
		}
	}
	for line, g := range h.groups {
		if g.clients == 0 {
			delete(h.groups, line)
			continue
		}
		for i := range g.use {
			reset(&g.use[i])
		}
	}
}

func commandOf(pid uint32) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
