// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/gpushare/gpushare/simgpu/kernel"
	"github.com/gpushare/gpushare/simgpu/node"
	"github.com/gpushare/gpushare/simgpu/profile"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// allocationUnit is what sizes are rounded up to.
const allocationUnit = 512

// defaultPriorities is the number of stream priorities of recent cards.
const defaultPriorities = 6

// usage is the account of one process, group or GPU on one GPU.
type usage struct {
	used, high uint64
	contexts   int
	ran        int64 // ns of the compute engine
	copied     int64 // ns of the copy engines
}

func (u *usage) add(n uint64) {
	u.used += n
	u.high = max(u.high, u.used)
}

type gpu struct {
	profile profile.GPU
	info    wire.GPUInfo
	uuid    string
	name    string
	use     usage
	windows windows
	nvml    management
	usual   kernel.Spec // of kernels that no rule names
}

// Device attributes that depend on where the device is.
const (
	attrPCIBus    = 33
	attrPCIDevice = 34
	attrPCIDomain = 50
)

// newGPU makes device i of a node. What the profile leaves open, its UUID, serial
// number and place on the bus, follows from seed and index.
func newGPU(p profile.GPU, seed string, i int) *gpu {
	raw, text := uuidOf(seed, i)
	if p.UUID != "" {
		text = p.UUID
		_, _ = hex.Decode(raw[:], []byte(strings.ReplaceAll(strings.TrimPrefix(text, "GPU-"), "-", ""))) // its form is checked
	}
	g := &gpu{profile: p, uuid: text, name: p.Name + " (SIMULATED)", nvml: newManagement(&p)}
	g.info = wire.GPUInfo{
		UUIDBytes: raw, MemoryBytes: p.Memory.Usable(), ReservedBytes: min(p.Memory.ReservedBytes, p.Memory.TotalBytes),
		ContextBytes: p.Memory.ContextBytes, Multiprocessors: uint32(p.Multiprocessor.Count), Minor: uint32(i),
		PCIBus: uint32(0x10 + i), PCIDeviceID: p.PCI.DeviceID, PCISubsystemID: p.PCI.SubsystemID,
		PeerAccess: peerAccess(p), Capability: uint32(p.Capability.Number()), Attribute: p.Attributes(),
		StreamPriorities: uint32(cmp.Or(p.Engine.Priorities, defaultPriorities)), //nolint:gosec // at most 16
	}
	g.usual, _ = p.Engine.Kernel() // its form is checked
	if p.Engine.Copy.Timed() {
		g.info.TimedCopies = 1
	}
	if p.PCI.BusID != "" {
		_, _ = fmt.Sscanf(p.PCI.BusID, "%x:%x:%x", &g.info.PCIDomain, &g.info.PCIBus, &g.info.PCIDevice) // likewise
	}
	g.info.Attribute[attrPCIBus] = int32(g.info.PCIBus)
	g.info.Attribute[attrPCIDevice] = int32(g.info.PCIDevice)
	g.info.Attribute[attrPCIDomain] = int32(g.info.PCIDomain)
	serial := p.Serial
	if serial == "" {
		serial = fmt.Sprintf("16500000%05d", i)
	}
	copy(g.info.Name[:len(g.info.Name)-1], g.name)
	copy(g.info.UUID[:len(g.info.UUID)-1], text)
	copy(g.info.Serial[:len(g.info.Serial)-1], serial)
	return g
}

func peerAccess(p profile.GPU) uint32 {
	switch {
	case !p.PeerAccess:
		return wire.PeerNone
	case p.NVLink.Version > 0 && p.NVLink.Links > 0:
		return wire.PeerNVLink
	}
	return wire.PeerPCIe
}

// NodeGPUs says what the files of the node tell about the devices.
func (h *Host) NodeGPUs() []node.GPU {
	var out []node.GPU
	for _, g := range h.gpus {
		out = append(out, node.GPU{
			UUID: g.uuid, Model: g.name, VBIOS: g.profile.VBIOS, MIG: g.profile.MIG.MaxInstances > 0,
			BusID: fmt.Sprintf("%04x:%02x:%02x.0", g.info.PCIDomain, g.info.PCIBus, g.info.PCIDevice),
		})
	}
	return out
}

// group is the account of a control group; it outlives its processes.
type group struct {
	line    string // the line of /proc/PID/cgroup
	path    string
	clients int
	use     []usage // by GPU
}

// maxGroups bounds the history; beyond it, groups without clients are dropped.
const maxGroups = 1 << 14

// groupOf returns the group whose line of /proc/PID/cgroup is line. The caller
// holds mu, and so has read the line before: /proc may be slow.
func (h *Host) groupOf(line string) *group {
	if g := h.groups[line]; g != nil {
		return g
	}
	if len(h.groups) >= maxGroups {
		for k, g := range h.groups {
			if g.clients == 0 {
				delete(h.groups, k)
			}
		}
	}
	g := &group{line: line, path: cgroupPath(line), use: make([]usage, len(h.gpus))}
	h.groups[line] = g
	return g
}

// cgroupPath returns the path in a line of /proc/PID/cgroup.
func cgroupPath(line string) string {
	parts := strings.SplitN(line, ":", 3)
	if len(parts) != 3 {
		return ""
	}
	return parts[2]
}

// cgroupLine returns the line of the devices controller, or of the unified
// hierarchy, or "" if the process is gone.
func cgroupLine(pid uint32) string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // read only
	unified := ""
	for sc := bufio.NewScanner(f); sc.Scan(); {
		parts := strings.SplitN(sc.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[0] == "0" && parts[1] == "" {
			unified = sc.Text()
		}
		for _, ctl := range strings.Split(parts[1], ",") {
			if ctl == "devices" {
				return sc.Text()
			}
		}
	}
	return unified
}

// reserve takes n bytes of device memory for c, or reports that there are not
// as many.
func (h *Host) reserve(c *client, gpu int, n uint64) bool {
	g := h.gpus[gpu]
	if n > g.info.MemoryBytes || g.use.used > g.info.MemoryBytes-n || !h.withinLimits(c.group, gpu, n) {
		return false
	}
	g.use.add(n)
	c.use[gpu].add(n)
	c.group.use[gpu].add(n)
	h.tracedMemory(c, gpu, int64(n)) //nolint:gosec // at most the GPU's memory
	return true
}

func (h *Host) release(c *client, gpu int, n uint64) {
	h.gpus[gpu].use.used -= n
	c.use[gpu].used -= n
	c.group.use[gpu].used -= n
	h.tracedMemory(c, gpu, -int64(n)) //nolint:gosec // likewise
}
