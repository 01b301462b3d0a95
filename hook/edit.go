// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	cdi "tags.cncf.io/container-device-interface/specs-go"

	"github.com/gpushare/gpushare/hook/inject"
)

// ContainerDir is where a container finds its limits, ledger and real driver.
const ContainerDir = inject.ContainerDir

// hookPath is the whole environment of every hook that we put into a spec. It
// must not be empty: a hook without one inherits the container's environment,
// LD_PRELOAD included, and runs as root of the host.
const hookPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// hookTimeout bounds a hook that names no timeout, in seconds.
const hookTimeout = 30

// Grant is a claim that the daemon has granted, and what goes with it.
type Grant struct {
	ID string
	// Directory is the container's directory on the host.
	Directory string
	// Devices are the names of the granted devices in the driver's CDI spec.
	Devices []string
	// CUDA and NVML are our libraries on the host.
	CUDA, NVML string
	// Extra are the administrator's additional mounts.
	Extra []Bind
	// Hook is the path of gpushare-hook on the host.
	Hook string
	// Compat is config.toml's word on images with a libcuda of their own.
	Compat string
	// Bundle is the directory of config.json; relative paths start there.
	Bundle string
	// HookErrors is the file that crun is to append what hooks say to; empty: what
	// they say is lost there. runc passes it on by itself.
	HookErrors string
	// EveryDevice leaves a container that had leave to open every device all of them
	// that are not the driver's.
	EveryDevice bool
}

// Bind is one bind mount, host path to container path.
type Bind struct{ Source, Destination string }

// Edit turns the spec of a GPU container into one that reaches only the
// granted devices, and the driver only through our libraries. It first takes
// out what an earlier edit or another vendor's runtime put in. On error the
// spec must be thrown away.
func (s *Spec) Edit(d *Driver, g *Grant, h *Host) error {
	chosen, err := d.choose(g.Devices)
	if err != nil {
		return err
	}
	mounts, err := planMounts(chosen, g)
	if err != nil {
		return err
	}
	devices, rules, err := planDevices(chosen)
	if err != nil {
		return err
	}
	s.strip(d, mounts, h)
	if g.EveryDevice {
		s.openOthers(d)
	}
	if err := s.checkPropagation(mounts); err != nil {
		return err
	}
	return s.add(g, chosen, mounts, devices, rules)
}

// planMounts lists our mounts in the order in which they are to be made: last
// in the spec, because the last mount at a place is the one that is seen.
func planMounts(chosen *selection, g *Grant) ([]object, error) {
	cuda := cudaLibrary.real(chosen.mounts)
	if cuda == "" {
		return nil, refuse(CodeDriver, "the driver's CDI spec mounts no libcuda.so for this architecture: write it anew with nvidia-ctk cdi generate")
	}
	nvml := nvmlLibrary.real(chosen.mounts)
	// The administrator's mounts come first: none may cover one of ours.
	var mounts []object
	for _, extra := range g.Extra {
		mounts = append(mounts, bindMount(extra.Source, extra.Destination, "ro", "nosuid", "nodev"))
	}
	placed := map[string]bool{}
	place := func(source, destination string, options ...string) {
		if !placed[destination] {
			placed[destination] = true
			mounts = append(mounts, bindMount(source, destination, options...))
		}
	}
	for _, m := range chosen.mounts {
		switch {
		case cudaLibrary.file(m.ContainerPath):
			place(g.CUDA, m.ContainerPath, "ro", "nosuid", "nodev")
		case nvmlLibrary.file(m.ContainerPath):
			place(g.NVML, m.ContainerPath, "ro", "nosuid", "nodev")
		default:
			place(m.HostPath, m.ContainerPath, "ro", "nosuid", "nodev")
		}
	}
	// Without hooks nobody makes the links that the loader looks for.
	if len(chosen.hooks) == 0 {
		for _, m := range chosen.mounts {
			if cudaLibrary.file(m.ContainerPath) {
				place(g.CUDA, path.Join(path.Dir(m.ContainerPath), cudaLibrary.soname), "ro", "nosuid", "nodev")
			}
			if nvmlLibrary.file(m.ContainerPath) {
				place(g.NVML, path.Join(path.Dir(m.ContainerPath), nvmlLibrary.soname), "ro", "nosuid", "nodev")
			}
		}
	}
	place(g.Directory, ContainerDir, "ro", "nosuid", "nodev")
	place(g.Directory+"/ledger", ContainerDir+"/ledger", "rw", "nosuid", "nodev", "noexec")
	place(cuda, cudaLibrary.realPath, "ro", "nosuid", "nodev")
	if nvml != "" {
		place(nvml, nvmlLibrary.realPath, "ro", "nosuid", "nodev")
	}
	return mounts, nil
}

