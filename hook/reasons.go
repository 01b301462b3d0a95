// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// NVIDIAMajor is the fixed character major of the driver's main nodes; the
// others are given out by the kernel at load and listed in /proc/devices.
const NVIDIAMajor = 195

// Host is what the editor must know of the machine. The functions may be nil.
type Host struct {
	// Majors are the character majors of NVIDIA's drivers beside NVIDIAMajor.
	Majors []int64
	// Private are gpushare's own directories on the host, for its running and its
	// lasting state.
	Private []string
	// Real resolves the links of a host path; unchanged if it cannot.
	Real func(path string) string
	// Origin resolves bind mounts too, of a path that Real has resolved: it returns
	// where the file system's own mount shows the same file.
	Origin func(real string) string
	// OpensCgroups says whether a bind of the path shows a control group hierarchy that
	// can be written to. readOnly is said of the bind, wholly of it and all below.
	OpensCgroups func(real string, recursive, readOnly, wholly bool) bool
	// SameNamespace says whether path names the host's namespace of that kind.
	SameNamespace func(kind, path string) bool
}

func (h *Host) real(p string) string {
	p = path.Clean(p)
	if h.Real != nil {
		return h.Real(p)
	}
	return p
}

// origin is real, with bind mounts resolved as well.
func (h *Host) origin(p string) string {
	p = h.real(p)
	if h.Origin != nil {
		return h.Origin(p)
	}
	return p
}

// majors returns the character majors that stand for NVIDIA in this spec: the
// host's, and those of nodes that the spec itself calls nvidia.
func (s *Spec) majors(h *Host) []int64 {
	majors := append([]int64{NVIDIAMajor}, h.Majors...)
	for _, d := range s.devices {
		if nvidiaNode(d.path) && d.major != 0 {
			majors = append(majors, d.major)
		}
	}
	return majors
}

func nvidiaNode(p string) bool { return strings.HasPrefix(path.Clean(p), "/dev/nvidia") }

func (d *device) nvidia(majors []int64) bool {
	return nvidiaNode(d.path) || (d.kind != "b" && slices.Contains(majors, d.major))
}

// everything says whether the rule allows devices of any major. For the type
// "a" the kernel ignores the numbers and the access. Leave to make a node is
// not leave to open it: runc itself allows every container that.
func (r *rule) everything() bool {
	switch r.kind {
	case "", "a":
		return r.allow
	case "c":
		return r.allow && r.major == wildcard && r.opens()
	}
	return false
}

func (r *rule) opens() bool { return r.access == "" || strings.ContainsAny(r.access, "rw") }

func (r *rule) nvidia(majors []int64) bool {
	return r.allow && r.kind == "c" && slices.Contains(majors, r.major)
}

// vendorFile matches files that only NVIDIA's driver has.
var vendorFile = newPattern(`^(lib(cuda|cudadebugger|nvcuvid|nvoptix|nvidia-[a-z0-9-]+|(GLX|EGL|GLESv1_CM|GLESv2|vdpau)_nvidia)\.so(\..*)?|nvidia-(smi|debugdump|persistenced|cuda-mps-control|cuda-mps-server))$`)

// vendor says whether the mount is a file of the driver. Whether it is the one
// that the node has now does not matter: none but ours may be seen.
func (m *mount) vendor() bool {
	return m.bind() && (vendorName(m.destination) || vendorName(m.source) || inFirmware(m.destination))
}

// vendorName asks the pattern only about names that could match it.
func vendorName(p string) bool {
	base := path.Base(p)
	return (strings.HasPrefix(base, "lib") || strings.HasPrefix(base, "nvidia-")) && vendorFile.matches(base)
}

func inFirmware(p string) bool {
	return strings.Contains(p, "/firmware/nvidia/") && firmware.matches(p)
}

func (m *mount) vendorNode() bool { return m.bind() && nvidiaNode(m.source) }

// hostDev says whether the mount shows the host's whole /dev.
func (m *mount) hostDev(h *Host) bool {
	return m.kind == "devtmpfs" || (m.bind() && h.real(m.source) == "/dev")
}

// vendorHook says whether the hook injects NVIDIA's driver, in either form: the
// old prestart hook or the hooks of a CDI spec. All arguments are looked at: the
// program may stand behind env, sh -c, or a runtime of NVIDIA's own.
func (e *entry) vendorHook() bool {
	return slices.ContainsFunc(append([]string{e.path}, e.args...), func(p string) bool {
		base := path.Base(p)
		return strings.HasPrefix(base, "nvidia-container") || strings.HasPrefix(base, "libnvidia-container") ||
			base == "nvidia-cdi-hook" || base == "nvidia-ctk"
	})
}

// Reasons says what makes this a GPU container; none means that it is not one
// and that its spec must not be touched. What an image sets by itself, such as
// NVIDIA_VISIBLE_DEVICES, is no reason.
func (s *Spec) Reasons(a Ask, h *Host) []string {
	var reasons []string
	if a.Source != "" && !s.sandbox() {
		reasons = append(reasons, "a request by "+a.Source)
	}
	majors := s.majors(h)
	for i := range s.devices {
		if s.devices[i].nvidia(majors) {
			reasons = append(reasons, fmt.Sprintf("device node %q", s.devices[i].path))
			break
		}
	}
	for i := range s.rules {
		r := &s.rules[i]
		if r.everything() {
			reasons = append(reasons, "leave to open every device")
			break
		}
		if r.nvidia(majors) && r.opens() {
			reasons = append(reasons, fmt.Sprintf("leave to open devices of major %d", r.major))
			break
		}
	}
	for i := range s.mounts {
		m := &s.mounts[i]
		if m.hostDev(h) || m.vendorNode() || m.vendor() {
			reasons = append(reasons, fmt.Sprintf("mount of %q", firstOf(m.source, m.kind)))
			break
		}
	}
	for i := range s.hooks {
		if s.hooks[i].vendorHook() {
			reasons = append(reasons, fmt.Sprintf("hook %q", s.hooks[i].path))
			break
		}
	}
	return reasons
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
