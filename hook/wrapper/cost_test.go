// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wrapper_test

import (
	"encoding/json"
	"fmt"
	"os"
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

// BenchmarkHook measures what gpushare-hook adds to the start of a container: the
// time of runc with the edited spec, less that with the same spec without the
// hook. The image has as many libraries and as large a cache as a CUDA image.
func BenchmarkHook(b *testing.B) {
	m := newMachine(b)
	bundle := m.bundle("b", "true", func(spec map[string]any) {
		setenv(spec, "GPUSHARE_MEMORY=8Gi", "LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64:/usr/local/cuda/lib64")
	})
	for i := range 2000 {
		m.write(fmt.Sprintf("b/rootfs%s/libfiller%d.so.1", libDir, i), "", 0o644)
	}
	if cache, err := os.ReadFile("/etc/ld.so.cache"); err == nil {
		m.write("b/rootfs/etc/ld.so.cache", string(cache), 0o644)
	}
	for _, name := range []string{"cuda-12.9/compat/libcuda.so.535.1", "cuda-12.9/lib64/libcudart.so.12", "cuda-13.0/compat/libcuda.so.580.1"} {
		m.write("b/rootfs/usr/local/"+name, "", 0o644)
	}
	if err := os.Symlink("cuda-13.0", m.path("b/rootfs/usr/local/cuda")); err != nil {
		b.Fatal(err)
	}
	if r := m.runtime("run", "--bundle", bundle, m.id("first")); r.code != 0 {
		b.Fatalf("%+v", r)
	}
	with := m.read("b/config.json")
	var spec map[string]any
	if err := json.Unmarshal([]byte(with), &spec); err != nil {
		b.Fatal(err)
	}
	if _, has := spec["hooks"]; !has {
		b.Fatal("the spec has no hook")
	}
	delete(spec, "hooks")
	m.json("without", spec)
	without := m.read("without")
	times, work := map[string][]time.Duration{}, map[string][]time.Duration{}
	for i := range b.N {
		for name, text := range map[string]string{"with": with, "without": without} {
			m.write("b/config.json", text, 0o644)
			wall, cpu := measured(b, "runc", "--root", m.path("root"), "run", "--bundle", bundle, m.id(fmt.Sprintf("%s%d", name, i)))
			times[name], work[name] = append(times[name], wall), append(work[name], cpu)
		}
	}
	b.ReportMetric(float64(median(times["with"])-median(times["without"]))/1e6, "added-ms")
	b.ReportMetric(float64(median(times["without"]))/1e6, "bare-ms")
	b.ReportMetric(float64(median(work["with"])-median(work["without"]))/1e6, "added-cpu-ms")
}

func timed(b *testing.B, program string, args ...string) time.Duration {
	b.Helper()
	wall, _ := measured(b, program, args...)
	return wall
}

// measured returns the wall time of a program, and the processor's time of it and
// of those that it waited for.
func measured(b *testing.B, program string, args ...string) (wall, cpu time.Duration) {
	b.Helper()
	cmd := exec.Command(program, args...)
	start := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