func bindMount(source, destination string, options ...string) object {
	all := []any{"bind", "rprivate"}
	for _, o := range options {
		all = append(all, o)
	}
	return object{"source": source, "destination": destination, "type": "bind", "options": all}
}

func planDevices(chosen *selection) (devices, rules []object, err error) {
	seen := map[string]bool{}
	for _, n := range chosen.nodes {
		if seen[n.Path] {
			continue
		}
		seen[n.Path] = true
		if n.Type != "c" || n.Major <= 0 || n.Minor < 0 {
			return nil, nil, refuse(CodeDriver, "device node %q is not a character device on this host: is the driver loaded?", firstOf(n.HostPath, n.Path))
		}
		devices = append(devices, object{
			"path": n.Path, "type": "c", "major": number(n.Major), "minor": number(n.Minor),
			"fileMode": number(0o666),
		})
		rules = append(rules, object{
			"allow": true, "type": "c", "major": number(n.Major), "minor": number(n.Minor), "access": "rwm",
		})
	}
	return devices, rules, nil
}

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// checkPropagation refuses a shared mount above one of ours: what we mount in
// the container would appear on the host.
func (s *Spec) checkPropagation(ours []object) error {
	for i := range s.mounts {
		m := &s.mounts[i]
		if !m.shared() {
			continue
		}
		for _, o := range ours {
			if destination, _ := o.text("destination"); within(destination, m.destination) {
				return refuse(CodeBind, "GPU container with a shared mount at %q refused: the driver's files at %q would appear on the host: leave out shared", m.destination, destination)
			}
		}
	}
	return nil
}

// add puts in what was planned, always at the end.
func (s *Spec) add(g *Grant, chosen *selection, mounts, devices, rules []object) error {
	digest, err := digestOf(mounts, devices)
	if err != nil {
		return err
	}
	s.root.setObjects("mounts", append(raws(s.mounts, func(m mount) object { return m.raw }), mounts...))

	l, err := s.root.child("linux")
	if err != nil {
		return err
	}
	l.setObjects("devices", append(raws(s.devices, func(d device) object { return d.raw }), devices...))
	r, err := l.child("resources")
	if err != nil {
		return err
	}
	all := raws(s.rules, func(r rule) object { return r.raw })
	if !slices.ContainsFunc(s.rules, func(r rule) bool { return !r.allow && (r.kind == "" || r.kind == "a") }) {
		all = append([]object{{"allow": false, "access": "rwm"}}, all...)
	}
	r.setObjects("devices", append(all, rules...))

	ours, err := s.injectHook(chosen, g)
	if err != nil {
		return err
	}
	if err := s.addHooks(append(slices.Clone(chosen.hooks), ours)); err != nil {
		return err
	}
	p, err := s.root.child("process")
	if err != nil {
		return err
	}
	p.setTexts("env", append(append(s.env, chosen.env...), visibleDevices+"void"))
	a, err := s.root.child("annotations")
	if err != nil {
		return err
	}
	a[ClaimAnnotation] = g.ID + " sha256:" + digest
	sendHookOutput(a, g.HookErrors)
	return nil
}

func raws[T any](list []T, raw func(T) object) []object {
	out := make([]object, 0, len(list))
	for _, entry := range list {
		out = append(out, raw(entry))
	}
	return out
}

// digestOf names the edit, so that two edited specs can be told apart.
func digestOf(mounts, devices []object) (string, error) {
	o := object{}
	o.setObjects("mounts", mounts)
	o.setObjects("devices", devices)
	data, err := encode(o)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

// addHooks writes the hooks that strip left, the driver's own, and ours last.
func (s *Spec) addHooks(add []*cdi.Hook) error {
	if _, present := s.root["hooks"]; !present && len(add) == 0 {
		return nil
	}
	hooks, err := s.root.child("hooks")
	if err != nil {
		return err
	}
	for _, stage := range stages {
		var list []object
		for _, e := range s.hooks {
			if e.stage == stage {
				list = append(list, e.raw)
			}
		}
		if stage == createContainer {
			for _, h := range add {
				list = append(list, hookObject(h))
			}
		}
		hooks.setObjects(stage, list)
	}
	if len(hooks) == 0 {
		delete(s.root, "hooks")
	}
	return nil
}

func hookObject(h *cdi.Hook) object {
	o := object{"path": h.Path}
	if len(h.Args) > 0 {
		o.setTexts("args", h.Args)
	}
	env := slices.DeleteFunc(slices.Clone(h.Env), func(v string) bool { return strings.HasPrefix(v, "LD_") })
	if !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "PATH=") }) {
		env = append(env, hookPath)
	}
	o.setTexts("env", env)
	timeout := int64(hookTimeout)
	if h.Timeout != nil && *h.Timeout > 0 {
		timeout = int64(*h.Timeout)
	}
	o["timeout"] = number(timeout)
	return o
}
