// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"path"
	"slices"
	"strings"
)

// Ways by which a container could undo its limits, that the administrator may
// allow nevertheless.
const (
	ExposedPrivileged = "privileged"
	ExposedPID        = "host PID namespace"
	ExposedIPC        = "host IPC namespace"
)

// Override is what the administrator allows although the limit could be undone.
type Override struct {
	Privileged     bool
	HostNamespaces bool // PID and IPC
}

// Check refuses a GPU container in which the limit could not hold. What is refused
// no longer because of the override is returned in exposed.
func (s *Spec) Check(h *Host, o Override) (exposed []string, err error) {
	privileged := o.Privileged && s.privileged()
	if privileged {
		exposed = append(exposed, ExposedPrivileged)
	} else if err := s.checkPrivilege(); err != nil {
		return nil, err
	}
	shared, err := s.checkNamespaces(h, o.HostNamespaces)
	if err != nil {
		return nil, err
	}
	if err := s.checkMounts(h, privileged, o.HostNamespaces); err != nil {
		return nil, err
	}
	return append(exposed, shared...), s.checkLoader()
}

// has looks at names in any case of letters, as crun does.
func (s *Spec) has(capability string) bool {
	return slices.ContainsFunc(s.capability, func(name string) bool { return strings.EqualFold(name, capability) })
}

// privileged says whether the container has what engines make of --privileged:
// capabilities that only a privileged container has together, and every device or
// a hold on the host.
func (s *Spec) privileged() bool {
	return s.has("CAP_SYS_ADMIN") && s.has("CAP_SYS_MODULE") && s.has("CAP_SYS_RAWIO") && (s.everyDevice() || !s.ownUsers())
}

func (s *Spec) everyDevice() bool {
	return slices.ContainsFunc(s.rules, func(r rule) bool { return r.everything() })
}

// ownUsers says whether the container has a user namespace of its own.
func (s *Spec) ownUsers() bool {
	return slices.ContainsFunc(s.namespaces, func(n namespace) bool { return n.kind == "user" })
}

func (s *Spec) checkPrivilege() error {
	if s.privileged() && s.everyDevice() {
		return refuse(CodePrivileged, "privileged GPU container refused: it could open every GPU and undo its limits: leave out --privileged (privileged: true) and add -e GPUSHARE_MEMORY=8Gi, with --cap-add or --device for the rest of what it needs")
	}
	return s.checkCapabilities()
}

// checkCapabilities refuses the capabilities that give back what the spec
// takes away. In a user namespace of its own they have no hold on the host.
func (s *Spec) checkCapabilities() error {
	if s.ownUsers() {
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

// checkNamespaces returns which of the host's namespaces the container is in, if
// that is allowed.
func (s *Spec) checkNamespaces(h *Host, allowed bool) (exposed []string, err error) {
	for _, c := range []struct{ kind, exposed, why, instead string }{
		{"mount", "", "our files would land on the host", "give it a mount namespace"},
		{"pid", ExposedPID, "it could trace and stop other tenants' programs", "leave out --pid=host (hostPID: true)"},
		{"ipc", ExposedIPC, "it would share memory with the host's programs", "leave out --ipc=host (hostIPC: true) and use --shm-size for a larger /dev/shm"},
	} {
		own := false
		for _, n := range s.namespaces {
			if n.kind == c.kind {
				own = n.path == "" || h.SameNamespace == nil || !h.SameNamespace(n.kind, n.path)
			}
		}
		switch {
		case own:
		case allowed && c.exposed != "":
			exposed = append(exposed, c.exposed)
		default:
			return nil, refuse(CodeNamespace, "GPU container in the host's %s namespace refused: %s: %s", c.kind, c.why, c.instead)
		}
	}
	return exposed, nil
}

// checkMounts lets the host's /dev into a container that may have every device:
// its rules say which GPUs it can open; and the host's /proc into one that may see
// the host's programs.
func (s *Spec) checkMounts(h *Host, everyDevice, programs bool) error {
	for i := range s.mounts {
		m := &s.mounts[i]
		if m.hostDev(h) || (m.bind() && h.origin(m.source) == "/dev") {
			if everyDevice {
				continue
			}
			return refuse(CodeBind, "GPU container with the host's /dev at %q refused: it would show every GPU: name the devices that it needs with --device", m.destination)
		}
		// What lies in our own directory is taken out by Edit.
		if !m.bind() || within(m.destination, ContainerDir) {
			continue
		}
		source, origin := h.real(m.source), h.origin(m.source)
		for _, dir := range h.Private {
			own, ownOrigin := h.real(dir), h.origin(dir)
			if within(source, own) || within(own, source) || within(origin, ownOrigin) || within(ownOrigin, origin) {
				return refuse(CodeBind, "GPU container with the host's %q at %q refused: %s, where limits are kept, lies in it: mount only the directories that it needs", m.source, m.destination, dir)
			}
		}
		if !everyDevice && !programs && !s.ownUsers() && showsPrograms(origin) {
			return refuse(CodeBind, "GPU container with the host's %q at %q refused: through it, it could reach other tenants' files and programs: mount only the files of it that it needs", m.source, m.destination)
		}
		if !everyDevice && !s.ownUsers() && m.opensCgroups(h, source) {
			return refuse(CodeBind, "GPU container with the host's %q at %q refused: its root user could leave its control group there, and with it the rules about devices: mount only the directories below it that it needs", m.source, m.destination)
		}
	}
	return nil
}

// showsPrograms says whether origin is the host's /proc, or a process's part of it.
func showsPrograms(origin string) bool {
	rest, ok := strings.CutPrefix(origin, "/proc")
	return ok && (rest == "" || (len(rest) > 1 && rest[0] == '/' && rest[1] >= '0' && rest[1] <= '9'))
}

// opensCgroups says whether the mount, of that source, shows control groups that can
// be written to.
func (m *mount) opensCgroups(h *Host, source string) bool {
	if h.OpensCgroups == nil {
		return false
	}
	readOnly, wholly := false, slices.Contains(m.options, "rro")
	for _, o := range m.options {
		if o == "ro" || o == "rw" {
			readOnly = o == "ro"
		}
	}
	recursive := slices.Contains(m.options, "rbind") || !slices.Contains(m.options, "bind")
	return h.OpensCgroups(source, recursive, readOnly, wholly)
}

// checkLoader refuses words to the loader that would put the real driver
// before ours. A program can still do that by itself; a mere setting shall not.
func (s *Spec) checkLoader() error {
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
