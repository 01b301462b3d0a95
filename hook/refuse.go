// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"path"
	"slices"
	"strings"
)

// Check refuses a GPU container in which the limit could not hold.
func (s *Spec) Check(h *Host) error {
	for _, check := range []func(*Host) error{s.checkPrivileged, s.checkCapabilities, s.checkNamespaces, s.checkMounts, s.checkLoader} {
		if err := check(h); err != nil {
			return err
		}
	}
	return nil
}

func (s *Spec) has(capability string) bool { return slices.Contains(s.capability, capability) }

// checkPrivileged recognises what engines make of --privileged: every device
// and the capabilities that only a privileged container has together.
func (s *Spec) checkPrivileged(*Host) error {
	all := slices.ContainsFunc(s.rules, func(r rule) bool { return r.everything() })
	if all && s.has("CAP_SYS_ADMIN") && s.has("CAP_SYS_MODULE") && s.has("CAP_SYS_RAWIO") {
		return refuse(CodePrivileged, "privileged GPU container refused: it could open every GPU and undo its limits: leave out --privileged (privileged: true) and add -e GPUSHARE_MEMORY=8Gi, with --cap-add or --device for the rest of what it needs")
	}
	return nil
}

// checkCapabilities refuses the capabilities that give back what the spec
// takes away. In a user namespace of its own they have no hold on the host.
func (s *Spec) checkCapabilities(*Host) error {
	if slices.ContainsFunc(s.namespaces, func(n namespace) bool { return n.kind == "user" }) {
		return nil
	}
	for _, c := range []struct{ name, why string }{
		{"CAP_SYS_ADMIN", "it could mount its limits writable and give itself other devices"},
		{"CAP_SYS_MODULE", "it could load code into the kernel"},
		{"CAP_SYS_RAWIO", "it could reach the GPU's registers past the driver"},
	} {
		if s.has(c.name) {
			return refuse(CodeCapability, "GPU container with %s refused: %s: leave out --cap-add %s", c.name, c.why, c.name[len("CAP_"):])
		}
	}
	return nil
}

func (s *Spec) checkNamespaces(h *Host) error {
	for _, c := range []struct{ kind, why, instead string }{
		{"mount", "our files would land on the host", "give it a mount namespace"},
		{"pid", "it could trace and stop other tenants' programs", "leave out --pid=host (hostPID: true)"},
		{"ipc", "it would share memory with the host's programs", "leave out --ipc=host (hostIPC: true) and use --shm-size for a larger /dev/shm"},
	} {
		own := false
		for _, n := range s.namespaces {
			if n.kind == c.kind {
				own = n.path == "" || h.SameNamespace == nil || !h.SameNamespace(n.kind, n.path)
			}
		}
		if !own {
			return refuse(CodeNamespace, "GPU container in the host's %s namespace refused: %s: %s", c.kind, c.why, c.instead)
		}
	}
	return nil
}

func (s *Spec) checkMounts(h *Host) error {
	for i := range s.mounts {
		m := &s.mounts[i]
		if m.hostDev(h) {
			return refuse(CodeBind, "GPU container with the host's /dev at %q refused: it would show every GPU: name the devices that it needs with --device", m.destination)
		}
		// What lies in our own directory is taken out by Edit.
		if !m.bind() || within(m.destination, ContainerDir) {
			continue
		}
		source := h.real(m.source)
		for _, dir := range h.Private {
			if own := h.real(dir); within(source, own) || within(own, source) {
				return refuse(CodeBind, "GPU container with the host's %q at %q refused: %s, where limits are kept, lies in it: mount only the directories that it needs", m.source, m.destination, dir)
			}
		}
	}
	return nil
}

// checkLoader refuses words to the loader that would put the real driver
// before ours. A program can still do that by itself; a mere setting shall not.
func (s *Spec) checkLoader(*Host) error {
	for _, e := range s.env {
		name, value, _ := strings.Cut(e, "=")
		if name != "LD_PRELOAD" && name != "LD_AUDIT" && name != "LD_LIBRARY_PATH" {
			continue
		}
		for _, p := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" :;", r) }) {
			p = path.Clean(p)
			base := path.Base(p)
			if strings.HasSuffix(p, ContainerDir) || strings.Contains(p, ContainerDir+"/") ||
				base == path.Base(cudaLibrary.realPath) || base == path.Base(nvmlLibrary.realPath) {
				return refuse(CodeLoader, "GPU container with %s=%q refused: it would load the real driver before its limits: leave the variable out", name, value)
			}
		}
	}
	return nil
}
