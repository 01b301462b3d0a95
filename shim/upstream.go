// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"

	task "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/containerd/v2/pkg/shutdown"

	// containerd calls its packages below cmd unstable: these two imports are all of
	// them, and its version is pinned.
	runcmanager "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/manager"
	runctask "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/task"
)

// defaultRuntimeRoot is the parent of the low-level runtime's own directories, one
// a namespace, where options name none.
const defaultRuntimeRoot = "/run/containerd/runc"

// newRuncTasks is containerd's task service for runc.
func newRuncTasks(ctx context.Context, p shim.Publisher, s shutdown.Service) (task.TTRPCTaskService, error) {
	return runctask.NewTaskService(ctx, p, s)
}

// newRuncManager starts, stops and describes containerd's shim for runc.
func newRuncManager(name string) shim.Shim { return runcmanager.NewShimManager(name) }
