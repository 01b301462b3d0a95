// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"fmt"
	"os"

	"github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/containerd/v2/pkg/shutdown"
	"github.com/containerd/containerd/v2/plugins"
	containerd "github.com/containerd/containerd/v2/version"
	"github.com/containerd/plugin"
	"github.com/containerd/plugin/registry"
)

// Name is the runtime's type as containerd's configuration and ctr name it.
const Name = "io.containerd.gpushare.v1"

// Main is the program, as containerd calls it: start, delete, -info, -v, or
// without an action to serve. It ends the process with 1 on failure.
func Main(version string) {
	c, err := parseCommandLine(os.Args[1:])
	if err == nil && c.version {
		printVersion(os.Stdout, os.Args[0], version, containerd.Version, containerd.GoVersion)
		return
	}
	ctx := context.Background()
	m := &manager{Shim: newRuncManager(Name), version: version}
	if err == nil && c.action == "start" {
		if err := start(ctx, m, c, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %s", Name, err)
			os.Exit(1)
		}
		return
	}
	registerService()
	sockets := inherited()
	shim.RunShim(ctx, m)
	for _, s := range sockets {
		s.remove()
	}
}

// registerService enters our task service in the place of containerd's.
func registerService() {
	registry.Register(&plugin.Registration{
		Type: plugins.TTRPCPlugin,
		ID:   "task",
		Requires: []plugin.Type{
			plugins.EventPlugin,
			plugins.InternalPlugin,
		},
		InitFn: func(ic *plugin.InitContext) (any, error) {
			p, err := ic.GetByID(plugins.EventPlugin, "publisher")
			if err != nil {
				return nil, err
			}
			s, err := ic.GetByID(plugins.InternalPlugin, "shutdown")
			if err != nil {
				return nil, err
			}
			runc, err := newRuncTasks(ic.Context, p.(shim.Publisher), s.(shutdown.Service))
			if err != nil {
				return nil, err
			}
			return newService(runc), nil
		},
	})
}
