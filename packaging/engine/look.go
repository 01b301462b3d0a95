// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// State is what an engine knows of gpushare, as seen from outside.
type State struct {
	// Engine is Docker or Containerd, Version what it says it is.
	Engine, Version string
	// Known says that the running engine has our runtime or handler, run as Program.
	Known   bool
	Program string
	// Trap says why containers of ours would run without a limit, although the engine
	// takes them; empty: they would not.
	Trap string
}

// ErrAbsent is returned when an engine is not there at all.
var ErrAbsent = errors.New("not there")

// Look asks a running engine at socket, or at its usual place if that is empty.
func Look(ctx context.Context, name, socket string) (State, error) {
	usual := map[string]string{Docker: dockerSocket, Containerd: containerdSocket}
	if socket == "" {
		socket = usual[name]
	}
	s := State{Engine: name}
	if _, err := os.Stat(socket); errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("%s at %s: %w", name, socket, ErrAbsent)
	}
	if name == Docker {
		return lookDocker(ctx, s, socket)
	}
	return lookContainerd(ctx, s, socket)
}

func lookDocker(ctx context.Context, s State, socket string) (State, error) {
	d := &docker{opts: Options{Socket: socket}, api: newDockerClient(socket)}
	info, err := d.api.info(ctx)
	if err != nil {
		return s, err
	}
	s.Version = info.ServerVersion
	r, known := info.Runtimes[Handler]
	s.Known, s.Program = known, r.Path
	// Before 24.0 a runtime with a type and no path is plain runc.
	if major, _, _ := strings.Cut(info.ServerVersion, "."); known && r.Path == "" {
		if n, err := strconv.Atoi(major); err == nil && n >= 20 && n < 24 {
			s.Trap = fmt.Sprintf("docker %s knows %q by runtimeType, which it ignores: such containers run plain runc", s.Version, Handler)
		}
	}
	return s, nil
}

func lookContainerd(ctx context.Context, s State, socket string) (State, error) {
	p, err := listener(ctx, socket)
	if err != nil {
		return s, err
	}
	var r release
	if r, err = containerdVersion(ctx, p.exe); err == nil {
		s.Version = fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2])
	}
	handlers, err := criHandlers(ctx, socket)
	if err != nil {
		return s, fmt.Errorf("its CRI plugin does not answer: %w", err)
	}
	h, known := handlers[Handler]
	s.Known, s.Program = known, h.Path
	if known && r != (release{}) && r.before(release{1, 6, 21}) && h.Type != shimType {
		s.Trap = fmt.Sprintf("containerd %s forgets runtime_path, so that handler %q runs as its type %s says", s.Version, Handler, h.Type)
	}
	if known && h.Path != "" && !filepath.IsAbs(h.Path) {
		s.Trap = fmt.Sprintf("runtime_path %q of handler %q is not absolute", h.Path, Handler)
	}
	return s, nil
}
