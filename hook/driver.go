// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"path"
	"strings"

	cdi "tags.cncf.io/container-device-interface/specs-go"
)

// DriverKind is the CDI kind of the node's driver spec.
const DriverKind = "nvidia.com/gpu"

// Driver is the node's CDI spec for DriverKind, its device nodes' numbers
// filled in and the libraries of other architectures already left out.
type Driver struct{ Spec *cdi.Spec }

// driverFile is the allow-list of the compute type: libcuda and what it loads
// (the set that NVIDIA ships as its cuda-compat package), NVML and its tool,
// and the debugger's backend. Everything else of the driver either opens the
// device without libcuda or serves graphics and video, which nothing gates.
var driverFile = newPattern(`^(lib(cuda|cudadebugger|nvidia-(ml|ptxjitcompiler|nvvm|nvvm70|gpucomp|tileiras|pkcs11|pkcs11-openssl3))\.so(\.[0-9.]+)?|nvidia-smi)$`)

// firmware is read by the driver's own tools; it is data, not code.
var firmware = newPattern(`^/(usr/)?lib/firmware/(updates/)?nvidia/[^/]+/gsp[a-z0-9_]*\.bin$`)

// foreign matches the directories of 32-bit copies.
var foreign = newPattern(`/(i[3-6]86-linux-gnu|lib32|arm-linux-gnueabihf)/`)

var (
	commonNode  = newPattern(`^/dev/(nvidiactl|nvidia-uvm)$`)
	grantedNode = newPattern(`^/dev/(nvidia[0-9]+|nvidia-caps/nvidia-cap[0-9]+)$`)
)

// driverVariable matches the variables that a driver spec may set.
var driverVariable = newPattern(`^NVIDIA_[A-Z0-9_]+=`)

const visibleDevices = "NVIDIA_VISIBLE_DEVICES="

func allowedFile(containerPath string) bool {
	if foreign.matches(containerPath) {
		return false
	}
	return driverFile.matches(path.Base(containerPath)) || firmware.matches(containerPath)
}

// allowedHook leaves out the two kinds of hooks whose effect we cannot have:
// enable-cuda-compat puts the image's own libcuda before ours, and those for
// /dev/dri act on nodes that are not there.
func allowedHook(h *cdi.Hook) bool {
	for _, arg := range h.Args {
		if arg == "enable-cuda-compat" || strings.Contains(arg, "/dev/dri") {
			return false
		}
	}
	return true
}

// library is one of the two driver libraries that ours stand for.
type library struct {
	name     string // as in the linker's libNAME.so
	soname   string
	realPath string // of the real one, in the container
}

var (
	cudaLibrary = library{"cuda", "libcuda.so.1", ContainerDir + "/driver/cuda.real"}
	nvmlLibrary = library{"nvidia-ml", "libnvidia-ml.so.1", ContainerDir + "/driver/nvml.real"}
)

// file says whether containerPath is this library under one of its names.
func (l *library) file(containerPath string) bool {
	rest, ok := strings.CutPrefix(path.Base(containerPath), "lib"+l.name+".so")
	return ok && (rest == "" || strings.HasPrefix(rest, "."))
}

// real returns the host file of the library: of the mounts that name it, the
// one with the fullest version, since the shorter names are links to it.
func (l *library) real(mounts []*cdi.Mount) string {
	var best *cdi.Mount
	for _, m := range mounts {
		if l.file(m.ContainerPath) && (best == nil || len(path.Base(m.ContainerPath)) > len(path.Base(best.ContainerPath))) {
			best = m
		}
	}
	if best == nil {
		return ""
	}
	return best.HostPath
}

// device returns the edits of the device that name stands for, "0" as well as
// "nvidia.com/gpu=0"; nil if there is none.
func (d *Driver) device(name string) *cdi.ContainerEdits {
	name = strings.TrimPrefix(name, DriverKind+"=")
	for i := range d.Spec.Devices {
		if d.Spec.Devices[i].Name == name {
			return &d.Spec.Devices[i].ContainerEdits
		}
	}
	return nil
}

// DeviceName returns the first of names that the driver's spec has a device
// for; specs name devices by UUID, by index, or both.
func (d *Driver) DeviceName(names ...string) (string, error) {
	for _, name := range names {
		if name != "" && d.device(name) != nil {
			return name, nil
		}
	}
	return "", refuse(CodeDriver, "the driver's CDI spec has no device called any of %q: write it anew with nvidia-ctk cdi generate", names)
}

// all calls visit with the edits of the spec and of each device.
func (d *Driver) all(visit func(*cdi.ContainerEdits)) {
	visit(&d.Spec.ContainerEdits)
	for i := range d.Spec.Devices {
		visit(&d.Spec.Devices[i].ContainerEdits)
	}
}

// selection is the part of the driver that goes into one container.
type selection struct {
	env    []string
	nodes  []*cdi.DeviceNode
	mounts []*cdi.Mount
	hooks  []*cdi.Hook
}

// choose applies the allow-list to the spec and to the granted devices.
func (d *Driver) choose(devices []string) (*selection, error) {
	var s selection
	if err := s.take(&d.Spec.ContainerEdits, commonNode); err != nil {
		return nil, err
	}
	for _, name := range devices {
		edits := d.device(name)
		if edits == nil {
			return nil, refuse(CodeDriver, "the driver's CDI spec has no device %q, which was granted: write it anew with nvidia-ctk cdi generate", name)
		}
		before := len(s.nodes)
		if err := s.take(edits, grantedNode); err != nil {
			return nil, err
		}
		if len(s.nodes) == before {
			return nil, refuse(CodeDriver, "device %q of the driver's CDI spec names no device node of a GPU: write it anew with nvidia-ctk cdi generate", name)
		}
	}
	return &s, nil
}

func (s *selection) take(edits *cdi.ContainerEdits, nodes pattern) error {
	for _, variable := range edits.Env {
		if driverVariable.matches(variable) && !strings.HasPrefix(variable, visibleDevices) {
			s.env = append(s.env, variable)
		}
	}
	for _, n := range edits.DeviceNodes {
		if nodes.matches(n.Path) {
			s.nodes = append(s.nodes, n)
		}
	}
	for _, m := range edits.Mounts {
		if !allowedFile(m.ContainerPath) {
			continue
		}
		if !path.IsAbs(m.ContainerPath) || path.Clean(m.ContainerPath) != m.ContainerPath || !path.IsAbs(m.HostPath) {
			return refuse(CodeDriver, "the driver's CDI spec mounts %q at %q: both must be plain absolute paths", m.HostPath, m.ContainerPath)
		}
		s.mounts = append(s.mounts, m)
	}
	for _, h := range edits.Hooks {
		if !allowedHook(h) {
			continue
		}
		if h.HookName != createContainer || !path.IsAbs(h.Path) {
			return refuse(CodeDriver, "the driver's CDI spec has a %s hook %q: only createContainer hooks with an absolute path are applied", h.HookName, h.Path)
		}
		s.hooks = append(s.hooks, h)
	}
	return nil
}
