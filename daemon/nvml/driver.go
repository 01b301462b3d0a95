// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// notAvailable is the driver's word for a figure that it does not have.
const notAvailable = ^uint64(0)

// library is NVIDIA's library, or one that takes its place.
type library struct {
	nvml    nvml.Interface
	path    string
	started bool
	handles map[string]nvml.Device
}

var _ Driver = (*library)(nil)

// Open returns the management library at that path; an empty one is the
// system's own. It is loaded at the first call.
func Open(path string) Driver {
	var options []nvml.LibraryOption
	if path != "" {
		options = append(options, nvml.WithLibraryPath(path))
	}
	return &library{nvml: nvml.New(options...), path: path}
}

func (l *library) init() error {
	if l.started {
		return nil
	}
	if ret := l.nvml.Init(); ret != nvml.SUCCESS {
		name := l.path
		if name == "" {
			name = "libnvidia-ml.so.1"
		}
		return fmt.Errorf("start %s: %s: %w", name, text(ret), ErrUnavailable)
	}
	l.started = true
	return nil
}

// text is the driver's own word for ret, without asking a library that could
// not be loaded.
func text(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return "not found"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return "the driver is not loaded"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return "kernel module and library are of different versions: reload the modules or reboot"
	case nvml.ERROR_NO_PERMISSION:
		return "no permission"
	}
	return fmt.Sprintf("NVML error %d", int(ret))
}

// has reports whether the library exports that name. A call of a name that it
// does not have would end the process.
func (l *library) has(name string) bool {
	return l.nvml.Extensions().LookupSymbol(name) == nil
}

func (l *library) Inventory() (Inventory, error) {
	if err := l.init(); err != nil {
		return Inventory{}, err
	}
	var inv Inventory
	if v, ret := l.nvml.SystemGetDriverVersion(); ret == nvml.SUCCESS {
		inv.DriverVersion = v
	}
	n, ret := l.nvml.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return Inventory{}, fmt.Errorf("count GPUs: %s: %w", text(ret), ErrUnavailable)
	}
	l.handles = make(map[string]nvml.Device, n)
	for i := range n {
		inv.Devices = append(inv.Devices, l.device(i))
	}
	return inv, nil
}

// device describes one GPU. What goes wrong is that GPU's own trouble.
func (l *library) device(index int) Device {
	d := Device{Index: index}
	h, ret := l.nvml.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		d.Err = fmt.Errorf("open GPU %d: %s", index, text(ret))
		return d
	}
	if d.UUID, ret = h.GetUUID(); ret != nvml.SUCCESS {
		d.Err = fmt.Errorf("read the UUID of GPU %d: %s", index, text(ret))
		return d
	}
	if name, ret := h.GetName(); ret == nvml.SUCCESS {
		d.Name = name
	}
	m, ret := h.GetMemoryInfo()
	if ret != nvml.SUCCESS {
		d.Err = fmt.Errorf("read the memory size of GPU %d: %s", index, text(ret))
		return d
	}
	d.MemoryTotal = m.Total
	if l.has("nvmlDeviceGetMemoryInfo_v2") {
		if m2, ret := h.GetMemoryInfo_v2(); ret == nvml.SUCCESS && m2.Reserved < m.Total {
			d.MemoryReserved = m2.Reserved
		}
	}
	if l.migEnabled(h) {
		d.Err = fmt.Errorf("GPU %d is in MIG mode, which is not shared yet", index)
	}
	l.handles[d.UUID] = h
	return d
}

func (l *library) Sample(uuid string) (Sample, error) {
	h, ok := l.handles[uuid]
	if !ok {
		return Sample{}, fmt.Errorf("sample %s: %w", uuid, ErrUnavailable)
	}
	var s Sample
	if m, ret := h.GetMemoryInfo(); ret == nvml.SUCCESS && m.Used != notAvailable {
		s.UsedBytes, s.UsedKnown = m.Used, true
	}
	compute, ret := h.GetComputeRunningProcesses()
	if ret != nvml.SUCCESS {
		s.ProcessesErr = fmt.Errorf("list compute processes: %s", text(ret))
		return s, nil
	}
	// A process can be in both lists, with the same figure.
	graphics, ret := h.GetGraphicsRunningProcesses()
	if ret != nvml.SUCCESS {
		graphics = nil
	}
	s.Processes = merge(compute, graphics)
	if l.has("nvmlDeviceGetProcessUtilization") {
		addBusy(s.Processes, utilization(h))
	}
	return s, nil
}

// busySpan is how far back the driver is asked what ran.
const busySpan = 2 * time.Second

// utilization returns the driver's samples of the last seconds; none if it has
// none, or none that can be read.
func utilization(h nvml.Device) (samples []nvml.ProcessUtilizationSample) {
	// The binding cuts its buffer to a count that the driver may have raised
	// between two calls, and panics then.
	defer func() {
		if recover() != nil {
			samples = nil
		}
	}()
	samples, ret := h.GetProcessUtilization(uint64(time.Now().Add(-busySpan).UnixMicro()))
	if ret != nvml.SUCCESS {
		return nil
	}
	return samples
}

// addBusy sets how busy each process was: the mean of its samples. Of one without
// samples nothing is known: drivers list idle processes or leave them out.
func addBusy(processes []Process, samples []nvml.ProcessUtilizationSample) {
	type sum struct{ percent, n uint32 }
	sums := make(map[uint32]sum)
	for _, s := range samples {
		if s.SmUtil <= 100 {
			t := sums[s.Pid]
			sums[s.Pid] = sum{t.percent + s.SmUtil, t.n + 1}
		}
	}
	for i := range processes {
		if t := sums[uint32(processes[i].PID)]; t.n > 0 {
			processes[i].BusyMilli, processes[i].BusyKnown = t.percent*10/t.n, true
		}
	}
}

// merge joins process lists: one entry a process, with the largest figure.
func merge(lists ...[]nvml.ProcessInfo) []Process {
	var out []Process
	at := make(map[uint32]int)
	for _, list := range lists {
		for _, p := range list {
			known := p.UsedGpuMemory != notAvailable
			i, ok := at[p.Pid]
			if !ok {
				i = len(out)
				at[p.Pid] = i
				out = append(out, Process{PID: int(p.Pid)})
			}
			if known && p.UsedGpuMemory >= out[i].Bytes {
				out[i].Bytes, out[i].Known = p.UsedGpuMemory, true
			}
		}
	}
	return out
}

func (l *library) Shutdown() {
	if l.started {
		l.nvml.Shutdown()
		l.started = false
	}
}

func (l *library) migEnabled(h nvml.Device) bool {
	if !l.has("nvmlDeviceGetMigMode") {
		return false
	}
	mode, _, ret := h.GetMigMode()
	return ret == nvml.SUCCESS && mode == nvml.DEVICE_MIG_ENABLE
}
