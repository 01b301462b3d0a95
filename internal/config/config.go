// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package config reads gpushare's config.toml, the administrator's file.
//
// It owns the keys, their defaults and the search order. The file is never
// named by the environment: a program that runs as root on behalf of a tenant's
// container must not be steered by what the tenant can set. Unknown keys are an
// error, so that a misspelt limit cannot be silently absent.
package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gpushare/gpushare/limiter"
	"github.com/gpushare/gpushare/limiter/quantity"
)

// SystemPath is the file that is read when the binary's own tree has none.
const SystemPath = "/etc/gpushare/config.toml"

// maxSize bounds what is read of a config.toml, in bytes.
const maxSize = 1 << 20

// Defaults of the keys that have one.
const (
	DefaultRunDir     = "/run/gpushare"
	DefaultStateDir   = "/var/lib/gpushare"
	DefaultDockerHost = "unix:///var/run/docker.sock"
	DefaultCompat     = "route"
)

// ErrUnsafe is returned when a file or a directory that decides what root runs
// belongs to, or can be written by, somebody else.
var ErrUnsafe = errors.New("not safe to use as root")

// Share is a request as its author wrote it; package limiter reads the words.
type Share struct {
	Memory     string `toml:"memory"`
	Compute    string `toml:"compute"`
	ComputeMax string `toml:"compute_max"`
	// Profile stands in the place of the three others.
	Profile    string `toml:"profile"`
	HostMemory string `toml:"host_memory"`
}

// Words returns the share for package limiter.
func (s Share) Words() limiter.Words {
	return limiter.Words{Memory: s.Memory, Compute: s.Compute, ComputeMax: s.ComputeMax, Profile: s.Profile, HostMemory: s.HostMemory}
}

// Most is the most that a request may name; an empty word is not capped.
type Most struct {
	Memory     string `toml:"memory"`
	Compute    string `toml:"compute"`
	ComputeMax string `toml:"compute_max"`
	HostMemory string `toml:"host_memory"`
}

func (m Most) words() limiter.Words {
	return limiter.Words{Memory: m.Memory, Compute: m.Compute, ComputeMax: m.ComputeMax, HostMemory: m.HostMemory}
}

// Caps are the most that requests may name, by the channel that they came by.
type Caps struct {
	Env        Most `toml:"env"`
	Annotation Most `toml:"annotation"`
}

// Names of the caps in messages, as the file has them.
const (
	envCap        = "cap.env"
	annotationCap = "cap.annotation"
)

// Parse returns the caps for package limiter.
func (c Caps) Parse() (env, annotation limiter.Cap, err error) {
	if env, err = limiter.ParseCap(envCap, c.Env.words()); err != nil {
		return env, annotation, fmt.Errorf("%s: %w", envCap, err)
	}
	if annotation, err = limiter.ParseCap(annotationCap, c.Annotation.words()); err != nil {
		return env, annotation, fmt.Errorf("%s: %w", annotationCap, err)
	}
	return env, annotation, nil
}

// HostBytes is HostMemory in bytes.
func (c *Config) HostBytes() (uint64, error) {
	if c.HostMemory == "" {
		return 0, nil
	}
	n, err := quantity.ParseHostMemory(c.HostMemory, quantity.Strict)
	if err != nil {
		return 0, fmt.Errorf("%s %w", hostMemoryKey, err)
	}
	return n, nil
}

// hostMemoryKey is the name of Config.HostMemory.
const hostMemoryKey = "host_memory"

// Override is what the administrator lets containers do although they could undo
// their limits by it.
type Override struct {
	Privileged     bool `toml:"privileged"`
	HostNamespaces bool `toml:"host_namespaces"` // PID and IPC
}

// Config is a config.toml with the defaults filled in.
type Config struct {
	// RunDir is the host's directory of sockets and container directories.
	RunDir string `toml:"run_dir"`
	// StateDir is the host's directory of durable state.
	StateDir string `toml:"state_dir"`
	// LibraryDir holds our libcuda.so.1 and libnvidia-ml.so.1, or a link
	// `current` to the versioned directory that does. Empty: beside the binary.
	LibraryDir string `toml:"library_dir"`
	// Runtimes are the low-level OCI runtimes, looked up in order.
	Runtimes []string `toml:"runtimes"`
	// DriverCDISpec is the CDI file of nvidia.com/gpu. Empty: searched for.
	DriverCDISpec string `toml:"driver_cdi_spec"`
	// NVMLLibrary and CUDALibrary are the driver's libraries for the host's use.
	NVMLLibrary string `toml:"nvml_library"`
	CUDALibrary string `toml:"cuda_library"`
	// ExtraDriverMounts are "host:container" pairs, mounted read-only into
	// every GPU container.
	ExtraDriverMounts []string `toml:"extra_driver_mounts"`
	// DockerHost is asked for container names only.
	DockerHost string `toml:"docker_host"`
	// Compat says what becomes of an image's own, newer libcuda: "route" lets it
	// serve below ours, "host" uses the host's, "refuse" starts no such image.
	Compat string `toml:"compat"`
	// DefaultShare is what a GPU container gets that asks for nothing.
	DefaultShare Share `toml:"default_share"`
	// HostMemory is how much of the host's memory the node lends to all containers
	// together, for device memory that does not fit. Empty: none.
	HostMemory string `toml:"host_memory"`
	// Cap bounds what containers may ask for; the default share is not bounded.
	Cap Caps `toml:"cap"`
	// Override lets in what is refused without it.
	Override Override `toml:"override"`

	// Path is the file that was read; empty if there was none.
	Path string `toml:"-"`
}

// Default returns the configuration of a node without a config.toml.
func Default() *Config {
	return &Config{
		RunDir:     DefaultRunDir,
		StateDir:   DefaultStateDir,
		Runtimes:   []string{"runc", "crun"},
		DockerHost: DefaultDockerHost,
		Compat:     DefaultCompat,
	}
}

// SocketPath is the daemon's API socket.
func (c *Config) SocketPath() string { return filepath.Join(c.RunDir, "gpushared.sock") }

// ContainersDir is the parent of the containers' directories.
func (c *Config) ContainersDir() string { return filepath.Join(c.RunDir, "c") }

// Parse reads data, the content of the file called name, over the defaults. The
// error names the first problem, on one line.
func Parse(name string, data []byte) (*Config, error) {
	c, problems := Check(name, data)
	switch len(problems) {
	case 0:
		return c, nil
	case 1:
		return nil, fmt.Errorf("read %s: %s", name, problems[0])
	}
	return nil, fmt.Errorf("read %s: %s (and %d more: gpushare config check %s)", name, problems[0], len(problems)-1, name)
}

// SplitMount splits a "host:container" pair of absolute paths.
func SplitMount(s string) (host, container string, err error) {
	host, container, ok := strings.Cut(s, ":")
	if !ok || strings.Contains(container, ":") || !filepath.IsAbs(host) || !filepath.IsAbs(container) {
		return "", "", fmt.Errorf(`%q is not "host:container" with two absolute paths`, s)
	}
	return filepath.Clean(host), filepath.Clean(container), nil
}

// Load reads the file at path, which its caller was told to use.
func Load(path string) (*Config, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", path, err)
	}
	if len(data) > maxSize {
		return nil, fmt.Errorf("read configuration %s: larger than %d bytes", path, maxSize)
	}
	return data, nil
}
