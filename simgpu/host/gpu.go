// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"cmp"
	"container/list"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/gpushare/gpushare/simgpu/kernel"
	"github.com/gpushare/gpushare/simgpu/node"
	"github.com/gpushare/gpushare/simgpu/profile"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// defaultPriorities is the number of stream priorities of recent cards.
const defaultPriorities = 6

type gpu struct {
	profile profile.GPU
	info    wire.GPUInfo
	uuid    string
	name    string
	use     usage
	rules   profile.Allocation // how the driver takes memory
	managed *list.List         // of *object that others may push out, longest unused first
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
	g := &gpu{profile: p, rules: p.Memory.Allocation, managed: list.New(), uuid: text, name: p.Name + " (SIMULATED)", nvml: newManagement(&p)}
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
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.gpus {
		n := node.GPU{
			UUID: g.uuid, Model: g.name, VBIOS: g.profile.VBIOS, MIG: g.profile.MIG.MaxInstances > 0,
			BusID: fmt.Sprintf("%04x:%02x:%02x.0", g.info.PCIDomain, g.info.PCIBus, g.info.PCIDevice),
		}
		for _, gi := range g.nvml.mig.instances {
			for _, p := range gi.parts {
				n.Instances = append(n.Instances, node.MIGInstance{
					UUID: p.uuid, Shape: gi.shape.Name, Instance: int(gi.id), Compute: int(p.id),
				})
			}
		}
		out = append(out, n)
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

// memoryRules is what clients are told of how a GPU's memory is taken.
func memoryRules(a profile.Allocation) wire.MemoryRules {
	w := wire.MemoryRules{
		BlockBytes: a.BlockBytes, ModuleBytes: a.ModuleBytes, PoolBytes: a.PoolBytes,
		ResidentThreads: a.ResidentThreads, StreamBytes: a.StreamBytes,
		GraphBytes: a.GraphBytes, GraphNodeBytes: a.GraphNodeBytes,
	}
	if a.ManagedMigrates {
		w.ManagedMigrates = 1
	}
	if a.Multicast {
		w.Multicast = 1
	}
	return w
}
