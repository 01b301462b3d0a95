// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package node tells the spec editor about the host: the driver's CDI spec and
// device nodes, the majors of NVIDIA's drivers, our own libraries, and the
// low-level runtime. It reads files of root only, each up to a bound, and
// changes nothing.
package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"
	cdi "tags.cncf.io/container-device-interface/specs-go"

	"github.com/gpushare/gpushare/hook"
)

// maxSpec bounds what is read of a CDI spec, in bytes.
const maxSpec = 4 << 20

// specDirs are searched in order for a CDI spec of the driver.
var specDirs = []string{"/etc/cdi", "/var/run/cdi"}

// ErrNoDriver is returned when no CDI spec of the driver is found.
var ErrNoDriver = errors.New("no CDI spec of nvidia.com/gpu")

// LoadDriver reads the driver's CDI spec at path, or the first one found in the
// usual directories if path is empty. The numbers of device nodes are filled in
// from the host, and libraries for other architectures are left out.
func LoadDriver(path string) (*hook.Driver, error) {
	if path != "" {
		return loadDriver(path)
	}
	for _, dir := range specDirs {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for the driver's CDI spec: %w", err)
		}
		for _, e := range entries {
			if ext := filepath.Ext(e.Name()); ext != ".json" && ext != ".yaml" && ext != ".yml" {
				continue
			}
			d, err := loadDriver(filepath.Join(dir, e.Name()))
			if errors.Is(err, ErrNoDriver) {
				continue
			}
			return d, err
		}
	}
	return nil, fmt.Errorf("look for the driver's CDI spec in %s: %w: write one with nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
		strings.Join(specDirs, " and "), ErrNoDriver)
}

func loadDriver(path string) (*hook.Driver, error) {
	data, err := readBounded(path, maxSpec)
	if err != nil {
		return nil, fmt.Errorf("read the driver's CDI spec: %w", err)
	}
	spec, err := parseSpec(data)
	if err != nil {
		return nil, fmt.Errorf("read the driver's CDI spec %s: %w", path, err)
	}
	if err := complete(&spec.ContainerEdits); err != nil {
		return nil, fmt.Errorf("use the driver's CDI spec %s: %w", path, err)
	}
	for i := range spec.Devices {
		if err := complete(&spec.Devices[i].ContainerEdits); err != nil {
			return nil, fmt.Errorf("use the driver's CDI spec %s: %w", path, err)
		}
	}
	return &hook.Driver{Spec: spec}, nil
}

// unmarshal reads JSON or YAML. JSON is YAML too, but takes a tenth of the time
// if it is read as what it is.
func unmarshal(data []byte, spec *cdi.Spec) error {
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' && json.Unmarshal(trimmed, spec) == nil {
		return nil
	}
	*spec = cdi.Spec{}
	if err := yaml.Unmarshal(data, spec); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return nil
}

func parseSpec(data []byte) (*cdi.Spec, error) {
	var spec cdi.Spec
	if err := unmarshal(data, &spec); err != nil {
		return nil, err
	}
	if spec.Kind != hook.DriverKind {
		return nil, fmt.Errorf("kind is %q: %w", spec.Kind, ErrNoDriver)
	}
	edits := []*cdi.ContainerEdits{&spec.ContainerEdits}
	for i := range spec.Devices {
		edits = append(edits, &spec.Devices[i].ContainerEdits)
	}
	for _, e := range edits {
		if slices.Contains(e.DeviceNodes, nil) || slices.Contains(e.Mounts, nil) || slices.Contains(e.Hooks, nil) {
			return nil, errors.New("an entry is null")
		}
	}
	return &spec, nil
}

// complete fills in what a CDI spec leaves to be looked up on the host.
func complete(e *cdi.ContainerEdits) error {
	for _, n := range e.DeviceNodes {
		if n.Type != "" && n.Major != 0 {
			continue
		}
		host := n.HostPath
		if host == "" {
			host = n.Path
		}
		var stat unix.Stat_t
		// A node that is not there matters only if it is granted; the editor
		// then says so, since it stays without a type.
		if err := unix.Stat(host, &stat); err != nil {
			continue
		}
		if stat.Mode&unix.S_IFMT == unix.S_IFCHR {
			n.Type = "c"
			n.Major = int64(unix.Major(uint64(stat.Rdev)))
			n.Minor = int64(unix.Minor(uint64(stat.Rdev)))
		}
	}
	e.Mounts = slices.DeleteFunc(e.Mounts, func(m *cdi.Mount) bool {
		return strings.Contains(filepath.Base(m.ContainerPath), ".so") && foreign(m.HostPath)
	})
	return nil
}

// foreign says whether path is an ELF file of another architecture than ours.
func foreign(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false // the low-level runtime will say that it is missing
	}
	defer f.Close()
	var header [20]byte
	if _, err := io.ReadFull(f, header[:]); err != nil || string(header[:4]) != "\x7fELF" {
		return false
	}
	// e_machine, after e_ident and e_type. debug/elf would read it too, but costs
	// half a millisecond at every start of the wrapper.
	machine := uint16(header[18]) | uint16(header[19])<<8
	want, known := map[string]uint16{"amd64": 62, "arm64": 183}[runtime.GOARCH]
	return known && machine != want
}

func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return data, nil
}
