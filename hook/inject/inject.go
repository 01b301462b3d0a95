// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Where the real libraries are mounted in the container.
const (
	cudaReal = ContainerDir + "/driver/cuda.real"
	nvmlReal = ContainerDir + "/driver/nvml.real"
)

// work is one run of the hook.
type work struct {
	*Options
	root   *root
	loader *loader
	places []place
	// ours are our libraries, hostReal is the host's libcuda.
	ours        map[*library]*file
	hostReal    *file
	hostVersion version
	// shared are mounts that nothing may be mounted on, own are gpushare's.
	shared, own map[uint64]bool
}

// Run puts our libraries over the image's copies and proves that the loader
// will find ours. An error means that the container must not start.
func Run(o *Options) error {
	err := run(o)
	var refusal *Refusal
	if err == nil || errors.As(err, &refusal) {
		return err
	}
	if errors.Is(err, unix.ENOSYS) {
		return refuse(CodeHook, "%v: Linux 5.12 or newer is needed", err)
	}
	return refuse(CodeHook, "%v", err)
}

func run(o *Options) error {
	r, err := openRoot(o.Root)
	if err != nil {
		return err
	}
	defer r.close()
	w := &work{Options: o, root: r, ours: map[*library]*file{}}
	defer func() {
		for _, f := range w.ours {
			f.close()
		}
		if w.hostReal != nil {
			w.hostReal.close()
		}
	}()
	if err := w.open(); err != nil {
		return err
	}
	e := r.findEntry(o)
	if w.loader, err = r.findLoader(e); err != nil {
		return err
	}
	if w.places, err = r.places(o, e, w.loader); err != nil {
		return err
	}
	real, err := w.cover()
	if err != nil {
		return err
	}
	return w.prove(real)
}

// open gets hold of our libraries and of the mounts that matter.
func (w *work) open() error {
	for lib, name := range map[*library]string{cuda: w.CUDA, nvml: w.NVML} {
		if name == "" {
			continue
		}
		f, err := hostFile(name)
		if err != nil {
			return fmt.Errorf("use our library: %w", err)
		}
		w.ours[lib] = f
	}
	name, err := filepath.EvalSymlinks(w.CUDAReal)
	if err != nil {
		return fmt.Errorf("look at the host's driver: %w", err)
	}
	if w.hostReal, err = hostFile(name); err != nil {
		return fmt.Errorf("look at the host's driver: %w", err)
	}
	w.hostVersion = versionOf(path.Base(name))
	if w.shared, err = sharedMounts(); err != nil {
		return err
	}
	w.own = map[uint64]bool{}
	for _, name := range []string{ContainerDir, ContainerDir + "/ledger", cudaReal, nvmlReal} {
		f, err := w.root.file(name)
		if err != nil {
			return fmt.Errorf("look at %s in the container: %w", name, err)
		}
		w.own[f.mount] = true
		f.close()
	}
	top, err := w.root.file("/")
	if err != nil {
		return fmt.Errorf("look at the root of the container: %w", err)
	}
	defer top.close()
	if w.own[top.mount] {
		return fmt.Errorf("look at %s in the container: nothing is mounted there", ContainerDir)
	}
	return nil
}

// cover mounts ours over every copy that is not ours yet. It returns the file
// that is to be the real libcuda.
func (w *work) cover() (identity, error) {
	real := w.hostReal.id
	found, err := w.root.seek(w.places)
	if err != nil {
		return identity{}, err
	}
	defer closeAll(found)
	for _, c := range found {
		if err := w.mayCover(c); err != nil {
			return identity{}, err
		}
	}
	if chosen := w.choose(found); chosen != nil {
		switch w.Compat {
		case Refuse:
			return identity{}, refuse(CodeCompat, "its image brings its own libcuda (%s, by %s), which this node does not take: set compat = \"route\" or \"host\" in config.toml, or use an image without it", chosen.path, chosen.place.origin)
		case Route:
			if err := w.route(chosen); err != nil {
				return identity{}, err
			}
			real = chosen.id
		}
	}
	for _, c := range found {
		// An earlier turn may have covered the same file under another name.
		now, err := w.root.file(c.path)
		if absent(err) {
			continue
		}
		if err != nil {
			return identity{}, fmt.Errorf("look at %s in the container: %w", c.path, err)
		}
		c.close()
		*c.file = *now
		if w.isOurs(c) {
			continue
		}
		if err := w.mayCover(c); err != nil {
			return identity{}, err
		}
		if err := cover(w.ours[c.lib], c.file); err != nil {
			return identity{}, err
		}
	}
	return real, nil
}

func (w *work) isOurs(c candidate) bool {
	our, has := w.ours[c.lib]
	return !has || c.id == our.id
}

// mayCover refuses a target whose covering would do harm.
func (w *work) mayCover(c candidate) error {
	if w.isOurs(c) {
		return nil
	}
	if !c.regular() {
		return refuse(CodeLoader, "%q in its image changes while it is looked at: give the container volumes that nobody else writes to", c.path)
	}
	if w.own[c.mount] {
		return refuse(CodeLoader, "%q, by %s, leads to the real driver below %s, past its limits: take it out", c.path, c.place.origin, ContainerDir)
	}
	if w.shared[c.mount] {
		return refuse(CodeLoader, "%q lies on a mount that is shared with the host, where our library would appear as well: leave out shared", c.path)
	}
	return nil
}

// prove looks at everything again, as the loader will.
func (w *work) prove(real identity) error {
	found, err := w.root.seek(w.places)
	if err != nil {
		return err
	}
	defer closeAll(found)
	has := map[*library]bool{}
	for _, c := range found {
		if !w.isOurs(c) {
			return refuse(CodeLoader, "%q, by %s, is still not our library: does somebody else change the image's files?", c.path, c.place.origin)
		}
		has[c.lib] = has[c.lib] || (c.exact && !c.place.maybe)
	}
	for lib := range w.ours {
		if !has[lib] {
			return refuse(CodeLoader, "its loader would not find %s: neither %s nor a directory of %s has it: set LD_LIBRARY_PATH to the driver's directory in the container, or run ldconfig in the image", lib.soname, cachePath, w.loader.path)
		}
	}
	f, err := w.root.file(cudaReal)
	if err != nil {
		return fmt.Errorf("look at %s in the container: %w", cudaReal, err)
	}
	defer f.close()
	if f.id != real {
		return fmt.Errorf("look at %s in the container: it is not the driver's library that was chosen", cudaReal)
	}
	return w.proveLibc()
}

// proveLibc makes sure that our library finds what itself needs.
func (w *work) proveLibc() error {
	if f := w.find("libc.so.6"); f != nil {
		f.close()
		return nil
	}
	return refuse(CodeImage, "its image has a loader (%s) but no libc.so.6 beside it: our library cannot be loaded there: use an image with glibc", w.loader.path)
}
