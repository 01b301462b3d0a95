// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package mountinfo

import "testing"

func TestParse(t *testing.T) {
	for line, want := range map[string]Mount{
		"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n": {"98:0", "/mnt1", "/mnt2", "ext3", "/dev/root", "rw,errors=continue"},
		`36 35 0:5 / /a\040b\134c rw - tmpfs none rw`:                                      {"0:5", "/", `/a b\c`, "tmpfs", "none", "rw"},
		`36 35 0:5 / /a\04 rw - tmpfs none rw`:                                             {"0:5", "/", `/a\04`, "tmpfs", "none", "rw"},
		"":                                                                                 {}, "garbage": {}, "1 2 - ": {}, "36 35 98:0 / /m rw - ext3": {},
	} {
		if got, ok := Parse(line); got != want || ok != (want != Mount{}) {
			t.Errorf("%q: %+v, %v; want %+v", line, got, ok, want)
		}
	}
}
