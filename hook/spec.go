// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Spec is an OCI runtime spec: the whole document, and a typed view of the
// parts that decide about GPUs. Its view is not kept up to date by Edit.
type Spec struct {
	root        object
	env         []string
	annotations map[string]string
	capability  []string // the bounding set
	mounts      []mount
	devices     []device
	rules       []rule
	namespaces  []namespace
	hooks       []entry
}

type mount struct {
	raw                       object
	destination, source, kind string
	options                   []string
}

type device struct {
	raw          object
	path, kind   string
	major, minor int64
}

// rule is one device cgroup rule; wildcard stands for "any" number.
type rule struct {
	raw          object
	allow        bool
	kind         string
	major, minor int64
	access       string
}

const wildcard = -1

type namespace struct{ kind, path string }

// entry is one hook of one stage.
type entry struct {
	raw   object
	stage string
	path  string
	args  []string
}

// createContainer is the stage in which a hook sees the container's mounts.
const createContainer = "createContainer"

var stages = []string{"prestart", "createRuntime", createContainer, "startContainer", "poststart", "poststop"}

// Parse reads a config.json. It returns a Refusal if the document is not one
// that every reader takes for the same spec.
func Parse(data []byte) (*Spec, error) {
	root, err := decode(data)
	if err != nil {
		return nil, refuse(CodeSpec, "config.json cannot be read: %v", err)
	}
	s := &Spec{root: root}
	for _, read := range []func() error{s.readProcess, s.readAnnotations, s.readMounts, s.readLinux, s.readHooks} {
		if err := read(); err != nil {
			return nil, refuse(CodeSpec, "config.json cannot be read: %v", err)
		}
	}
	return s, nil
}

func (s *Spec) readProcess() error {
	if err := s.root.onlyExact("the spec", "process", "mounts", "hooks", "linux", "annotations", "root", "vm"); err != nil {
		return err
	}
	p, err := s.root.object("process")
	if err != nil || p == nil {
		return err
	}
	if err := p.onlyExact("process", "env", "capabilities"); err != nil {
		return err
	}
	if s.env, err = p.texts("env"); err != nil {
		return err
	}
	c, err := p.object("capabilities")
	if err != nil || c == nil {
		return err
	}
	if err := c.onlyExact("process.capabilities", "bounding"); err != nil {
		return err
	}
	s.capability, err = c.texts("bounding")
	return err
}

func (s *Spec) readAnnotations() error {
	a, err := s.root.object("annotations")
	if err != nil {
		return err
	}
	s.annotations = make(map[string]string, len(a))
	for key := range a {
		if s.annotations[key], err = a.text(key); err != nil {
			return fmt.Errorf("annotations: %w", err)
		}
	}
	return nil
}

func (s *Spec) readMounts() error {
	list, err := s.root.objects("mounts")
	if err != nil {
		return err
	}
	for _, raw := range list {
		m := mount{raw: raw}
		if err := raw.onlyExact("a mount", "destination", "source", "type", "options"); err != nil {
			return err
		}
		if m.destination, err = raw.text("destination"); err != nil {
			return err
		}
		if m.source, err = raw.text("source"); err != nil {
			return err
		}
		if m.kind, err = raw.text("type"); err != nil {
			return err
		}
		if m.options, err = raw.texts("options"); err != nil {
			return err
		}
		m.destination = path.Join("/", m.destination)
		s.mounts = append(s.mounts, m)
	}
	return nil
}

func (s *Spec) readLinux() error {
	l, err := s.root.object("linux")
	if err != nil || l == nil {
		return err
	}
	if err := l.onlyExact("linux", "devices", "resources", "namespaces", "mountLabel", "rootfsPropagation"); err != nil {
		return err
	}
	list, err := l.objects("namespaces")
	if err != nil {
		return err
	}
	for _, raw := range list {
		var n namespace
		if err := raw.onlyExact("a namespace", "type", "path"); err != nil {
			return err
		}
		if n.kind, err = raw.text("type"); err != nil {
			return err
		}
		if n.path, err = raw.text("path"); err != nil {
			return err
		}
		s.namespaces = append(s.namespaces, n)
	}
	if list, err = l.objects("devices"); err != nil {
		return err
	}
	for _, raw := range list {
		d, err := readDevice(raw)
		if err != nil {
			return err
		}
		s.devices = append(s.devices, d)
	}
	r, err := l.object("resources")
	if err != nil || r == nil {
		return err
	}
	if err := r.onlyExact("linux.resources", "devices"); err != nil {
		return err
	}
	if list, err = r.objects("devices"); err != nil {
		return err
	}
	for _, raw := range list {
		rule, err := readRule(raw)
		if err != nil {
			return err
		}
		s.rules = append(s.rules, rule)
	}
	return nil
}

func readDevice(raw object) (d device, err error) {
	d.raw = raw
	if err = raw.onlyExact("a device", "path", "type", "major", "minor"); err != nil {
		return d, err
	}
	if d.path, err = raw.text("path"); err != nil {
		return d, err
	}
	if d.kind, err = raw.text("type"); err != nil {
		return d, err
	}
	if d.major, err = raw.integer("major", 0); err != nil {
		return d, err
	}
	d.minor, err = raw.integer("minor", 0)
	return d, err
}

func readRule(raw object) (r rule, err error) {
	r.raw = raw
	if err = raw.onlyExact("a device rule", "allow", "type", "major", "minor", "access"); err != nil {
		return r, err
	}
	if r.allow, err = raw.boolean("allow"); err != nil {
		return r, err
	}
	if r.kind, err = raw.text("type"); err != nil {
		return r, err
	}
	if r.major, err = raw.integer("major", wildcard); err != nil {
		return r, err
	}
	if r.minor, err = raw.integer("minor", wildcard); err != nil {
		return r, err
	}
	r.access, err = raw.text("access")
	return r, err
}

func (s *Spec) readHooks() error {
	h, err := s.root.object("hooks")
	if err != nil || h == nil {
		return err
	}
	if err := h.onlyExact("hooks", stages...); err != nil {
		return err
	}
	for _, stage := range stages {
		list, err := h.objects(stage)
		if err != nil {
			return err
		}
		for _, raw := range list {
			e := entry{raw: raw, stage: stage}
			if err := raw.onlyExact("a hook", "path", "args", "env", "timeout"); err != nil {
				return err
			}
			if e.path, err = raw.text("path"); err != nil {
				return err
			}
			if e.args, err = raw.texts("args"); err != nil {
				return err
			}
			s.hooks = append(s.hooks, e)
		}
	}
	return nil
}

// Bytes returns the document as it is now.
func (s *Spec) Bytes() ([]byte, error) { return encode(s.root) }

// MountLabel returns the SELinux context that the engine gave the container's
// mounts; empty if none.
func (s *Spec) MountLabel() string {
	l, err := s.root.object("linux")
	if err != nil || l == nil {
		return ""
	}
	label, err := l.text("mountLabel")
	if err != nil {
		return ""
	}
	return label
}

func (m *mount) bind() bool {
	return m.kind == "bind" || slices.Contains(m.options, "bind") || slices.Contains(m.options, "rbind")
}

func (m *mount) shared() bool {
	return slices.Contains(m.options, "shared") || slices.Contains(m.options, "rshared")
}

// within says whether p is dir or lies below it; both are clean and absolute.
func within(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}
