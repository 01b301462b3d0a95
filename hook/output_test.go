// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"encoding/json"
	"testing"
)

// A container cannot choose the file that crun, as root, writes to what our hook
// says of its image; we name one, or none.
func TestHookOutput(t *testing.T) {
	const spec = `{"ociVersion":"1.0.2","process":{"args":["sh"],"cwd":"/"},"root":{"path":"rootfs"},
		"linux":{"namespaces":[{"type":"mount"},{"type":"pid"},{"type":"ipc"}]},
		"annotations":{"run.oci.hooks.stderr":"/root/.ssh/authorized_keys","run.oci.hooks.stdout":"/etc/cron.d/x","other":"stays"}}`
	for _, file := range []string{"", "/dev/stderr"} {
		g := testGrant("0")
		g.HookErrors = file
		out, err := edit([]byte(spec), testDriver(t, "plain"), g)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Annotations map[string]string }
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		if e := got.Annotations["run.oci.hooks.stderr"]; e != file {
			t.Errorf("stderr of hooks goes to %q, want %q", e, file)
		}
		if _, has := got.Annotations["run.oci.hooks.stdout"]; has || got.Annotations["other"] != "stays" {
			t.Errorf("annotations: %v", got.Annotations)
		}
	}
}
