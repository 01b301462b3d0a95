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
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
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

// Share is a request as its author wrote it; limiter/quantity reads the words.
type Share struct {
	Memory     string `toml:"memory"`
	Compute    string `toml:"compute"`
	ComputeMax string `toml:"compute_max"`
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

// Parse reads data, the content of the file called name, over the defaults.
func Parse(name string, data []byte) (*Config, error) {
	c := Default()
	dec := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := dec.Decode(c); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, explain(err))
	}
	c.Path = name
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return c, nil
}

// explain turns the parser's errors into one line that names key and place.
func explain(err error) error {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		first := strict.Errors[0]
		row, _ := first.Position()
		return fmt.Errorf("unknown key %q in line %d", strings.Join(first.Key(), "."), row)
	}
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		row, column := decode.Position()
		return fmt.Errorf("line %d, column %d: %w", row, column, err)
	}
	return err
}

func (c *Config) validate() error {
	for _, p := range []struct{ key, value string }{{"run_dir", c.RunDir}, {"state_dir", c.StateDir}} {
		if p.value == "" {
			return fmt.Errorf("%s is empty: write an absolute path", p.key)
		}
	}
	for _, p := range []struct {
		key   string
		value *string
	}{
		{"run_dir", &c.RunDir}, {"state_dir", &c.StateDir},
		{"library_dir", &c.LibraryDir}, {"driver_cdi_spec", &c.DriverCDISpec},
	} {
		if *p.value == "" {
			continue
		}
		if !filepath.IsAbs(*p.value) {
			return fmt.Errorf("%s %q is not an absolute path", p.key, *p.value)
		}
		*p.value = filepath.Clean(*p.value)
	}
	if c.Compat != "route" && c.Compat != "host" && c.Compat != "refuse" {
		return fmt.Errorf(`compat is %q: write "route", "host" or "refuse"`, c.Compat)
	}
	if len(c.Runtimes) == 0 {
		return errors.New(`runtimes is empty: name at least one, for example ["runc"]`)
	}
	for _, r := range c.Runtimes {
		if r == "" || (strings.Contains(r, "/") && !filepath.IsAbs(r)) {
			return fmt.Errorf("runtimes has %q: write a plain name or an absolute path", r)
		}
	}
	for _, m := range c.ExtraDriverMounts {
		if _, _, err := SplitMount(m); err != nil {
			return fmt.Errorf("extra_driver_mounts: %w", err)
		}
	}
	return nil
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
	return Parse(path, data)
}
