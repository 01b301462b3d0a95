// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wrapper_test

import (
	"slices"
	"strings"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// privileged makes of a spec what --privileged --pid=host makes of it.
func privileged(spec map[string]any) {
	asks(spec)
	process := spec["process"].(map[string]any)
	capabilities := process["capabilities"].(map[string]any)
	for _, set := range []string{"bounding", "effective", "permitted"} {
		have, _ := capabilities[set].([]any)
		capabilities[set] = append(have, "CAP_SYS_ADMIN", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_MKNOD", "CAP_SYSLOG")
	}
	linux := spec["linux"].(map[string]any)
	linux["resources"] = map[string]any{"devices": []any{map[string]any{"allow": true, "access": "rwm"}}}
	linux["devices"] = []any{
		map[string]any{"path": "/dev/kmsg", "type": "c", "major": 1, "minor": 11},
		map[string]any{"path": "/dev/nvidia1", "type": "c", "major": 195, "minor": 1},
		map[string]any{"path": "/dev/nvidia-modeset", "type": "c", "major": 195, "minor": 254},
	}
	linux["namespaces"] = slices.DeleteFunc(linux["namespaces"].([]any), func(n any) bool { return n.(map[string]any)["type"] == "pid" })
}

// The administrator's file lets a privileged container in. The daemon is told of
// it, its other devices stay open, and of NVIDIA's only those that were granted.
func TestOverrides(t *testing.T) {
	m := newMachine(t)
	b := m.bundle("b", `cat `+libDir+`/libcuda.so.1; echo
head -c 1 /dev/kmsg >/dev/null && echo kmsg is open
mknod /dev/x c 195 1; cat /dev/x
cat /dev/nvidia0
ls /dev/nvidia1 /dev/nvidia-modeset`, privileged)
	refused(t, m, b, "create", "privileged GPU container refused", "[GS-PRIVILEGED]")
	m.config("", "[override]", "privileged = true")
	refused(t, m, b, "create", "host's pid namespace refused", "[GS-HOST-NS]")
	if claims, _ := m.daemon.seen(); len(claims) != 0 {
		t.Errorf("refused, and claimed: %+v", claims)
	}
	m.config("", "[override]", "privileged = true", "host_namespaces = true")
	r := m.runtime("run", "--bundle", b, m.id("privileged"))
	if !strings.Contains(r.stdout, "our libcuda\n") || !strings.Contains(r.stdout, "kmsg is open\n") || strings.Contains(r.stdout, "/dev/nvidia") {
		t.Errorf("exit %d\n%s\n%s", r.code, r.stdout, r.stderr)
	}
	// There is no driver behind these nodes: who may open one is told so.
	for _, want := range []string{"/dev/x': Operation not permitted", "/dev/nvidia0': No such device or address"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("%q is not in %q", want, r.stderr)
		}
	}
	claims, _ := m.daemon.seen()
	if want := []string{v1.ExposedPrivileged, v1.ExposedPID}; len(claims) != 1 || !slices.Equal(claims[0].Exposed, want) {
		t.Errorf("claims %+v, want one that is exposed by %q", claims, want)
	}
}

// A profile goes to the daemon as it was written, whoever wrote it.
func TestProfileIsPassedOn(t *testing.T) {
	m := newMachine(t)
	m.config("", "[default_share]", `profile = "1of4"`)
	for _, c := range []struct{ env, source, want string }{
		{"GPUSHARE_PROFILE=1of2", v1.SourceEnv, "1of2"},
		{"NVIDIA_VISIBLE_DEVICES=all", v1.SourceDefault, "1of4"},
	} {
		b := m.bundle("b"+c.want, "true", func(spec map[string]any) {
			setenv(spec, c.env)
			spec["linux"].(map[string]any)["devices"] = []any{map[string]any{"path": "/dev/nvidia1", "type": "c", "major": 195, "minor": 1}}
		})
		if r := m.runtime("run", "--bundle", b, m.id(c.want)); r.code != 0 {
			t.Errorf("%s: %+v", c.env, r)
		}
		claims, _ := m.daemon.seen()
		last := claims[len(claims)-1]
		if last.Request != (v1.Request{Profile: c.want}) || last.Source != c.source || len(last.Exposed) != 0 {
			t.Errorf("%s: claimed %+v", c.env, last)
		}
	}
}

// A file that is wrong anywhere starts no GPU container, and says where.
func TestBrokenPolicyFailsClosed(t *testing.T) {
	m := newMachine(t)
	b := m.bundle("b", "echo started", asks)
	for table, want := range map[string]string{
		"[cap.env]\nmemory = \"4\"":                                         `line 6: cap.env.memory "4": the unit is missing`,
		"[overide]\nprivileged = true":                                      `line 5: unknown key "overide": did you mean override?`,
		"[default_share]\nprofile = \"1of0\"":                               `default_share.profile "1of0" is no profile`,
		"[override]\nprivileged = \"yes\"":                                  "line 6",
		"default_share = { memory = \"1Gi\" }\n[cap.env]\nmemory = \"1Mi\"": "default_share is above cap.env",
	} {
		m.config("", table)
		refused(t, m, b, "create", want, "[GS-CONFIG]")
	}
}
