// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"strings"
	"testing"
)

// A directory that another mount shows too, such as a volume of an engine, is
// refused as itself is; so are the host's processes, and a control group hierarchy that
// the container could write to, but not where its root user is nobody on the host.
func TestCheckOtherNames(t *testing.T) {
	h := &Host{
		Private: []string{"/run/gpushare"},
		Origin: func(p string) string {
			p = strings.Replace(p, "/volumes/gpushare", "/run/gpushare", 1)
			p = strings.Replace(p, "/volumes/proc", "/proc", 1)
			return strings.Replace(p, "/volumes/dev", "/dev", 1)
		},
		OpensCgroups: func(p string, recursive, readOnly, wholly bool) bool {
			return within(p, "/sys") && !wholly && (recursive || !readOnly)
		},
	}
	for mount, refused := range map[string]string{
		`"/volumes/gpushare","options":["rbind"]`:   "where limits are kept",
		`"/volumes/gpushare/c","options":["rbind"]`: "where limits are kept",
		`"/volumes/dev","options":["rbind"]`:        "it would show every GPU",
		`"/volumes/proc","options":["rbind","ro"]`:  "other tenants' files",
		`"/proc/1","options":["rbind"]`:             "other tenants' files",
		`"/proc/driver/nvidia","options":["rbind"]`: "",
		`"/processes","options":["rbind"]`:          "",
		`"/volumes/other","options":["rbind"]`:      "",
		`"/sys","options":["rbind","ro"]`:           "leave its control group",
		`"/sys","options":[]`:                       "leave its control group",
		`"/sys","options":["rbind","rro"]`:          "",
		`"/sys","options":["bind","ro"]`:            "",
		`"/sys","options":["bind","ro","rw"]`:       "leave its control group",
	} {
		s := patched(t, with(t, `{"type":"bind","destination":"/x","source":`+mount+`}`, "mounts"))
		_, err := s.Check(h, Override{})
		if (err == nil) != (refused == "") || (err != nil && !strings.Contains(err.Error(), refused)) {
			t.Errorf("%s: %v, want %q", mount, err, refused)
		}
	}
	s := patched(t, with(t, `{"type":"bind","destination":"/x","source":"/proc","options":["rbind"]}`, "mounts"))
	if _, err := s.Check(h, Override{HostNamespaces: true}); err != nil {
		t.Errorf("where the host's PID namespace is allowed: %v", err)
	}
	own := patched(t, func(o object) {
		with(t, `{"type":"bind","destination":"/x","source":"/sys","options":["rbind"]}`, "mounts")(o)
		with(t, `{"type":"user"}`, "linux", "namespaces")(o)
	})
	if _, err := own.Check(h, Override{}); err != nil {
		t.Errorf("in a user namespace of its own: %v", err)
	}
}
