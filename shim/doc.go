// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package shim is containerd-shim-gpushare-v1: containerd's own runc task service
// with a look at each container before runc makes it.
//
// It owns three things: the start protocol, spoken as the containerd that asks
// speaks it; the task API, served in both versions on one socket; and, in Create,
// the edit of the bundle that package hook/create does. Everything else is
// containerd's, unchanged.
//
// One process serves all containers of a pod and outlives containerd, so three
// rules hold here. A fault in one container's request becomes that request's error.
// The serving process starts no process of its own: it reaps every child, and a
// second waiter would race. What happens per container happens in Create and Delete,
// since start is called once a pod.
package shim
