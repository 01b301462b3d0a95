// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

//go:embed cards/*.yaml
var cards embed.FS

// Exact is the profile without roundings, growth and copy times, which a node
// has that names none.
const Exact = "exact"

// order of the built-in profiles in lists.
var order = []string{
	Exact, "null", "t4", "a100", "a100-80gb", "l40s", "h100", "h200", "b200", "rtx4090", "rtx-pro-6000",
}

// also are other names of them.
var also = map[string]string{"a100-40gb": "a100", "h100-80gb": "h100"}

// maxFile bounds a profile; NVIDIA's largest has about 50 KiB.
const maxFile = 1 << 20

// Names lists the built-in profiles.
func Names() []string { return slices.Clone(order) }

// Text returns the YAML of a built-in profile.
func Text(name string) ([]byte, error) {
	if real, ok := also[name]; ok {
		name = real
	}
	if !slices.Contains(order, name) {
		return nil, fmt.Errorf("profile %q: want a file, or one of %s%s", name, strings.Join(order, ", "),
			didYouMean(name, append(Names(), slices.Collect(maps.Keys(also))...)))
	}
	return cards.ReadFile("cards/" + name + ".yaml") //nolint:wrapcheck // embedded
}

// Load reads a built-in profile, or the file that name is a path of: one with a
// slash in it, or that ends in .yaml or .yml.
func Load(name string) (Profile, error) {
	ext := filepath.Ext(name)
	if !strings.ContainsRune(name, '/') && ext != ".yaml" && ext != ".yml" {
		return builtin(name)
	}
	f, err := os.Open(name)
	if err != nil {
		return Profile{}, fmt.Errorf("read profile: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Profile{}, fmt.Errorf("read profile: %w", err)
	}
	if len(text) > maxFile {
		return Profile{}, fmt.Errorf("read profile %s: larger than %d bytes", name, maxFile)
	}
	p, err := Parse(strings.TrimSuffix(filepath.Base(name), ext), text)
	if err != nil {
		return Profile{}, fmt.Errorf("profile %s: %w", name, err)
	}
	return p, nil
}

// file is the form of a file, with the names of NVIDIA's mock.
type file struct {
	Version  string `yaml:"version"`
	Base     string `yaml:"base"`   // built-in profile that the file starts from
	Driver   string `yaml:"driver"` // release of the driver
	System   system `yaml:"system"`
	Defaults any    `yaml:"device_defaults"`
	NVLink   any    `yaml:"nvlink"`
	Devices  []any  `yaml:"devices"`
}

type system struct {
	DriverVersion string `yaml:"driver_version"`
}

// Parse reads a profile. What it does not say is that of its base, else of the
// built-in card with the same PCI device id, else of Exact; multiprocessors of
// another compute capability than the base's follow from the capability.
func Parse(name string, text []byte) (Profile, error) {
	raw, err := decodeYAML(text)
	if err != nil {
		return Profile{}, err
	}
	base, _ := raw["base"].(string)
	if base == "" {
		base = byDevice(deviceID(raw))
	}
	b, err := builtin(base)
	if err != nil {
		return Profile{}, fieldError("base", "%v", err)
	}
	return parse(name, raw, b)
}

// builtin reads an embedded profile: on its own, or over the one that it names.
func builtin(name string) (Profile, error) {
	text, err := Text(name)
	if err != nil {
		return Profile{}, err
	}
	raw, err := decodeYAML(text)
	if err != nil {
		return Profile{}, err
	}
	var b Profile
	if base, ok := raw["base"].(string); ok {
		if b, err = builtin(base); err != nil {
			return Profile{}, err
		}
	}
	return parse(name, raw, b)
}

// parse puts what a file says over base.
func parse(name string, raw map[string]any, base Profile) (Profile, error) {
	d := decoder{ignored: notSimulated}
	var f file
	if err := d.object("", raw, reflect.ValueOf(&f).Elem()); err != nil {
		return Profile{}, err
	}
	p := Profile{Name: name, Driver: cmp.Or(f.Driver, f.System.DriverVersion, base.Driver), GPU: base.GPU}
	was := p.GPU.Capability
	p.GPU.Multiprocessor = Multiprocessor{}
	for _, part := range []struct {
		path string
		in   any
		into any
	}{{"device_defaults", f.Defaults, &p.GPU}, {"nvlink", f.NVLink, &p.GPU.NVLink}} {
		if part.in == nil {
			continue
		}
		if err := d.object(part.path, part.in, reflect.ValueOf(part.into).Elem()); err != nil {
			return Profile{}, err
		}
	}
	if p.GPU.Capability == was {
		p.GPU.Multiprocessor = p.GPU.Multiprocessor.or(base.GPU.Multiprocessor)
	}
	p.GPU.Profile = name
	p.GPU.complete()
	if err := p.GPU.Validate(); err != nil {
		return Profile{}, fmt.Errorf("device_defaults.%w", err)
	}
	if err := p.devices(&d, f.Devices); err != nil {
		return Profile{}, err
	}
	slices.Sort(d.met)
	p.Ignored = slices.Compact(d.met)
	return p, nil
}

// devices reads the list of a node's devices: what differs from the defaults.
func (p *Profile) devices(d *decoder, list []any) error {
	for i, in := range list {
		path := fmt.Sprintf("devices[%d]", i)
		m, ok := in.(map[string]any)
		if !ok {
			return fieldError(path, "%s: want a group of fields", show(in))
		}
		m = maps.Clone(m)
		for _, index := range []string{"index", "minor_number"} { // devices are numbered by their place
			if n, ok := m[index]; ok && fmt.Sprint(n) != fmt.Sprint(i) {
				return fieldError(join(path, index), "%s: want %d: devices are listed in order", show(n), i)
			}
			delete(m, index)
		}
		g := p.GPU
		sub := decoder{ignored: under(d.ignored, "device_defaults.", path+".")}
		if err := sub.object(path, m, reflect.ValueOf(&g).Elem()); err != nil {
			return err
		}
		if err := g.Validate(); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		p.Devices = append(p.Devices, g)
	}
	return nil
}

// under renames the paths of a set of fields.
func under(set map[string]bool, from, to string) map[string]bool {
	out := map[string]bool{}
	for k := range set {
		if rest, ok := strings.CutPrefix(k, from); ok {
			out[to+rest] = true
		}
	}
	return out
}

func decodeYAML(text []byte) (map[string]any, error) {
	j, err := yaml.YAMLToJSONStrict(text) // a key twice is an error
	if err != nil {
		return nil, fmt.Errorf("read YAML: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(j))
	dec.UseNumber()
	var raw map[string]any
	if err := dec.Decode(&raw); err != nil || raw == nil {
		return nil, errors.New("read YAML: want a group of fields")
	}
	return raw, nil
}

// deviceID is device_defaults.pci.device_id, 0 if there is none.
func deviceID(raw map[string]any) uint32 {
	defaults, _ := raw["device_defaults"].(map[string]any)
	pci, _ := defaults["pci"].(map[string]any)
	n, _ := pci["device_id"].(json.Number)
	id, _ := n.Int64()
	return uint32(id) //nolint:gosec // compared only
}

// byDevice returns the built-in card with that PCI id, else Exact.
func byDevice(id uint32) string {
	if name, ok := devices()[id]; ok && id != 0 {
		return name
	}
	return Exact
}

// devices are the built-in cards by PCI id.
var devices = sync.OnceValue(func() map[uint32]string {
	m := map[uint32]string{}
	for _, name := range order {
		if name == Exact || name == "null" {
			continue
		}
		text, _ := Text(name)
		if raw, err := decodeYAML(text); err == nil {
			m[deviceID(raw)] = name
		}
	}
	return m
})
