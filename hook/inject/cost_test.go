// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkRun measures the hook's work alone, without starting a process, in an
// image with as many libraries as a CUDA image has.
func BenchmarkRun(b *testing.B) {
	w := newWorld(b)
	for i := range 2000 {
		w.write(fmt.Sprintf("rootfs%s/libfiller%d.so.1", libDir, i), "")
	}
	w.library("rootfs/usr/local/cuda-12.9/compat/libcuda.so.535.1", "x")
	w.Options.LibraryPath = "/usr/local/nvidia/lib:/usr/local/nvidia/lib64:/usr/local/cuda/lib64"
	w.Times = 1
	once := w.hook()
	w.Times = b.N
	many := w.hook()
	if once.Error != "" || many.Error != "" {
		b.Fatal(once.Error, many.Error)
	}
	b.ReportMetric(float64(time.Duration(many.Nanoseconds).Microseconds())/float64(b.N), "us/run")
}
