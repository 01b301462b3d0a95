// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wrapper_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkAdded measures what the wrapper adds to one call: the time of a call
// through it, with a low-level runtime that does nothing, less the time of that
// runtime alone. The median is reported, in milliseconds.
func BenchmarkAdded(b *testing.B) {
	m := newMachine(b)
	m.write("true", "#!/bin/busybox true\n", 0o755)
	m.config(`runtimes = ["` + m.path("true") + `"]`)
	plain := m.bundle("plain", "true", nil)
	gpu := m.bundle("gpu", "true", asks)
	for name, args := range map[string][]string{
		"state":  {"state", "x"},
		"create": {"create", "--bundle", plain, "x"},
		"gpu":    {"create", "--bundle", gpu, "x"},
	} {
		b.Run(name, func(b *testing.B) {
			bare, wrapped := []time.Duration{}, []time.Duration{}
			for range b.N {
				bare = append(bare, timed(b, m.path("true"), args...))
				wrapped = append(wrapped, timed(b, m.wrap, args...))
			}
			b.ReportMetric(float64(median(wrapped)-median(bare))/1e6, "added-ms")
			b.ReportMetric(float64(median(bare))/1e6, "bare-ms")
		})
	}
}

func timed(b *testing.B, program string, args ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(program, args...)
	start := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
