// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

func TestHostMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		file, want string // want: "" for a file that is good
		bytes      uint64
	}{
		"none":             {"", "", 0},
		"lent":             {`host_memory = "64Gi"`, "", 64 << 30},
		"lent and capped":  {"host_memory = \"64Gi\"\n[cap.env]\nhost_memory = \"8Gi\"\n[cap.annotation]\nhost_memory = \"0B\"", "", 64 << 30},
		"in the default":   {"host_memory = \"8Gi\"\n[default_share]\nmemory = \"4Gi\"\nhost_memory = \"8Gi\"", "", 8 << 30},
		"no unit":          {`host_memory = "64"`, `line 1: host_memory "64": the unit is missing; write 64Gi or 64Mi`, 0},
		"percent":          {`host_memory = "50%"`, `not counted in parts of anything; write bytes like 8Gi`, 0},
		"cap without unit": {"[cap.env]\nhost_memory = \"8G\"", `line 2: cap.env.host_memory "8G": G is binary in docker`, 0},
		"more than lent":   {"[default_share]\nmemory = \"4Gi\"\nhost_memory = \"8Gi\"", `host_memory of this file lends 0 B to all containers together`, 0},
		"above a cap":      {"host_memory = \"8Gi\"\n[default_share]\nmemory = \"4Gi\"\nhost_memory = \"8Gi\"\n[cap.env]\nhost_memory = \"4Gi\"", `above cap.env, so who asks for nothing would have more than who asks: 8 GiB asked, 4 GiB allowed (cap.env.host_memory = "4Gi")`, 8 << 30},
		"misspelt":         {`host_memry = "8Gi"`, `did you mean host_memory?`, 0},
	} {
		c, problems := Check("x.toml", []byte(tc.file))
		n, _ := c.HostBytes()
		switch {
		case n != tc.bytes:
			t.Errorf("%s: %d bytes, want %d", name, n, tc.bytes)
		case tc.want == "" && len(problems) > 0, tc.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].String(), tc.want)):
			t.Errorf("%s: %v, want %q", name, problems, tc.want)
		}
	}
}
