// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"strings"
)

const k3sSocket = "/run/k3s/containerd/containerd.sock"

// generated names the distribution that writes a containerd configuration anew at
// each of its starts, and the template that it makes it from.
func generated(config, binary, socket string) (name, template string) {
	for _, d := range []struct{ name, dir, mark string }{
		{"rke2", "/var/lib/rancher/rke2/agent/etc/containerd", "/rancher/rke2/"},
		{"k3s", "/var/lib/rancher/k3s/agent/etc/containerd", "/rancher/k3s/"},
	} {
		if strings.Contains(config, d.mark) || strings.Contains(binary, d.mark) {
			return d.name, d.dir
		}
	}
	if socket == k3sSocket {
		return "k3s or rke2", "/var/lib/rancher/k3s/agent/etc/containerd (rke2: /var/lib/rancher/rke2/agent/etc/containerd)"
	}
	return "", ""
}

// refuseGenerated says what to write in the template of k3s or rke2, whose
// config.toml is not to be edited.
func (c *containerd) refuseGenerated(name string) error {
	_, dir := generated(c.opts.Config, c.binary, c.opts.Socket)
	handler := tree{
		"runtime_type": "io.containerd.runc.v2", "runtime_path": c.shim, "privileged_without_host_devices": true,
		"pod_annotations": annotations, "container_annotations": annotations,
	}
	// These distributions run with systemd's cgroups where there is systemd.
	if systemd() {
		handler["options"] = tree{"SystemdCgroup": true}
	}
	l := layout{newline: "\n"}
	fmt.Fprintf(c.opts.Out, "In %s, as config-v3.toml.tmpl (containerd 2):\n\n{{ template \"base\" . }}\n\n%s\n"+
		"or as config.toml.tmpl (containerd 1.7):\n\n{{ template \"base\" . }}\n\n%s\nthen restart %s.\n",
		dir, table(criRuntime, Handler, handler, l), table(criV2, Handler, handler, l), name)
	return refuse("%s writes containerd's configuration anew at each start, so an edit would be lost; put the lines above into its template", name)
}
