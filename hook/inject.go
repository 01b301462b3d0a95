// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"path"
	"strings"

	cdi "tags.cncf.io/container-device-interface/specs-go"

	"github.com/gpushare/gpushare/hook/inject"
)

// injectHook is the entry of gpushare-hook for this container. It must be the
// last of its stage: only then does it see what the driver's own hooks made. It
// is told everything, because it must not believe anything that it finds.
func (s *Spec) injectHook(chosen *selection, g *Grant) (*cdi.Hook, error) {
	if !path.IsAbs(g.Hook) || path.Base(g.Hook) != inject.Program {
		return nil, refuse(CodeInternal, "GPU container refused: %q is not the path of %s: please report this", g.Hook, inject.Program)
	}
	root, err := s.rootPath(g.Bundle)
	if err != nil {
		return nil, err
	}
	o := inject.Options{
		Root: root, CUDA: g.CUDA, Compat: g.Compat,
		CUDAReal: cudaLibrary.real(chosen.mounts),
	}
	if o.Compat == "" {
		o.Compat = inject.Route
	}
	if nvmlLibrary.real(chosen.mounts) != "" {
		o.NVML = g.NVML
	}
	// Of a variable that is set twice the last one counts. The earlier ones are
	// looked at too: not every runtime agrees.
	var paths, preloads []string
	for _, e := range s.env {
		if value, ok := strings.CutPrefix(e, "LD_LIBRARY_PATH="); ok && value != "" {
			paths = append([]string{value}, paths...)
		}
		if value, ok := strings.CutPrefix(e, "LD_PRELOAD="); ok && value != "" {
			preloads = append([]string{value}, preloads...)
		}
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			o.SearchPath = value
		}
	}
	o.LibraryPath, o.Preload = strings.Join(paths, ":"), strings.Join(preloads, ":")
	p, err := s.root.object("process")
	if err == nil {
		o.WorkDir, err = p.text("cwd")
	}
	if err != nil {
		return nil, refuse(CodeSpec, "config.json cannot be read: %v", err)
	}
	args, err := p.texts("args")
	if err != nil {
		return nil, refuse(CodeSpec, "config.json cannot be read: %v", err)
	}
	if len(args) > 0 {
		o.Arg0 = args[0]
	}
	return &cdi.Hook{HookName: createContainer, Path: g.Hook, Args: append([]string{inject.Program}, o.Args()...)}, nil
}

// rootPath returns the container's root file system on the host.
func (s *Spec) rootPath(bundle string) (string, error) {
	r, err := s.root.object("root")
	if err == nil {
		err = r.onlyExact("root", "path")
	}
	var p string
	if err == nil {
		p, err = r.text("path")
	}
	if err != nil {
		return "", refuse(CodeSpec, "config.json cannot be read: %v", err)
	}
	if p == "" {
		return "", refuse(CodeSpec, "config.json names no root.path, so there is no image to look into")
	}
	if !path.IsAbs(p) {
		p = path.Join(bundle, p)
	}
	if !path.IsAbs(p) {
		return "", refuse(CodeInternal, "GPU container refused: %q is not the path of a bundle: please report this", bundle)
	}
	return p, nil
}
