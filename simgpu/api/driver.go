// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Driver is a driver whose surface can be simulated: the names that its
// libraries export, and the versions that they report.
type Driver struct {
	Branch  string // by which it is chosen, and the directory of its libraries
	Version string // as nvmlSystemGetDriverVersion says it
	CUDA    int    // as cuDriverGetVersion says it
}

// Drivers are all of them, oldest first. The versions are real ones of their
// branches. No driver that reports CUDA 13.5 is known publicly: "newest" has
// the names of the 13.5 headers and calls itself by the newest version known,
// which itself says 13.4.
var Drivers = []Driver{
	{"450", "450.248.02", 11000},
	{"470", "470.256.02", 11040},
	{"510", "510.108.03", 11060},
	{"525", "525.147.05", 12000},
	{"535", "535.261.03", 12020},
	{"550", "550.163.01", 12040},
	{"555", "555.58.02", 12050},
	{"570", "570.172.08", 12080},
	Default,
	{"580", "580.95.05", 13000},
	{"newest", "615.71.09", 13050},
}

// Default is the driver that is simulated where none is named.
var Default = Driver{"575", "575.57.08", 12090}

// FindDriver returns the driver of a branch or a full version; "" is the default.
func FindDriver(s string) (Driver, error) {
	if s == "" {
		return Default, nil
	}
	var known []string
	for _, d := range Drivers {
		if s == d.Branch || s == d.Version {
			return d, nil
		}
		known = append(known, d.Branch)
	}
	return Driver{}, fmt.Errorf("driver %q: want one of %s", s, strings.Join(known, ", "))
}

// LibDir returns the directory of the driver's libraries, where built is that of
// the default's.
func (d Driver) LibDir(built string) string {
	if d.Branch == Default.Branch {
		return built
	}
	return filepath.Join(built, d.Branch)
}

// NVMLVersion is what nvmlSystemGetNVMLVersion says: the major version of CUDA
// before the driver's.
func (d Driver) NVMLVersion() string { return fmt.Sprintf("%d.%s", d.CUDA/1000, d.Version) }

// Names returns what the driver's two libraries export.
func (d Driver) Names() (cuda, nvml []string) {
	for _, n := range CUDA() {
		if n.In(d.CUDA) {
			cuda = append(cuda, n.Symbol)
		}
	}
	for _, n := range NVML() {
		if n.In(d.CUDA) {
			nvml = append(nvml, n.Symbol)
		}
	}
	return cuda, nvml
}

// Errors returns the numbers of the results of one interface by their names.
func Errors(nvml bool) map[string]int32 {
	if nvml {
		return nvmlErrors
	}
	return cudaErrors
}
