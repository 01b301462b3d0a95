// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What public sources say of the cards, as a program sees it.
func TestCards(t *testing.T) {
	for name, want := range map[string]struct {
		card           string
		sms, threads   int
		capability     int
		nvmlMiB        uint64
		l2, optin      uint64
		clock, memory  int32 // kHz, as CUDA says
		doubleRatio    int32
		mig, link, ecc bool
	}{
		"t4":           {"Tesla T4", 40, 1024, 75, 15360, 4 << 20, 64 << 10, 1590000, 5001000, 32, false, false, true},
		"a100":         {"NVIDIA A100-SXM4-40GB", 108, 2048, 80, 40960, 40 << 20, 163 << 10, 1410000, 1215000, 2, true, true, true},
		"a100-40gb":    {"NVIDIA A100-SXM4-40GB", 108, 2048, 80, 40960, 40 << 20, 163 << 10, 1410000, 1215000, 2, true, true, true},
		"a100-80gb":    {"NVIDIA A100-SXM4-80GB", 108, 2048, 80, 81920, 40 << 20, 163 << 10, 1410000, 1593000, 2, true, true, true},
		"l40s":         {"NVIDIA L40S", 142, 1536, 89, 46068, 96 << 20, 99 << 10, 2520000, 9001000, 64, false, false, true},
		"h100":         {"NVIDIA H100 80GB HBM3", 132, 2048, 90, 81559, 50 << 20, 227 << 10, 1980000, 2619000, 2, true, true, true},
		"h200":         {"NVIDIA H200", 132, 2048, 90, 143771, 60 << 20, 227 << 10, 1980000, 3201000, 2, true, true, true},
		"b200":         {"NVIDIA B200", 148, 2048, 100, 183359, 253 << 19, 227 << 10, 1965000, 3996000, 2, true, true, true},
		"rtx4090":      {"NVIDIA GeForce RTX 4090", 128, 1536, 89, 24564, 72 << 20, 99 << 10, 2520000, 10501000, 64, false, false, false},
		"rtx-pro-6000": {"NVIDIA RTX PRO 6000 Blackwell Server Edition", 188, 1536, 120, 97887, 128 << 20, 99 << 10, 2430000, 12481000, 64, true, false, true},
		"exact":        {"NVIDIA H100 80GB HBM3", 132, 2048, 90, 81920, 50 << 20, 227 << 10, 1980000, 2619000, 2, true, true, true},
	} {
		p, err := Load(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		g := p.GPU
		a := g.Attributes()
		if g.Name != want.card || g.Capability.Number() != want.capability || g.Memory.TotalBytes>>20 != want.nvmlMiB {
			t.Errorf("%s: %s, capability %d, %d MiB", name, g.Name, g.Capability.Number(), g.Memory.TotalBytes>>20)
		}
		for _, x := range []struct {
			number int
			want   int32
		}{
			{16, int32(want.sms)}, {39, int32(want.threads)}, {13, want.clock}, {36, want.memory}, {38, int32(want.l2)},
			{97, int32(want.optin)}, {87, want.doubleRatio}, {75, int32(want.capability / 10)}, {76, int32(want.capability % 10)},
			{10, 32}, {1, 1024}, {8, 48 << 10}, {82, 65536}, {32, int32(yes(want.ecc))}, {120, int32(yes(want.capability >= 90))},
			{139, int32(g.PCI.DeviceID)},
		} {
			if a[x.number] != x.want {
				t.Errorf("%s: attribute %d is %d, want %d", name, x.number, a[x.number], x.want)
			}
		}
		if g.MIG.MaxInstances > 0 != want.mig || g.NVLink.Version > 0 != want.link {
			t.Errorf("%s: MIG %v, NVLink %v", name, g.MIG, g.NVLink)
		}
		if d, err := idOf(name); err != nil || d != g.PCI.DeviceID || d&0xffff != 0x10de {
			t.Errorf("%s: PCI id %x %v", name, d, err)
		}
	}
}

func idOf(name string) (uint32, error) {
	text, err := Text(name)
	if err != nil {
		return 0, err
	}
	raw, err := decodeYAML(text)
	return deviceID(raw), err
}

// CUDA's total is NVML's without the reserve, as a probe on the card found.
func TestUsable(t *testing.T) {
	for name, want := range map[string]uint64{"rtx-pro-6000": 101973950464, "rtx4090": 25250627584, "exact": 80 << 30} {
		if p, err := Load(name); err != nil || p.GPU.Memory.Usable() != want {
			t.Errorf("%s: %d %v", name, p.GPU.Memory.Usable(), err)
		}
	}
}

func TestNamesAreFiles(t *testing.T) {
	files, err := cards.ReadDir("cards")
	if err != nil || len(files) != len(order) {
		t.Errorf("%d files, %d names: %v", len(files), len(order), err)
	}
	for _, name := range append(Names(), "a100-40gb", "h100-80gb") {
		if _, err := ParseNode(name); err != nil {
			t.Error(err)
		}
	}
	null, _ := Load("null")
	exact, _ := Load(Exact)
	if null.GPU.Memory.ContextBytes != 0 || null.GPU.Engine.KernelTime != "0s" || null.GPU.Name != exact.GPU.Name {
		t.Errorf("null is %+v", null.GPU)
	}
}

// A file like those of NVIDIA's mock: system, defaults, devices, and sections
// that nothing here simulates.
const likeTheMock = `
version: "1.0"
system:
  driver_version: "550.163.01"
  cuda_version: "12.4"
device_defaults:
  name: "NVIDIA L40S"
  architecture: "ada_lovelace"
  compute_capability: {major: 8, minor: 9}
  num_gpu_cores: 18176
  memory: {total_bytes: 51539607552, reserved_bytes: 1073741824, free_bytes: 1, used_bytes: 0}
  pci: {device_id: 0x26B910DE, subsystem_id: 0x185110DE}
  fan: {count: 0, speed_percent: "N/A"}
  ecc: {mode_current: "enabled", errors: {volatile: {}}}
  processes: []
devices:
  - index: 0
    uuid: "GPU-00000001-0000-0000-0000-000000000000"
    serial: 1650000000001
    pci: {bus_id: "0000:3B:00.0"}
    minor_number: 0
  - index: 1
    uuid: "GPU-00000001-0000-0000-0000-000000000001"
    pci: {bus_id: "0000:86:00.0"}
    memory: {total_bytes: 24GiB}
infiniband: {enabled: false}
pcie_topology: {root_complexes: []}
`

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFileOfTheMock(t *testing.T) {
	path := write(t, likeTheMock)
	n, err := ParseNode(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(n.GPUs) != 2 || n.Drivers[0] != "550.163.01" {
		t.Fatalf("%d GPUs, driver %s", len(n.GPUs), n.Drivers)
	}
	a, b := n.GPUs[0], n.GPUs[1]
	if a.UUID != "GPU-00000001-0000-0000-0000-000000000000" || a.Serial != "1650000000001" || a.PCI.BusID != "0000:3B:00.0" ||
		a.Memory.TotalBytes != 51539607552 || b.Memory.TotalBytes != 24<<30 || b.PCI.DeviceID != 0x26B910DE || b.Serial != "" {
		t.Errorf("%+v\n%+v", a, b)
	}
	// What the file does not say is the L40S's: found by its PCI id.
	if a.Multiprocessor.Count != 142 || a.Multiprocessor.L2Bytes != 100663296 || a.Clocks.SMMax != 2520 {
		t.Errorf("multiprocessors %+v", a.Multiprocessor)
	}
	for _, want := range []string{"mine: infiniband", "mine: device_defaults.processes", "mine: device_defaults.fan.speed_percent"} {
		if !strings.Contains(strings.Join(n.Ignored, "\n"), want) {
			t.Errorf("%s is not said to be ignored: %v", want, n.Ignored)
		}
	}
	if n, err = ParseNode("1x" + path); err != nil || len(n.GPUs) != 1 {
		t.Errorf("one of two: %d %v", len(n.GPUs), err)
	}
	if _, err = ParseNode("3x" + path); err == nil || !strings.Contains(err.Error(), "lists 2 devices") {
		t.Errorf("three of two: %v", err)
	}
}

func TestBase(t *testing.T) {
	n, err := ParseNode("2x" + write(t, "base: h100\ndevice_defaults:\n  name: half\n  memory:\n    total_bytes: 40GiB\n  attributes: {PAGEABLE_MEMORY_ACCESS: 1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	g := n.GPUs[1]
	if len(n.GPUs) != 2 || g.Name != "half" || g.Memory.TotalBytes != 40<<30 || g.Multiprocessor.Count != 132 || len(n.Drivers) != 1 || n.Drivers[0] != "580" || g.Attributes()[88] != 1 {
		t.Errorf("%+v", g)
	}
	// Another capability than the base's: its multiprocessors do not count.
	n, err = ParseNode(write(t, "base: h100\ndevice_defaults:\n  compute_capability: {major: 7, minor: 5}\n  num_gpu_cores: 640\n"))
	if err != nil || n.GPUs[0].Multiprocessor.Count != 10 || n.GPUs[0].Multiprocessor.MaxThreads != 1024 {
		t.Errorf("%+v %v", n.GPUs, err)
	}
}

func TestNodes(t *testing.T) {
	for spec, want := range map[string]string{
		"h100": "H", "8xh100": "HHHHHHHH", "4xa100,2xt4": "AAAATT", "16xt4": "TTTTTTTTTTTTTTTT", " 1xt4 , h100": "TH",
	} {
		n, err := ParseNode(spec)
		got := ""
		for _, g := range n.GPUs {
			got += map[string]string{"NVIDIA H100 80GB HBM3": "H", "NVIDIA A100-SXM4-40GB": "A", "Tesla T4": "T"}[g.Name]
		}
		if err != nil || got != want || n.Validate() != nil || len(n.Drivers) != 1 || n.Drivers[0] != "580" {
			t.Errorf("%s: %s %v", spec, got, err)
		}
	}
	if n, err := ParseNode("exact,h100"); err != nil || len(n.Drivers) != 2 {
		t.Errorf("profiles of two drivers want %q: %v", n.Drivers, err)
	}
	for spec, want := range map[string]string{
		"h10": "did you mean h100?", "a100-80": "did you mean a100-80gb?", "0xh100": "1 to 16", "17xh100": "1 to 16", "9xh100,8xt4": "17 GPUs",
		"": "want PROFILE", "h100,": "want PROFILE", "./none.yaml": "no such file", "rtx_pro_6000": "did you mean rtx-pro-6000?",
	} {
		if _, err := ParseNode(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", spec, err, want)
		}
	}
}

// An error says the field, the value and what is allowed.
func TestRefused(t *testing.T) {
	d := func(s string) string { return "base: h100\ndevice_defaults:\n  " + s + "\n" }
	for text, want := range map[string][]string{
		d("memory: {total_bites: 1}"):                            {"device_defaults.memory.total_bites", "did you mean total_bytes?"},
		d("memori: {}"):                                          {"device_defaults.memori", "did you mean memory?"},
		d("frobnicate: 1"):                                       {"device_defaults.frobnicate", "there are architecture"},
		d("memory: {total_bytes: 80GHz}"):                        {"device_defaults.memory.total_bytes", `"80GHz"`, "bytes", "80GiB"},
		d("memory: {total_bytes: -1}"):                           {"total_bytes", "-1", "1048576 to"},
		d("memory: {total_bytes: 1.5}"):                          {"total_bytes", "1.5", "whole number of bytes"},
		d("memory: {reserved_bytes: 90GiB}"):                     {"memory.reserved_bytes", "less than total_bytes"},
		d("power: {default_limit_mw: 700W}"):                     {"power.default_limit_mw", `"700W"`, "milliwatts", "700000"},
		d("power: {default_limit_mw: 10}"):                       {"power.default_limit_mw", "200000 to 700000"},
		d("pcie: {max_link_gen: 9}"):                             {"pcie.max_link_gen", "9", "1 to 7"},
		d("pcie: {current_link_width: 32}"):                      {"pcie", "wider"},
		d("engine: {slice: 2}"):                                  {"engine.slice", "2", "2ms"},
		d("engine: {slice: 1us}"):                                {"engine.slice", "1us", "10µs to 10s"},
		d("architecture: hoper"):                                 {"architecture", "hoper", "did you mean hopper?"},
		d("name: ''"):                                            {"name", "1 to 70"},
		d("name: "):                                              {"name", "no value"},
		d("name: " + strings.Repeat("x", 71)):                    {"name", "at most 70"},
		d(`name: "a\nb"`):                                        {"name", "printable"},
		d("memory: 80GiB"):                                       {"memory", "a group of fields"},
		d("nvlink: {c2c_enabled: maybe}"):                        {"c2c_enabled", "true or false"},
		d("attributes: {PAGEABLE_MEMORY_ACCES: 1}"):              {"PAGEABLE_MEMORY_ACCES", "did you mean PAGEABLE_MEMORY_ACCESS?"},
		d("uuid: GPU-1"):                                         {"uuid", "GPU-0123"},
		d("pci: {bus_id: '1'}"):                                  {"pci.bus_id", "0000:1A:00.0"},
		d("multiprocessor: {count: 0}"):                          {"multiprocessor.count", "1 to 1024"},
		d("name: a\n  name: b"):                                  {"already set"},
		"base: h10\n":                                            {"base", "did you mean h100?"},
		"basis: h100\n":                                          {"basis", "did you mean base?"},
		"[]":                                                     {"a group of fields"},
		"a: [":                                                   {"read YAML"},
		"base: h100\ndevices: {}\n":                              {"devices", "a list"},
		"base: h100\ndevices: [1]\n":                             {"devices[0]", "a group of fields"},
		"base: h100\ndevices: [{index: 1}]\n":                    {"devices[0].index", "want 0"},
		"base: h100\ndevices: [{pci: {bus_id: x}}]\n":            {"devices[0]", "bus_id"},
		"base: h100\ndevice_defaults: 1\n":                       {"device_defaults", "a group of fields"},
		d("compute_capability: {major: 3, minor: 5}"):            {"multiprocessor", "3.5"},
		d("multiprocessor: {shared_memory_bytes: 1KiB}"):         {"optin_bytes", "at most shared_memory_bytes"},
		"base: h100\ndriver: [1]\n":                              {"driver", "want text"},
		"base: h100\ndevices: [{ecc: {mode_current: \"on\"}}]\n": {"devices[0].ecc.mode_current", "enabled, disabled"},
	} {
		_, err := ParseNode(write(t, text))
		if err == nil {
			t.Errorf("accepted:\n%s", text)
			continue
		}
		for _, w := range append(want, "mine.yaml") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s\n%v\ndoes not say %q", text, err, w)
			}
		}
	}
	n, err := ParseNode("2xh100")
	if err != nil {
		t.Fatal(err)
	}
	n.GPUs[0].UUID = "GPU-00000001-0000-0000-0000-000000000001"
	n.GPUs[1].UUID = n.GPUs[0].UUID
	if err := n.Validate(); err == nil || !strings.Contains(err.Error(), "gpu 0 has it") {
		t.Errorf("a UUID twice: %v", err)
	}
}

func TestAttributesKnown(t *testing.T) {
	for cuda, want := range map[int]int{11000: 112, 11040: 120, 12020: 135, 12090: 144, 13000: 148, 13050: AttributeSlots} {
		if got := AttributesKnown(cuda); got != want {
			t.Errorf("CUDA %d knows %d attributes, want %d", cuda, got, want)
		}
	}
	seen := map[int]bool{}
	for _, a := range attributes {
		if seen[a.number] || a.number >= AttributeSlots {
			t.Errorf("attribute %d twice or out of range", a.number)
		}
		seen[a.number] = true
	}
	if len(seen) != AttributeSlots-1 {
		t.Errorf("%d attributes", len(seen))
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range Names() {
		text, err := Text(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(likeTheMock)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse("fuzz", []byte(text))
		if err != nil {
			return
		}
		for _, g := range append(p.Devices, p.GPU) {
			if err := g.Validate(); err != nil {
				t.Errorf("accepted what is not valid: %v", err)
			}
			g.Attributes()
		}
	})
}
