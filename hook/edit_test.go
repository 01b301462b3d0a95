// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdi "tags.cncf.io/container-device-interface/specs-go"

	"github.com/gpushare/gpushare/hook/inject"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func testDriver(t testing.TB, name string) *Driver {
	t.Helper()
	var spec cdi.Spec
	if err := json.Unmarshal(readFile(t, "driver-"+name+".json"), &spec); err != nil {
		t.Fatal(err)
	}
	return &Driver{Spec: &spec}
}

func testGrant(devices ...string) *Grant {
	return &Grant{
		ID: "c1", Directory: "/run/gpushare/c/c1", Devices: devices,
		CUDA: "/usr/lib/gpushare/v1/libcuda.so.1", NVML: "/usr/lib/gpushare/v1/libnvidia-ml.so.1",
		Extra: []Bind{{"/opt/sim/run", "/run/driver-own"}},
		Hook:  "/usr/bin/gpushare-hook", Compat: "route", Bundle: "/bundles/c1",
	}
}

var testHost = &Host{Majors: []int64{510}, Private: []string{"/run/gpushare", "/var/lib/gpushare"}}

func edit(data []byte, d *Driver, g *Grant) ([]byte, error) {
	s, err := Parse(data)
	if err != nil {
		return nil, err
	}
	if err := s.Edit(d, g, testHost); err != nil {
		return nil, err
	}
	return s.Bytes()
}

// goldens maps each case to the driver spec that it is edited with.
var goldens = map[string]string{
	"docker": "plain", "docker-hooks": "hooks", "unknown-fields": "plain", "gpus-all": "hooks",
	"edits-present": "hooks", "allow-all": "plain", "kubernetes": "hooks", "minimal": "plain", "privileged": "plain",
}

// goldenGrant is what each case is edited for.
func goldenGrant(name string, devices ...string) *Grant {
	g := testGrant(devices...)
	g.EveryDevice = name == "privileged"
	return g
}

