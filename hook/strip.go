// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"path"
	"slices"
	"strings"

	cdi "tags.cncf.io/container-device-interface/specs-go"

	"github.com/gpushare/gpushare/hook/inject"
)

// strip takes out of the view whatever would come from the driver, from an
// earlier edit of ours or from another vendor's runtime. It looks only at what
// the entries are, never at a mark, which a tenant could forge or leave out.
func (s *Spec) strip(d *Driver, ours []object, h *Host) {
	destinations := map[string]bool{}
	for _, o := range ours {
		destination, _ := o.text("destination")
		destinations[destination] = true
	}
	hooks := map[string]bool{}
	nodes := map[[2]int64]bool{}
	variables := []string{visibleDevices}
	d.all(func(e *cdi.ContainerEdits) {
		for _, m := range e.Mounts {
			destinations[path.Clean(m.ContainerPath)] = true
		}
		for _, hook := range e.Hooks {
			hooks[hook.Path] = true
		}
		for _, n := range e.DeviceNodes {
			nodes[[2]int64{n.Major, n.Minor}] = true
		}
		for _, variable := range e.Env {
			if name, _, ok := strings.Cut(variable, "="); ok && driverVariable.matches(variable) {
				variables = append(variables, name+"=")
			}
		}
	})
	majors := s.majors(h)

	s.mounts = slices.DeleteFunc(s.mounts, func(m mount) bool {
		return destinations[m.destination] || within(m.destination, ContainerDir) || m.vendor() || m.vendorNode()
	})
	s.devices = slices.DeleteFunc(s.devices, func(d device) bool {
		return d.nvidia(majors) || (d.kind != "b" && nodes[[2]int64{d.major, d.minor}])
	})
	s.rules = slices.DeleteFunc(s.rules, func(r rule) bool {
		return r.everything() || r.nvidia(majors) || (r.allow && r.kind == "c" && nodes[[2]int64{r.major, r.minor}])
	})
	s.hooks = slices.DeleteFunc(s.hooks, func(e entry) bool { return hooks[e.path] || e.vendorHook() || path.Base(e.path) == inject.Program })
	s.env = slices.DeleteFunc(s.env, func(v string) bool {
		return slices.ContainsFunc(variables, func(name string) bool { return strings.HasPrefix(v, name) })
	})
}
