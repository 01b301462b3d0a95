// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"fmt"
	"path/filepath"
)

// The parts of the Container Device Interface that the specifications use.
type cdiSpec struct {
	Version string      `json:"cdiVersion"`
	Kind    string      `json:"kind"`
	Devices []cdiDevice `json:"devices"`
	Edits   cdiEdits    `json:"containerEdits"`
}

type cdiDevice struct {
	Name  string   `json:"name"`
	Edits cdiEdits `json:"containerEdits"`
}

type cdiEdits struct {
	Env     []string  `json:"env,omitempty"`
	Devices []cdiNode `json:"deviceNodes,omitempty"`
	Mounts  []cdiBind `json:"mounts,omitempty"`
	Hooks   []cdiHook `json:"hooks,omitempty"`
}

type cdiNode struct {
	Path     string `json:"path"`
	HostPath string `json:"hostPath"`
}

type cdiBind struct {
	HostPath      string   `json:"hostPath"`
	ContainerPath string   `json:"containerPath"`
	Options       []string `json:"options"`
}

type cdiHook struct {
	Name string   `json:"hookName"`
	Path string   `json:"path"`
	Args []string `json:"args"`
}

const containerLib = "/usr/lib/x86_64-linux-gnu"

// specs writes the node's CDI specification in both forms: one whose mounts
// name every path, and one like NVIDIA's generator writes, with hooks. Without
// device nodes there is nothing to hand to a container.
func (l Layout) specs(nodes bool) error {
	for _, d := range []string{"cdi", "cdi-hooks"} {
		if err := makeDir(filepath.Join(l.Dir, d)); err != nil {
			return err
		}
		if err := removeOthers(filepath.Join(l.Dir, d), "nvidia.json"); err != nil {
			return err
		}
	}
	if !nodes {
		return nil
	}
	if err := l.spec(filepath.Join(l.Dir, "cdi", "nvidia.json"), false); err != nil {
		return err
	}
	return l.spec(filepath.Join(l.Dir, "cdi-hooks", "nvidia.json"), true)
}

func (l Layout) spec(path string, hooks bool) error {
	s := cdiSpec{Version: "0.5.0", Kind: "nvidia.com/gpu"}
	node := func(name string) cdiNode {
		return cdiNode{Path: "/dev/" + name, HostPath: filepath.Join(l.Dev(), name)}
	}
	all := cdiEdits{}
	for i, g := range l.GPUs {
		n := node(fmt.Sprintf("nvidia%d", i))
		all.Devices = append(all.Devices, n)
		one := cdiEdits{Devices: []cdiNode{n}}
		if len(g.Instances) == 0 {
			s.Devices = append(s.Devices,
				cdiDevice{Name: fmt.Sprint(i), Edits: one}, cdiDevice{Name: g.UUID, Edits: one})
		}
		// A partitioned GPU is handed out by its instances, as nvidia-ctk does it.
		for k, m := range g.Instances {
			part := cdiEdits{Devices: []cdiNode{n, node(capName(MIGMinor(i, m.Instance, -1))), node(capName(MIGMinor(i, m.Instance, m.Compute)))}}
			all.Devices = append(all.Devices, part.Devices[1:]...)
			s.Devices = append(s.Devices,
				cdiDevice{Name: fmt.Sprintf("%d:%d", i, k), Edits: part}, cdiDevice{Name: m.UUID, Edits: part})
		}
	}
	s.Devices = append(s.Devices, cdiDevice{Name: "all", Edits: all})

	s.Edits.Env = []string{"NVIDIA_VISIBLE_DEVICES=void"}
	s.Edits.Devices = []cdiNode{node("nvidiactl"), node("nvidia-modeset"), node("nvidia-uvm"), node("nvidia-uvm-tools")}
	bind := func(from, to string) {
		s.Edits.Mounts = append(s.Edits.Mounts, cdiBind{
			HostPath: filepath.Join(l.Lib(), from), ContainerPath: to,
			Options: []string{"ro", "nosuid", "nodev", "rbind", "rprivate"},
		})
	}
	s.Edits.Mounts = append(s.Edits.Mounts, cdiBind{
		HostPath: l.Run(), ContainerPath: "/run/simgpu",
		Options: []string{"ro", "nosuid", "nodev", "rbind", "rprivate"},
	})
	var links []string
	for _, name := range libraries {
		full := name + "." + l.Version
		bind(full, filepath.Join(containerLib, full))
		if hooks {
			links = append(links, "--link", full+"::"+filepath.Join(containerLib, name+".1"))
			if name == "libcuda.so" {
				links = append(links, "--link", name+".1::"+filepath.Join(containerLib, name))
			}
		} else {
			bind(full, filepath.Join(containerLib, name+".1"))
			if name == "libcuda.so" { // without a version programs look for this one only
				bind(full, filepath.Join(containerLib, name))
			}
		}
	}
	if hooks {
		s.Edits.Hooks = []cdiHook{
			{Name: "createContainer", Path: l.Hook(), Args: append([]string{"simgpu-cdi-hook", "create-symlinks"}, links...)},
			{Name: "createContainer", Path: l.Hook(), Args: []string{"simgpu-cdi-hook", "update-ldcache", "--folder", containerLib}},
		}
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode CDI specification: %w", err)
	}
	return writeFile(path, append(b, '\n'), 0o644)
}
