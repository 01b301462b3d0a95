// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"path/filepath"
	"strings"
)

// config is containerd's configuration: version 2 for containerd 1, version 3 for
// containerd 2, whose CRI plugin is two.
func (c *Containerd) config() string {
	join := func(name string) string { return filepath.Join(c.dir, name) }
	images, runtime, version := `"io.containerd.grpc.v1.cri"`, `"io.containerd.grpc.v1.cri"`, 2
	if !strings.HasPrefix(c.Version, "1.") {
		images, runtime, version = `"io.containerd.cri.v1.images"`, `"io.containerd.cri.v1.runtime"`, 3
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("version = %d", version)
	line("root = %q\nstate = %q", join("root"), join("state"))
	line(`disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]`)
	line("[grpc]\n  address = %q", c.socket())
	if version == 3 {
		line("[plugins.%s.pinned_images]\n  sandbox = %q", images, pauseImageName)
		line("[plugins.%q]\n  stream_server_address = \"127.0.0.1\"\n  stream_server_port = \"0\"", "io.containerd.grpc.v1.cri")
	}
	line("[plugins.%s]", runtime)
	if version == 2 {
		line("  sandbox_image = %q\n  stream_server_address = \"127.0.0.1\"\n  stream_server_port = \"0\"", pauseImageName)
	}
	// Without CAP_SYS_RESOURCE a sandbox's own score is refused.
	line("  restrict_oom_score_adj = true")
	line("[plugins.%s.cni]\n  conf_dir = %q", runtime, join("cni/conf"))
	if strings.HasPrefix(c.Version, "2.") {
		line("  bin_dirs = [%q]", join("cni/bin"))
	} else {
		line("  bin_dir = %q", join("cni/bin"))
	}
	line("[plugins.%s.containerd]\n  default_runtime_name = %q", runtime, HandlerRunc)
	for _, h := range []struct{ name, kind, path, binary string }{
		{HandlerRunc, "io.containerd.runc.v2", "", ""},
		{HandlerShim, ShimType, "", ""},
		{HandlerShimPath, "io.containerd.runc.v2", c.node.Bin("containerd-shim-gpushare-v1"), ""},
		{HandlerWrapper, "io.containerd.runc.v2", "", c.node.Bin("gpushare-runtime")},
	} {
		line("[plugins.%s.containerd.runtimes.%s]", runtime, h.name)
		line("  runtime_type = %q", h.kind)
		line("  pod_annotations = [\"gpushare.io/*\"]\n  container_annotations = [\"gpushare.io/*\"]")
		line("  privileged_without_host_devices = true")
		if h.path != "" {
			line("  runtime_path = %q", h.path)
		}
		if h.binary != "" {
			line("[plugins.%s.containerd.runtimes.%s.options]\n  BinaryName = %q", runtime, h.name, h.binary)
		}
	}
	return b.String()
}
