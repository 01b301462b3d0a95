// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"errors"
	"strings"
	"testing"
)

// patched returns the docker spec without a request, changed by change.
func patched(t testing.TB, change func(o object)) *Spec {
	t.Helper()
	root, err := decode(readFile(t, "docker.in.json"))
	if err != nil {
		t.Fatal(err)
	}
	root["process"].(object).setTexts("env", []string{"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=all"})
	if change != nil {
		change(root)
	}
	data, err := encode(root)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// with appends a JSON entry to the array at a path of member names.
func with(t testing.TB, entry string, path ...string) func(object) {
	return func(o object) {
		t.Helper()
		for _, name := range path[:len(path)-1] {
			c, err := o.child(name)
			if err != nil {
				t.Fatal(err)
			}
			o = c
		}
		last := path[len(path)-1]
		list, err := o.list(last)
		if err != nil {
			t.Fatal(err)
		}
		v, err := decode([]byte(entry))
		if err != nil {
			t.Fatal(err)
		}
		o[last] = append(list, v)
	}
}

func TestReasons(t *testing.T) {
	device := func(e string) func(object) { return with(t, e, "linux", "devices") }
	rule := func(e string) func(object) { return with(t, e, "linux", "resources", "devices") }
	mount := func(e string) func(object) { return with(t, e, "mounts") }
	hook := func(stage, e string) func(object) { return with(t, e, "hooks", stage) }
	h := &Host{Majors: []int64{510}, Real: func(p string) string {
		if p == "/link-to-dev" {
			return "/dev"
		}
		return p
	}}
	for name, c := range map[string]struct {
		change func(object)
		want   string // empty: no GPU container
	}{
		"plain":                       {nil, ""},
		"node by name":                {device(`{"path":"/dev/nvidia0","type":"c","major":195,"minor":0}`), `device node "/dev/nvidia0"`},
		"node under another name":     {device(`{"path":"/dev/x","type":"c","major":195,"minor":0}`), `device node "/dev/x"`},
		"node of a dynamic major":     {device(`{"path":"/dev/x","type":"c","major":510,"minor":0}`), `device node "/dev/x"`},
		"block node of that number":   {device(`{"path":"/dev/x","type":"b","major":195,"minor":0}`), ""},
		"other node":                  {device(`{"path":"/dev/fuse","type":"c","major":10,"minor":229}`), ""},
		"everything":                  {rule(`{"allow":true,"access":"rwm"}`), "leave to open every device"},
		"everything by letter":        {rule(`{"allow":true,"type":"a","access":"rwm"}`), "leave to open every device"},
		"type a ignores its numbers":  {rule(`{"allow":true,"type":"a","major":1,"minor":3,"access":"m"}`), "leave to open every device"},
		"every character device":      {rule(`{"allow":true,"type":"c","access":"rw"}`), "leave to open every device"},
		"the same with minus one":     {rule(`{"allow":true,"type":"c","major":-1,"minor":-1}`), "leave to open every device"},
		"only making nodes":           {rule(`{"allow":true,"type":"c","access":"m"}`), ""},
		"every block device":          {rule(`{"allow":true,"type":"b","access":"rwm"}`), ""},
		"denied":                      {rule(`{"allow":false,"type":"c","major":195,"access":"rwm"}`), ""},
		"NVIDIA's major":              {rule(`{"allow":true,"type":"c","major":195,"access":"r"}`), "leave to open devices of major 195"},
		"NVIDIA's other major":        {rule(`{"allow":true,"type":"c","major":510,"minor":0}`), "leave to open devices of major 510"},
		"bind of /dev":                {mount(`{"type":"bind","source":"/dev","destination":"/dev","options":["rbind"]}`), `mount of "/dev"`},
		"bind of /dev, odd spelling":  {mount(`{"source":"/dev/../dev/","destination":"/x","options":["bind"]}`), `mount of "/dev/../dev/"`},
		"bind of a link to /dev":      {mount(`{"source":"/link-to-dev","destination":"/x","options":["rbind"]}`), `mount of "/link-to-dev"`},
		"devtmpfs":                    {mount(`{"type":"devtmpfs","source":"x","destination":"/y"}`), `mount of "x"`},
		"bind of a node":              {mount(`{"type":"bind","source":"/dev/nvidia0","destination":"/x","options":["bind"]}`), `mount of "/dev/nvidia0"`},
		"bind of another node":        {mount(`{"type":"bind","source":"/dev/shm","destination":"/dev/shm","options":["bind"]}`), ""},
		"driver library":              {mount(`{"type":"bind","source":"/usr/lib/libcuda.so.580.95","destination":"/x/libcuda.so.580.95","options":["bind"]}`), `mount of "/usr/lib/libcuda.so.580.95"`},
		"driver library, renamed":     {mount(`{"type":"bind","source":"/usr/lib/libcuda.so.580.95","destination":"/x/y","options":["bind"]}`), `mount of "/usr/lib/libcuda.so.580.95"`},
		"a tmpfs of that name":        {mount(`{"type":"tmpfs","source":"tmpfs","destination":"/x/libcuda.so.1"}`), ""},
		"a user's file":               {mount(`{"type":"bind","source":"/home/u/cuda.py","destination":"/cuda.py","options":["bind"]}`), ""},
		"NVIDIA's prestart hook":      {hook("prestart", `{"path":"/usr/bin/nvidia-container-runtime-hook","args":["x","prestart"]}`), `hook "/usr/bin/nvidia-container-runtime-hook"`},
		"its other name":              {hook("createRuntime", `{"path":"/usr/bin/nvidia-container-toolkit"}`), `hook "/usr/bin/nvidia-container-toolkit"`},
		"by the name that it is told": {hook("prestart", `{"path":"/bin/multi","args":["nvidia-container-runtime-hook"]}`), `hook "/bin/multi"`},
		"CDI hook":                    {hook("createContainer", `{"path":"/usr/bin/nvidia-cdi-hook","args":["nvidia-cdi-hook","update-ldcache"]}`), `hook "/usr/bin/nvidia-cdi-hook"`},
		"somebody's hook":             {hook("prestart", `{"path":"/usr/bin/site-hook","args":["site-hook","nvidia-cdi-hook-is-good"]}`), ""},
	} {
		s := patched(t, c.change)
		got := strings.Join(s.Reasons(Ask{}, h), "; ")
		if got != c.want {
			t.Errorf("%s: reasons %q, want %q", name, got, c.want)
		}
	}
	asks := Ask{Memory: "1Gi", Source: SourceAnnotation}
	if got := patched(t, nil).Reasons(asks, h); len(got) != 1 {
		t.Errorf("a request: reasons %q", got)
	}
	pause := patched(t, func(o object) { o["annotations"] = object{"io.kubernetes.cri.container-type": "sandbox"} })
	if got := pause.Reasons(asks, h); len(got) != 0 {
		t.Errorf("a pod's pause container: reasons %q", got)
	}
}

func TestCheck(t *testing.T) {
	h := &Host{Private: []string{"/run/gpushare", "/var/lib/gpushare"}, SameNamespace: func(kind, path string) bool { return path == "/proc/1/ns/"+kind }}
	capability := func(names ...string) func(object) {
		return func(o object) { o["process"].(object)["capabilities"].(object).setTexts("bounding", names) }
	}
	namespaces := func(list string) func(object) {
		return func(o object) {
			v, err := decode([]byte(`{"namespaces":` + list + `}`))
			if err != nil {
				t.Fatal(err)
			}
			o["linux"].(object)["namespaces"] = v["namespaces"]
		}
	}
	both := func(changes ...func(object)) func(object) {
		return func(o object) {
			for _, c := range changes {
				c(o)
			}
		}
	}
	bind := func(source string) func(object) {
		return with(t, `{"type":"bind","source":"`+source+`","destination":"/x","options":["rbind"]}`, "mounts")
	}
	env := func(v string) func(object) {
		return func(o object) { o["process"].(object).setTexts("env", []string{"PATH=/bin", v}) }
	}
	all := with(t, `{"allow":true,"access":"rwm"}`, "linux", "resources", "devices")
	for name, c := range map[string]struct {
		change func(object)
		code   string
		want   string
	}{
		"plain":                   {nil, "", ""},
		"every device":            {all, "", ""},
		"privileged":              {both(all, capability("CAP_SYS_ADMIN", "CAP_SYS_MODULE", "CAP_SYS_RAWIO")), CodePrivileged, "GPUSHARE_MEMORY=8Gi"},
		"CAP_sys_admin":           {capability("CAP_sys_admin"), CodeCapability, "leave out --cap-add SYS_ADMIN"},
		"CAP_SYS_ADMIN":           {capability("CAP_SYS_ADMIN"), CodeCapability, "leave out --cap-add SYS_ADMIN"},
		"CAP_SYS_MODULE":          {capability("CAP_SYS_MODULE"), CodeCapability, "leave out --cap-add SYS_MODULE"},
		"CAP_SYS_RAWIO":           {capability("CAP_SYS_RAWIO"), CodeCapability, "leave out --cap-add SYS_RAWIO"},
		"CAP_SYS_ADMIN, userns":   {both(capability("CAP_SYS_ADMIN"), namespaces(`[{"type":"user"},{"type":"mount"},{"type":"pid"},{"type":"ipc"}]`)), "", ""},
		"host pid":                {namespaces(`[{"type":"mount"},{"type":"ipc"}]`), CodeNamespace, "--pid=host"},
		"host ipc":                {namespaces(`[{"type":"mount"},{"type":"pid"}]`), CodeNamespace, "--ipc=host"},
		"host pid by path":        {namespaces(`[{"type":"mount"},{"type":"pid","path":"/proc/1/ns/pid"},{"type":"ipc"}]`), CodeNamespace, "--pid=host"},
		"another's pid namespace": {namespaces(`[{"type":"mount"},{"type":"pid","path":"/proc/99/ns/pid"},{"type":"ipc","path":"/proc/99/ns/ipc"}]`), "", ""},
		"host network":            {namespaces(`[{"type":"mount"},{"type":"pid"},{"type":"ipc"}]`), "", ""},
		"no mount namespace":      {namespaces(`[{"type":"pid"},{"type":"ipc"}]`), CodeNamespace, "mount namespace"},
		"bind of /dev":            {bind("/dev"), CodeBind, "/dev"},
		"bind of /":               {bind("/"), CodeBind, "/run/gpushare"},
		"bind of /run":            {bind("/run"), CodeBind, "/run/gpushare"},
		"bind of our directory":   {bind("/run/gpushare"), CodeBind, "/run/gpushare"},
		"bind of a neighbour's":   {bind("/run/gpushare/c/other"), CodeBind, "/run/gpushare"},
		"bind of lasting state":   {bind("/var/lib/gpushare"), CodeBind, "/var/lib/gpushare"},
		"bind beside it":          {bind("/run/gpushare-not"), "", ""},
		"bind of a socket":        {bind("/run/docker.sock"), "", ""},
		"the real driver first":   {env("LD_PRELOAD=/run/gpushare/driver/cuda.real"), CodeLoader, "LD_PRELOAD"},
		"the same, odd spelling":  {env("LD_PRELOAD=/a.so:/proc/self/root/run/./gpushare//driver/nvml.real"), CodeLoader, "LD_PRELOAD"},
		"the same, relative":      {env("LD_PRELOAD=x.so ./cuda.real"), CodeLoader, "LD_PRELOAD"},
		"the same as auditor":     {env("LD_AUDIT=/run/gpushare/driver/cuda.real"), CodeLoader, "LD_AUDIT"},
		"the driver's directory":  {env("LD_LIBRARY_PATH=/usr/local/cuda/lib64:/run/gpushare/driver"), CodeLoader, "LD_LIBRARY_PATH"},
		"an allocator of its own": {env("LD_PRELOAD=/usr/lib/libjemalloc.so.2"), "", ""},
		"a like name":             {env("LD_LIBRARY_PATH=/opt/run/gpushare-tools/lib"), "", ""},
	} {
		exposed, err := patched(t, c.change).Check(h, Override{})
		var r *Refusal
		switch {
		case c.code == "":
			if err != nil || len(exposed) > 0 {
				t.Errorf("%s: %q, %v", name, exposed, err)
			}
		case !errors.As(err, &r) || r.Code != c.code || !strings.Contains(r.Message, c.want):
			t.Errorf("%s: %v; want code %s and %q", name, err, c.code, c.want)
		}
	}
}

// An override lets in what it names, says so, and nothing else.
func TestCheckOverrides(t *testing.T) {
	h := &Host{Private: []string{"/run/gpushare"}}
	spec := func(capabilities []string, namespaces, mount, rule string) *Spec {
		return patched(t, func(o object) {
			o["process"].(object)["capabilities"].(object).setTexts("bounding", capabilities)
			v, err := decode([]byte(`{"namespaces":` + namespaces + `}`))
			if err != nil {
				t.Fatal(err)
			}
			o["linux"].(object)["namespaces"] = v["namespaces"]
			if mount != "" {
				with(t, mount, "mounts")(o)
			}
			if rule != "" {
				with(t, rule, "linux", "resources", "devices")(o)
			}
		})
	}
	const (
		own  = `[{"type":"mount"},{"type":"pid"},{"type":"ipc"}]`
		host = `[{"type":"mount"}]`
		all  = `{"allow":true,"access":"rwm"}`
		dev  = `{"type":"bind","source":"/dev","destination":"/dev","options":["rbind"]}`
		run  = `{"type":"bind","source":"/run","destination":"/x","options":["rbind"]}`
	)
	three := []string{"CAP_SYS_ADMIN", "CAP_SYS_MODULE", "CAP_SYS_RAWIO"}
	both := Override{Privileged: true, HostNamespaces: true}
	for name, c := range map[string]struct {
		spec     *Spec
		override Override
		exposed  string
		code     string
	}{
		"nothing to allow":              {spec(nil, own, "", ""), both, "", ""},
		"privileged":                    {spec(three, own, "", all), Override{Privileged: true}, "privileged", ""},
		"privileged, its rules gone":    {spec(three, own, "", ""), Override{Privileged: true}, "privileged", ""},
		"privileged, the other allowed": {spec(three, own, "", all), Override{HostNamespaces: true}, "", CodePrivileged},
		"privileged in host's":          {spec(three, host, "", all), both, "privileged; host PID namespace; host IPC namespace", ""},
		"privileged in host's, half":    {spec(three, host, "", all), Override{Privileged: true}, "", CodeNamespace},
		"privileged with /dev":          {spec(three, own, dev, all), Override{Privileged: true}, "privileged", ""},
		"/dev alone":                    {spec(nil, own, dev, ""), both, "", CodeBind},
		"privileged with our directory": {spec(three, own, run, all), both, "", CodeBind},
		"one capability":                {spec(three[:1], own, "", all), both, "", CodeCapability},
		"two capabilities":              {spec(three[1:], own, "", ""), both, "", CodeCapability},
		"every device":                  {spec(nil, own, "", all), both, "", ""},
		"host's":                        {spec(nil, host, "", ""), Override{HostNamespaces: true}, "host PID namespace; host IPC namespace", ""},
		"host's PID":                    {spec(nil, `[{"type":"mount"},{"type":"ipc"}]`, "", ""), Override{HostNamespaces: true}, "host PID namespace", ""},
		"host's mounts":                 {spec(nil, `[{"type":"pid"},{"type":"ipc"}]`, "", ""), both, "", CodeNamespace},
	} {
		exposed, err := c.spec.Check(h, c.override)
		var r *Refusal
		switch {
		case c.code != "":
			if !errors.As(err, &r) || r.Code != c.code || len(exposed) > 0 {
				t.Errorf("%s: %q, %v; want code %s", name, exposed, err, c.code)
			}
		case err != nil || strings.Join(exposed, "; ") != c.exposed:
			t.Errorf("%s: %q, %v; want %q", name, exposed, err, c.exposed)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"empty":              {``, "EOF"},
		"no object":          {`[]`, "not a JSON object"},
		"cut off":            {`{"process":{`, "EOF"},
		"two documents":      {`{} {}`, "follows"},
		"name twice":         {`{"linux":{"devices":[]},"linux":{}}`, `"linux" occurs twice`},
		"other case":         {`{"Linux":{"devices":[{"path":"/dev/nvidia0"}]}}`, `"Linux"`},
		"other case, Kelvin": {`{"hoo` + "\u212a" + `s":{}}`, "where the specification has"},
		"case in a mount":    {`{"mounts":[{"Source":"/dev"}]}`, `"Source"`},
		"case in a rule":     {`{"linux":{"resources":{"devices":[{"Allow":true}]}}}`, `"Allow"`},
		"wrong type":         {`{"mounts":{}}`, `"mounts" is not an array`},
		"wrong entry":        {`{"mounts":[1]}`, `"mounts[]" is not an object`},
		"env of numbers":     {`{"process":{"env":[1]}}`, `"env[]" is not a string`},
		"annotation":         {`{"annotations":{"a":1}}`, `"a" is not a string`},
		"fraction":           {`{"linux":{"devices":[{"path":"/x","major":1.5}]}}`, `"major" is not an integer`},
		"many":               {`{"a":[` + strings.Repeat("1,", maxValues) + `1]}`, "more than 1048576 values"},
		"deep":               {strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat(`}`, 200), "nested deeper"},
	} {
		_, err := Parse([]byte(c.in))
		var r *Refusal
		if !errors.As(err, &r) || r.Code != CodeSpec || !strings.Contains(r.Message, c.want) {
			t.Errorf("%s: %v; want %s with %q", name, err, CodeSpec, c.want)
		}
	}
}
