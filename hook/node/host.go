// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/hook"
	"github.com/gpushare/gpushare/hook/inject"
	"github.com/gpushare/gpushare/internal/config"
)

// Host returns what the editor must know of this machine. Relative bind sources
// of the spec are taken from bundle.
func Host(c *config.Config, bundle string) (*hook.Host, error) {
	devices, err := readBounded("/proc/devices", 1<<20)
	if err != nil {
		return nil, fmt.Errorf("read the kernel's drivers: %w", err)
	}
	real := func(path string) string {
		if !filepath.IsAbs(path) {
			path = filepath.Join(bundle, path)
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
		return path
	}
	mounts := sync.OnceValue(hostMounts) // for GPU containers only
	return &hook.Host{
		Majors:  nvidiaMajors(devices),
		Private: []string{c.RunDir, c.StateDir},
		Real:    real,
		Origin:  func(path string) string { return origin(mounts(), path) },
		OpensCgroups: func(path string, recursive, readOnly, wholly bool) bool {
			return opensCgroups(mounts(), path, recursive, readOnly, wholly)
		},
		SameNamespace: sameNamespace,
	}, nil
}

// nvidiaMajors reads the text of /proc/devices.
func nvidiaMajors(devices []byte) []int64 {
	var majors []int64
	lines := bufio.NewScanner(bytes.NewReader(devices))
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "Block devices") {
			break
		}
		number, name, ok := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if !ok || !strings.HasPrefix(name, "nvidia") {
			continue
		}
		if major, err := strconv.ParseInt(number, 10, 32); err == nil {
			majors = append(majors, major)
		}
	}
	return majors
}

// sameNamespace says whether path is the namespace of that kind that we run in,
// which is the host's.
func sameNamespace(kind, path string) bool {
	own := map[string]string{"mount": "mnt", "network": "net"}[kind]
	if own == "" {
		own = kind
	}
	var ours, theirs unix.Stat_t
	if unix.Stat("/proc/self/ns/"+own, &ours) != nil || unix.Stat(path, &theirs) != nil {
		return false // the low-level runtime will say what is wrong with it
	}
	return ours.Dev == theirs.Dev && ours.Ino == theirs.Ino
}

// Libraries returns the paths of our libcuda and libnvidia-ml. Both must be
// files that nobody but root can change, since every tenant runs them.
func Libraries(c *config.Config) (cuda, nvml string, err error) {
	dir, err := c.LibraryDirectory()
	if err != nil {
		return "", "", err
	}
	cuda, nvml = filepath.Join(dir, "libcuda.so.1"), filepath.Join(dir, "libnvidia-ml.so.1")
	for _, p := range []string{cuda, nvml} {
		info, err := os.Stat(p)
		if err != nil {
			return "", "", fmt.Errorf("find our library: %w", err)
		}
		if !info.Mode().IsRegular() {
			return "", "", fmt.Errorf("find our library: %s is no regular file", p)
		}
		if err := config.CheckRootOwned(p); err != nil {
			return "", "", fmt.Errorf("use our library: %w", err)
		}
		// A half-made installation: the container would start without any CUDA.
		if info.Size() == 0 || foreign(p) {
			return "", "", fmt.Errorf("use our library: %s is empty, or for another architecture: install gpushare again", p)
		}
	}
	return cuda, nvml, nil
}

// HookProgram returns the path of gpushare-hook, which lies beside the running
// binary. Every GPU container's creation runs it as root, so nobody else may be
// able to change it.
func HookProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", inject.Program, err)
	}
	return hookProgram(filepath.Join(filepath.Dir(self), inject.Program))
}

func hookProgram(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w: install it beside the runtime", inject.Program, err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return "", fmt.Errorf("use %s: it is no program", path)
	}
	if err := config.CheckRootOwned(path); err != nil {
		return "", fmt.Errorf("use the createContainer hook: %w", err)
	}
	return path, nil
}

// nvidiaRuntime says whether path is NVIDIA's runtime, or a link to it. Below ours it
// would have the last word about the spec.
func nvidiaRuntime(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	return strings.HasPrefix(filepath.Base(path), "nvidia-container-runtime") ||
		(err == nil && strings.HasPrefix(filepath.Base(real), "nvidia-container-runtime"))
}

// runtimePath is where plain names of low-level runtimes are looked up. PATH is
// not asked: whoever sets it would choose what root runs.
var runtimePath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// LowLevelRuntime returns the path of the first of names that is installed. It
// refuses a file that somebody else than root can change, and our own binary
// under another name, which would call itself forever.
func LowLevelRuntime(names []string) (string, error) {
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("find the low-level runtime: %w", err)
	}
	return lowLevelRuntime(names, self)
}

func lowLevelRuntime(names []string, self fs.FileInfo) (string, error) {
	for _, name := range names {
		candidates := []string{name}
		if !filepath.IsAbs(name) {
			candidates = nil
			for _, dir := range runtimePath {
				candidates = append(candidates, filepath.Join(dir, name))
			}
		}
		for _, path := range candidates {
			info, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
				continue
			}
			if err != nil {
				return "", fmt.Errorf("find the low-level runtime: %w", err)
			}
			if os.SameFile(info, self) {
				return "", fmt.Errorf("use %s as the low-level runtime: it is this program itself: name another one in runtimes of config.toml", path)
			}
			if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
				return "", fmt.Errorf("use %s as the low-level runtime: it is no program", path)
			}
			if err := config.CheckRootOwned(path); err != nil {
				return "", fmt.Errorf("use the low-level runtime: %w", err)
			}
			if nvidiaRuntime(path) {
				return "", fmt.Errorf("use %s as the low-level runtime: it would put the driver over our limits, and into containers that we leave alone: name runc or crun in runtimes of config.toml, and gpushare-runtime in those of NVIDIA's", path)
			}
			return path, nil
		}
	}
	return "", fmt.Errorf("find the low-level runtime: none of %s is installed in %s: install one (apt install runc) or name it in runtimes of config.toml",
		strings.Join(names, ", "), strings.Join(runtimePath, ":"))
}
