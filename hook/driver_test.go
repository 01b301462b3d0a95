// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"errors"
	"slices"
	"strings"
	"testing"

	cdi "tags.cncf.io/container-device-interface/specs-go"
)

func TestEditRefusesSharedMountAbove(t *testing.T) {
	s := patched(t, with(t, `{"type":"bind","source":"/srv","destination":"/usr/lib","options":["rbind","rshared"]}`, "mounts"))
	err := s.Edit(testDriver(t, "plain"), testGrant("0"), testHost)
	var r *Refusal
	if !errors.As(err, &r) || r.Code != CodeBind {
		t.Errorf("%v; want %s", err, CodeBind)
	}
}

func TestEditRefusesBadDrivers(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(d *Driver)
		devices []string
		want    string
	}{
		"unknown device":     {func(*Driver) {}, []string{"7"}, `no device "7"`},
		"no libcuda":         {func(d *Driver) { d.Spec.ContainerEdits.Mounts = d.Spec.ContainerEdits.Mounts[2:] }, []string{"0"}, "no libcuda.so"},
		"no node":            {func(d *Driver) { d.Spec.Devices[0].ContainerEdits.DeviceNodes = nil }, []string{"0"}, "names no device node"},
		"node is not there":  {func(d *Driver) { d.Spec.Devices[0].ContainerEdits.DeviceNodes[0].Type = "" }, []string{"0"}, "is not a character device"},
		"path with dots":     {func(d *Driver) { d.Spec.ContainerEdits.Mounts[0].ContainerPath = "/a/../libcuda.so.1" }, []string{"0"}, "plain absolute paths"},
		"relative host path": {func(d *Driver) { d.Spec.ContainerEdits.Mounts[0].HostPath = "libcuda.so.1" }, []string{"0"}, "plain absolute paths"},
	} {
		d := testDriver(t, "plain")
		c.change(d)
		err := patched(t, nil).Edit(d, testGrant(c.devices...), testHost)
		var r *Refusal
		if !errors.As(err, &r) || r.Code != CodeDriver || !strings.Contains(r.Message, c.want) {
			t.Errorf("%s: %v; want %s with %q", name, err, CodeDriver, c.want)
		}
	}
}

// A driver spec without hooks that names only the versioned files: nobody but
// us makes the names that the loader looks for.
func TestEditMakesSonamesWithoutHooks(t *testing.T) {
	d := testDriver(t, "plain")
	edits := &d.Spec.ContainerEdits
	edits.Mounts = slices.DeleteFunc(edits.Mounts, func(m *cdi.Mount) bool { return strings.HasSuffix(m.ContainerPath, ".so.1") })
	out, err := edit(readFile(t, "minimal.in.json"), d, testGrant("0"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []struct{ name, source string }{{"libcuda.so.1", testGrant().CUDA}, {"libnvidia-ml.so.1", testGrant().NVML}} {
		if !slices.ContainsFunc(s.mounts, func(m mount) bool {
			return m.destination == "/usr/lib/x86_64-linux-gnu/"+l.name && m.source == l.source
		}) {
			t.Errorf("%s is not mounted", l.name)
		}
	}
}

// Of a kind of device of which the driver has one, no other is opened: a display
// node of the GPU bears the same major number as another card's.
func TestEveryDeviceButTheDriversKinds(t *testing.T) {
	d := testDriver(t, "plain")
	edits := &d.Spec.ContainerEdits
	edits.DeviceNodes = append(edits.DeviceNodes, &cdi.DeviceNode{Path: "/dev/dri/card0", Type: "c", Major: 226})
	in := `{"root":{"path":"rootfs"},"linux":{"resources":{"devices":[{"allow":true,"access":"rwm"}]},"devices":[
		{"path":"/dev/dri/card0","type":"c","major":226,"minor":0},{"path":"/dev/dri/card1","type":"c","major":226,"minor":1},
		{"path":"/dev/fuse","type":"c","major":10,"minor":229}]}}`
	g := testGrant("0")
	g.EveryDevice = true
	out, err := edit([]byte(in), d, g)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(out)
	if err != nil {
		t.Fatal(err)
	}
	var opened []int64
	for _, r := range s.rules {
		if r.allow && r.kind == "c" && r.minor == wildcard {
			opened = append(opened, r.major)
		}
	}
	if !slices.Equal(opened, []int64{10}) {
		t.Errorf("opened the kinds %v, want only 10", opened)
	}
}
