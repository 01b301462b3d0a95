// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"runtime/debug"

	task "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/log"
	"github.com/containerd/ttrpc"

	"github.com/gpushare/gpushare/hook"
)

// serviceNames are the task API's two names. containerd before 2.3 calls the
// first, later ones the second; their messages are the same on the wire.
var serviceNames = []string{"containerd.task.v2.Task", "containerd.task.v3.Task"}

// register serves s under both names.
func register(server *ttrpc.Server, s task.TTRPCTaskService) {
	for _, name := range serviceNames {
		server.RegisterService(name, &ttrpc.ServiceDesc{Methods: methods(s)})
	}
}

// methods are all of the task API's.
func methods(s task.TTRPCTaskService) map[string]ttrpc.Method {
	return map[string]ttrpc.Method{
		"State":      method("State", s.State),
		"Create":     method("Create", s.Create),
		"Start":      method("Start", s.Start),
		"Delete":     method("Delete", s.Delete),
		"Pids":       method("Pids", s.Pids),
		"Pause":      method("Pause", s.Pause),
		"Resume":     method("Resume", s.Resume),
		"Checkpoint": method("Checkpoint", s.Checkpoint),
		"Kill":       method("Kill", s.Kill),
		"Exec":       method("Exec", s.Exec),
		"ResizePty":  method("ResizePty", s.ResizePty),
		"CloseIO":    method("CloseIO", s.CloseIO),
		"Update":     method("Update", s.Update),
		"Wait":       method("Wait", s.Wait),
		"Stats":      method("Stats", s.Stats),
		"Connect":    method("Connect", s.Connect),
		"Shutdown":   method("Shutdown", s.Shutdown),
	}
}

// method is one entry of the table. ttrpc does not recover a handler's panic, and
// it would end the containers of the whole pod.
func method[Request, Response any](name string, call func(context.Context, *Request) (*Response, error)) ttrpc.Method {
	return func(ctx context.Context, unmarshal func(any) error) (_ any, err error) {
		defer recovered(ctx, name, &err)
		request := new(Request)
		if err := unmarshal(request); err != nil {
			return nil, err
		}
		response, err := call(ctx, request)
		if err != nil {
			return nil, err
		}
		return response, nil
	}
}

// recovered turns a panic into the error of the call that it happened in.
func recovered(ctx context.Context, name string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	log.G(ctx).WithField("stack", string(debug.Stack())).Errorf("panic in %s: %v", name, p)
	*err = errgrpc.ToGRPCf(errdefs.ErrInternal, "gpushare: %s broke down: %v: please report this  [%s]", name, p, hook.CodeInternal)
}
