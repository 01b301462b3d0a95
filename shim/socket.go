// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	task "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"
)

// socketFile is a socket's file and which file it was when we looked.
type socketFile struct {
	path string
	info os.FileInfo
}

// lookAt returns nil if there is no socket at path.
func lookAt(path string) *socketFile {
	if !filepath.IsAbs(path) {
		return nil
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return nil
	}
	return &socketFile{path, info}
}

// remove removes the file unless another has taken its place.
func (s *socketFile) remove() {
	if s == nil {
		return
	}
	if info, err := os.Lstat(s.path); err == nil && os.SameFile(info, s.info) {
		_ = os.Remove(s.path)
	}
}

// removeIfDead removes the file unless somebody listens.
func (s *socketFile) removeIfDead() {
	if s == nil {
		return
	}
	conn, err := net.DialTimeout("unix", s.path, 100*time.Millisecond)
	if err == nil {
		conn.Close()
		return
	}
	s.remove()
}

// inherited returns the files of the sockets that start has left to the serving
// process, which are to go with it. containerd's code looks for their names in the
// first container's bundle, which is often gone by then.
func inherited() []*socketFile {
	var all []*socketFile
	for _, fd := range []int{3, 4} { // the API, and with -debug a profiler
		if s := listening(fd); s != nil {
			all = append(all, s)
		}
	}
	return all
}

// listening returns the file of the listening unix socket fd, nil if it is none.
func listening(fd int) *socketFile {
	on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil || on != 1 {
		return nil
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		return nil
	}
	if u, ok := address.(*unix.SockaddrUnix); ok {
		return lookAt(u.Name)
	}
	return nil
}

// socketOfBundle returns the socket of the shim whose bundle is the current
// directory: containerd 2 keeps it in bootstrap.json, older ones have it in address.
func socketOfBundle() *socketFile {
	var b struct {
		Address string `json:"address"`
	}
	if data, err := readBounded("bootstrap.json", unix.O_NOFOLLOW, maxOptions); err == nil {
		_ = json.Unmarshal(data, &b)
	}
	if b.Address == "" {
		if data, err := readBounded("address", unix.O_NOFOLLOW, maxOptions); err == nil {
			b.Address = string(data)
		}
	}
	path, ok := strings.CutPrefix(strings.TrimSpace(b.Address), "unix://")
	if !ok {
		return nil
	}
	return lookAt(path)
}

// abandon ends a shim that has been started but cannot be announced. One that
// already serves containers stays.
func abandon(ctx context.Context, address string, c commandLine) {
	conn, err := shim.AnonDialer(address, time.Second)
	if err != nil {
		return
	}
	client := ttrpc.NewClient(conn)
	defer client.Close()
	ctx, cancel := context.WithTimeout(namespaces.WithNamespace(ctx, c.namespace), time.Second)
	defer cancel()
	_, _ = task.NewTTRPCTaskClient(client).Shutdown(ctx, &task.ShutdownRequest{ID: c.id})
}
