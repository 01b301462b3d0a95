// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package mountinfo reads lines of /proc/PID/mountinfo, which proc_pid_mountinfo(5)
// describes. It opens no file: how much is read of which is its callers' to decide.
package mountinfo

import (
	"strconv"
	"strings"
)

// Mount is one line: Root, within the file system of that device, is mounted at Point.
type Mount struct {
	Device       string // major:minor
	Root, Point  string
	Kind, Source string // of the file system
	Options      string // of the file system, not of the mount
}

// Parse reads one line; false if it is none.
func Parse(line string) (Mount, bool) {
	head, tail, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
	h, t := strings.Fields(head), strings.Fields(tail)
	if !ok || len(h) < 6 || len(t) < 3 {
		return Mount{}, false
	}
	return Mount{
		Device: h[2], Root: unescape(h[3]), Point: unescape(h[4]),
		Kind: t[0], Source: t[1], Options: t[2],
	}, true
}

// unescape undoes the kernel's octal escapes: \040 is a blank.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
