// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"fmt"
	"strings"
)

// contextLines stand around a change in a diff.
const contextLines = 3

// Diff returns the difference between two contents of the file called name as a
// unified diff; empty if there is none. What lies between the first and the last
// changed line is shown as one change, which for one inserted or removed key is
// exact. A nil content is a file that is not there.
func Diff(name string, before, after []byte) string {
	if bytes.Equal(before, after) && (before == nil) == (after == nil) {
		return ""
	}
	from, to := "a"+name, "b"+name
	if before == nil {
		from = "/dev/null"
	}
	if after == nil {
		to = "/dev/null"
	}
	a, b := lines(before), lines(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	begin := max(0, head-contextLines)
	end := min(tail, contextLines)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", from, to)
	fmt.Fprintf(&out, "@@ -%s +%s @@\n", span(begin, len(a)-tail+end), span(begin, len(b)-tail+end))
	for _, l := range a[begin:head] {
		write(&out, ' ', l)
	}
	for _, l := range a[head : len(a)-tail] {
		write(&out, '-', l)
	}
	for _, l := range b[head : len(b)-tail] {
		write(&out, '+', l)
	}
	for _, l := range a[len(a)-tail : len(a)-tail+end] {
		write(&out, ' ', l)
	}
	return out.String()
}

// span is a range of lines as diffs count them.
func span(begin, end int) string {
	if begin == end {
		return fmt.Sprintf("%d,0", begin)
	}
	return fmt.Sprintf("%d,%d", begin+1, end-begin)
}

func lines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
}

func write(out *strings.Builder, mark byte, line string) {
	out.WriteByte(mark)
	out.WriteString(strings.TrimSuffix(line, "\n"))
	out.WriteByte('\n')
}
