// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package create

import (
	"strings"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/hook"
)

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"0123abc": true, "a_b+c-d.e": true, "": false, ".": false, "..": false, "a/b": false,
		"a b": false, "a\nb": false, "ä": false, strings.Repeat("x", 256): false,
	} {
		if got := ValidID(id); got != want {
			t.Errorf("%q: %v, want %v", id, got, want)
		}
	}
}

// The editor and the API name the same things without knowing of each other.
func TestNamesAreTheAPIs(t *testing.T) {
	for ours, theirs := range map[string]string{
		hook.SourceEnv: v1.SourceEnv, hook.SourceAnnotation: v1.SourceAnnotation, hook.SourceBoth: v1.SourceBoth, hook.SourceDefault: v1.SourceDefault,
		hook.ExposedPrivileged: v1.ExposedPrivileged, hook.ExposedPID: v1.ExposedPID, hook.ExposedIPC: v1.ExposedIPC,
	} {
		if ours != theirs {
			t.Errorf("%q here, %q in the API", ours, theirs)
		}
	}
}
