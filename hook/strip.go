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

// openOthers stands in for the leave to open every device that strip took away: the
// kernel cannot take single devices out of it again. Block devices are never the
// driver's; of character devices each kind that the container has is opened, but
// for those of which the driver has one.
func (s *Spec) openOthers(d *Driver) {
	driver := map[int64]bool{}
	d.all(func(e *cdi.ContainerEdits) {
		for _, n := range e.DeviceNodes {
			driver[n.Major] = true
		}
	})
	allow := []object{{"allow": true, "type": "b", "access": "rwm"}}
	var majors []int64
	for _, dev := range s.devices {
		if (dev.kind == "c" || dev.kind == "u") && dev.major > 0 && !driver[dev.major] && !slices.Contains(majors, dev.major) {
			majors = append(majors, dev.major)
		}
	}
	slices.Sort(majors)
	for _, major := range majors {
		allow = append(allow, object{"allow": true, "type": "c", "major": number(major), "access": "rwm"})
	}
	for _, raw := range allow {
		r, err := readRule(raw)
		if err != nil {
			continue // made above
		}
		same := func(have rule) bool {
			return have.allow && have.kind == r.kind && have.major == r.major && have.minor == r.minor && have.access == r.access
		}
		if !slices.ContainsFunc(s.rules, same) {
			s.rules = append(s.rules, r)
		}
	}
}