func TestEditGolden(t *testing.T) {
	for name, driver := range goldens {
		t.Run(name, func(t *testing.T) {
			in := readFile(t, name+".in.json")
			out, err := edit(in, testDriver(t, driver), goldenGrant(name, "0"))
			if err != nil {
				t.Fatal(err)
			}
			checkEdited(t, out, 0)
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, out, "", " "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			golden := filepath.Join("testdata", name+".out.json")
			if *update {
				if err := os.WriteFile(golden, pretty.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := readFile(t, name+".out.json"); !bytes.Equal(pretty.Bytes(), want) {
				t.Errorf("differs from %s; run with -update and look at the difference", golden)
			}
		})
	}
}

// An edited spec, edited again for another claim, is what the original gives.
func TestEditOfEdited(t *testing.T) {
	for name, driver := range goldens {
		in, d := readFile(t, name+".in.json"), testDriver(t, driver)
		want, err := edit(in, d, goldenGrant(name, "0"))
		if err != nil {
			t.Fatal(err)
		}
		other := goldenGrant(name, "0", "1")
		other.ID, other.Directory, other.Extra = "c2", "/run/gpushare/c/c2", testGrant().Extra
		between, err := edit(in, d, other)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(between, want) {
			t.Fatalf("%s: two claims give the same spec", name)
		}
		got, err := edit(between, d, goldenGrant(name, "0"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: edited twice\n%s\nedited once\n%s", name, got, want)
		}
		s, err := Parse(got)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(s.annotations[ClaimAnnotation], "c1 sha256:") {
			t.Errorf("%s: edited, but bears no mark", name)
		}
	}
}

// Every object of the spec gets a member that nobody knows; all must survive.
func TestUnknownMembersSurvive(t *testing.T) {
	for _, name := range []string{"docker", "unknown-fields", "kubernetes", "minimal"} {
		root, err := decode(readFile(t, name+".in.json"))
		if err != nil {
			t.Fatal(err)
		}
		var marks []string
		mark(root, &marks)
		in, err := encode(root)
		if err != nil {
			t.Fatal(err)
		}
		out, err := edit(in, testDriver(t, goldens[name]), testGrant("0"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range marks {
			if !bytes.Contains(out, []byte(m)) {
				t.Errorf("%s: %s is lost", name, m)
			}
		}
		if len(marks) < 4 {
			t.Errorf("%s: only %d members were tried", name, len(marks))
		}
	}
}

func mark(v any, marks *[]string) {
	switch v := v.(type) {
	case object:
		for _, member := range v {
			mark(member, marks)
		}
		m := fmt.Sprintf(`"x-%d":"y"`, len(*marks))
		v[fmt.Sprintf("x-%d", len(*marks))] = "y"
		*marks = append(*marks, m)
	case []any:
		for _, member := range v {
			mark(member, marks)
		}
	}
}

// The hook is told what the loader will be told.
func TestHookArguments(t *testing.T) {
	in := `{"root":{"path":"rootfs"},"process":{"cwd":"/w","args":["run","--root=/"],"env":["LD_LIBRARY_PATH=/a","PATH=/p","LD_LIBRARY_PATH=/b:/c","LD_PRELOAD=/d.so","LD_LIBRARY_PATH="]}}`
	out, err := edit([]byte(in), testDriver(t, "plain"), testGrant("0"))
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Hooks struct{ CreateContainer []struct{ Args []string } }
	}
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Hooks.CreateContainer) != 1 {
		t.Fatalf("hooks %+v", s.Hooks)
	}
	got, err := inject.Parse(s.Hooks.CreateContainer[0].Args[1:])
	if err != nil {
		t.Fatal(err)
	}
	want := inject.Options{
		Root: "/bundles/c1/rootfs", CUDA: testGrant().CUDA, NVML: testGrant().NVML, CUDAReal: "/opt/sim/lib/libcuda.so.999.1",
		Compat: "route", LibraryPath: "/b:/c:/a", Preload: "/d.so", Arg0: "run", SearchPath: "/p", WorkDir: "/w",
	}
	if *got != want {
		t.Errorf("got %+v\nwant %+v", *got, want)
	}
	for name, g := range map[string]func(*Grant){
		"no hook":         func(g *Grant) { g.Hook = "" },
		"another program": func(g *Grant) { g.Hook = "/bin/true" },
		"relative bundle": func(g *Grant) { g.Bundle = "b" },
	} {
		grant := testGrant("0")
		g(grant)
		if _, err := edit([]byte(in), testDriver(t, "plain"), grant); err == nil {
			t.Errorf("%s: edited", name)
		}
	}
}

func TestNumbersSurvive(t *testing.T) {
	in := strings.Replace(string(readFile(t, "minimal.in.json")), `"ociVersion"`,
		`"x": [12345678901234567890.10, 1e400, -0, 0.1e-7], "ociVersion"`, 1)
	out, err := edit([]byte(in), testDriver(t, "plain"), testGrant("0"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out, []byte(`[12345678901234567890.10,1e400,-0,0.1e-7]`)) {
		t.Errorf("numbers changed: %s", out)
	}
}

// forbidden are the files of the test drivers that must never go in.
var forbidden = func() map[string]bool {
	files := map[string]bool{}
	for _, name := range []string{"opencl", "glcore", "encode", "fbc", "cfg", "allocator", "glsi"} {
		files["libnvidia-"+name+".so.580.95"] = true
	}
	for _, name := range []string{"EGL_nvidia", "GLX_nvidia", "nvcuvid", "nvoptix", "vdpau_nvidia"} {
		files["lib"+name+".so.580.95"] = true
	}
	for _, name := range []string{"debugdump", "persistenced", "cuda-mps-control"} {
		files["nvidia-"+name] = true
	}
	return files
}()

// checkEdited reads an edited spec with nothing of the editor's own and says
// what it allows that it must not. gpu is the minor of the one granted GPU.
func checkEdited(t testing.TB, data []byte, gpu int64) {
	t.Helper()
	type dev struct {
		Allow        bool
		Path, Type   string
		Major, Minor *int64
		Access       string
	}
	type hookEntry struct {
		Path      string
		Args, Env []string
		Timeout   int
	}
	var s struct {
		Process struct{ Env []string }
		Mounts  []struct {
			Destination, Source, Type string
			Options                   []string
		}
		Hooks map[string]json.RawMessage
		Linux struct {
			Devices   []dev
			Resources struct{ Devices []dev }
		}
	}
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Process.Env); n == 0 || s.Process.Env[n-1] != "NVIDIA_VISIBLE_DEVICES=void" {
		t.Errorf("the last variable is not NVIDIA_VISIBLE_DEVICES=void: %q", s.Process.Env)
	}
	seen := map[string]string{} // destination to source, the last one counts
	for _, m := range s.Mounts {
		for covered := range seen {
			if within(covered, m.Destination) && m.Destination != ContainerDir {
				delete(seen, covered)
			}
		}
		seen[m.Destination] = m.Source
		ours := within(m.Destination, ContainerDir) || within(m.Source, testGrant().Directory) || m.Source == testGrant().CUDA || m.Source == testGrant().NVML
		if ours && !slices.Contains(m.Options, "ro") && m.Destination != ContainerDir+"/ledger" {
			t.Errorf("mount at %s can be written", m.Destination)
		}
		base := m.Destination[strings.LastIndex(m.Destination, "/")+1:]
		if forbidden[base] {
			t.Errorf("mount at %s is not of the compute type", m.Destination)
		}
		if strings.HasPrefix(base, "libcuda.so") && m.Source != testGrant().CUDA {
			t.Errorf("mount at %s is %s, not our library", m.Destination, m.Source)
		}
		if strings.HasPrefix(base, "libnvidia-ml.so") && m.Source != testGrant().NVML {
			t.Errorf("mount at %s is %s, not our library", m.Destination, m.Source)
		}
	}
	for _, needed := range []string{ContainerDir, ContainerDir + "/ledger", ContainerDir + "/driver/cuda.real", ContainerDir + "/driver/nvml.real"} {
		if seen[needed] == "" {
			t.Errorf("nothing is mounted at %s, or something covers it", needed)
		}
	}
	check := func(what string, d dev) {
		nvidia := strings.HasPrefix(d.Path, "/dev/nvidia") || d.Major != nil && *d.Major == 195
		if !nvidia {
			return
		}
		if d.Major == nil || d.Minor == nil || (*d.Minor != gpu && *d.Minor != 255 && *d.Minor != 250 && *d.Major == 195) {
			t.Errorf("%s %+v was not granted", what, d)
		}
	}
	for _, d := range s.Linux.Devices {
		check("device", d)
	}
	for _, r := range s.Linux.Resources.Devices {
		if !r.Allow {
			continue
		}
		check("rule", r)
		open := r.Access == "" || strings.ContainsAny(r.Access, "rw")
		if r.Type == "" || r.Type == "a" || (r.Type == "c" && open && (r.Major == nil || *r.Major < 0)) {
			t.Errorf("a rule allows everything: %+v", r)
		}
	}
	var last hookEntry
	for stage, raw := range s.Hooks {
		var list []hookEntry
		if !slices.Contains(stages, stage) || json.Unmarshal(raw, &list) != nil {
			continue // no runtime runs it
		}
		if stage == createContainer && len(list) > 0 {
			last = list[len(list)-1]
		}
		for _, h := range list {
			if strings.Contains(h.Path, "nvidia") {
				if stage != createContainer || len(h.Env) == 0 || h.Timeout <= 0 || slices.Contains(h.Args, "enable-cuda-compat") {
					t.Errorf("%s hook %+v", stage, h)
				}
				for _, v := range h.Env {
					if strings.HasPrefix(v, "LD_") {
						t.Errorf("hook with %s", v)
					}
				}
			}
			if h.Path == testGrant().Hook && (stage != createContainer || len(h.Args) < 2 || !strings.HasPrefix(h.Args[1], "--root=/")) {
				t.Errorf("%s hook %+v", stage, h)
			}
		}
	}
	if last.Path != testGrant().Hook || !slices.Equal(last.Env, []string{hookPath}) || last.Timeout <= 0 {
		t.Errorf("the last createContainer hook is not ours, or not as it must be: %+v", last)
	}
}
