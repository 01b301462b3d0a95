// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package api knows the names that NVIDIA's driver libraries export, which
// driver has which of them, and the numbers and names of their errors.
//
// cuda-driver.tsv and nvml.tsv list the names of CUDA 11.0 to 13.5 with the
// release that has them first; docs/simgpu/drivers.md says from what they were
// read. cudart-lookups.tsv is what CUDA runtimes ask cuGetProcAddress for.
package api

import (
	_ "embed" // the tables
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed cuda-driver.tsv
var cudaTable string

//go:embed nvml.tsv
var nvmlTable string

// Name is one exported name.
type Name struct {
	Symbol string
	NVML   bool
	// Base is the name by which cuGetProcAddress knows it; "" if it does not.
	Base string
	// First and Last are the releases, 1000 * major + 10 * minor, that were
	// seen to have it.
	First, Last int
	// Since is the first version for which cuGetProcAddress gives it; 0 if
	// that is not known.
	Since     int
	PerThread bool
}

// Data tells whether the name is of a variable: the debugger's, in libcuda.
func (n Name) Data() bool {
	return strings.HasPrefix(n.Symbol, "cudbg") && !slices.Contains(debuggerCalls, n.Symbol)
}

// debuggerCalls are the functions among the names with which cuda-gdb works.
var debuggerCalls = []string{
	"cudbgApiAttach", "cudbgApiDetach", "cudbgApiInit", "cudbgGetAPI", "cudbgGetAPIVersion", "cudbgMain",
	"cudbgReportDriverApiError", "cudbgReportDriverInternalError",
}

const (
	newestRead = 12050 // the newest library that was read: what it has and no header shows is taken to stay
	never      = "cuEventCreateFromEGLSync"
)

// In tells whether a driver of a CUDA release exports the name. The rule is
// that of the libraries 470 to 555: what cuGetProcAddress gives for the
// release's version is there, and a name that left the header of NVML is gone;
// one name of the header is in none of them.
func (n Name) In(release int) bool {
	switch {
	case n.Symbol == never:
		return false
	case n.Since > 0:
		return n.Since <= release
	case n.First > release && !(n.First == firstRead && !n.NVML):
		return false
	}
	return n.Last >= release || n.Last == newestRead
}

// firstRead is the oldest release whose list of CUDA names was read: what it
// has and no version dates is taken to be older.
const firstRead = 11040

var parsed = sync.OnceValue(func() (out struct{ cuda, nvml []Name }) {
	for _, f := range rows(cudaTable) {
		n := Name{Symbol: f[0], First: release(f[2]), Last: release(f[3]), PerThread: f[5] == "1"}
		if f[1] != "-" {
			n.Base = f[1]
		}
		n.Since, _ = strconv.Atoi(f[4])
		out.cuda = append(out.cuda, n)
	}
	for _, f := range rows(nvmlTable) {
		out.nvml = append(out.nvml, Name{Symbol: f[0], NVML: true, First: release(f[1]), Last: release(f[2])})
	}
	return out
})

// CUDA returns the names of libcuda.so.1, in a fixed order.
func CUDA() []Name { return parsed().cuda }

// NVML returns the names of libnvidia-ml.so.1, in a fixed order.
func NVML() []Name { return parsed().nvml }

func rows(table string) (out [][]string) {
	for _, l := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		out = append(out, strings.Split(l, "\t"))
	}
	return out
}

// release turns "12.4" into 12040.
func release(s string) int {
	var major, minor int
	if _, err := fmt.Sscanf(s, "%d.%d", &major, &minor); err != nil {
		panic(fmt.Sprintf("table of names: release %q: %v", s, err))
	}
	return 1000*major + 10*minor
}
