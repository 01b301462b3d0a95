// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"run_dir", "state_dir", "default_share", "compat", "X_MEMORY", "X_COMPUTE", "X_COMPUTE_MAX"}
	for in, want := range map[string]string{
		"run_dri": "run_dir", "rundir": "run_dir", "run-dir": "run_dir", "RUN_DIR": "run_dir", "default_shares": "default_share",
		"x_mem": "X_MEMORY", "X_MEMROY": "X_MEMORY", "X_COMPUTE-MAX": "X_COMPUTE_MAX", "comp": "compat",
		"": "", "x": "", "X_DISABLE": "", "something_else": "", strings.Repeat("run_dir", 100): "",
	} {
		if got := Nearest(in, known, "X_"); got != want {
			t.Errorf("%.40q: %q, want %q", in, got, want)
		}
	}
	if got := Nearest("a", nil); got != "" {
		t.Errorf("no candidates: %q", got)
	}
}
