// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// proc writes what the kernel's driver shows below /proc/driver, for those who
// bind it there: NVIDIA's tools read the version, whether they may make device
// nodes, and which minor number a GPU or a MIG capability has.
func (l Layout) proc() error {
	root := filepath.Join(l.Dir, "proc", "driver")
	if err := os.RemoveAll(root); err != nil { // of a node of before
		return fmt.Errorf("remove old files: %w", err)
	}
	files := map[string]string{
		"nvidia/version":  "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + l.Version + "  (SIMULATED)\nGCC version:  none\n",
		"nvidia/params":   "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\nInitializeSystemMemoryAllocations: 1\nUsePageAttributeTable: 4294967295\nEnableMSI: 1\nEnableStreamMemOPs: 0\n",
		"nvidia/registry": "",
	}
	for i, g := range l.GPUs {
		files["nvidia/gpus/"+strings.ToLower(g.BusID)+"/information"] = fmt.Sprintf(
			"Model: \t\t %s\nIRQ:   \t\t %d\nGPU UUID: \t %s\nVideo BIOS: \t %s\nBus Type: \t PCIe\nDMA Size: \t 47 bits\n"+
				"DMA Mask: \t 0x7fffffffffff\nBus Location: \t %s\nDevice Minor: \t %d\nGPU Firmware: \t %s\nGPU Excluded:\t No\n",
			g.Model, 100+i, g.UUID, g.VBIOS, strings.ToLower(g.BusID), i, l.Version)
	}
	for i, g := range l.GPUs {
		for _, m := range g.Instances {
			gi := fmt.Sprintf("nvidia/capabilities/gpu%d/mig/gi%d/", i, m.Instance)
			files[gi+"access"] = capability(MIGMinor(i, m.Instance, -1), 0o444)
			files[gi+fmt.Sprintf("ci%d/access", m.Compute)] = capability(MIGMinor(i, m.Instance, m.Compute), 0o444)
		}
	}
	if l.mig() {
		files["nvidia/capabilities/mig/config"] = capability(1, 0o400)
		files["nvidia/capabilities/mig/monitor"] = capability(2, 0o444)
		files["nvidia-caps/mig-minors"] = migMinors(len(l.GPUs))
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as in /proc
			return fmt.Errorf("create node directory: %w", err)
		}
		if err := writeFile(path, []byte(text), 0o444); err != nil {
			return err
		}
	}
	return nil
}

func capability(minor int, mode os.FileMode) string {
	return fmt.Sprintf("DeviceFileMinor: %d\nDeviceFileMode: %d\nDeviceFileModify: 1\n", minor, mode)
}

// A GPU has room for so many instances, and a GPU instance for so many of compute
// (NVIDIA's MIG documentation, device nodes and capabilities).
const (
	migInstances = 15
	migComputes  = 8
)

// MIGMinor returns the minor number of the capability of a GPU instance, or with
// compute not negative that of a compute instance in it.
func MIGMinor(gpu, instance, compute int) int {
	return 3 + (gpu*migInstances+instance)*(1+migComputes) + compute + 1
}

// migMinors is /proc/driver/nvidia-caps/mig-minors.
func migMinors(gpus int) string {
	var b strings.Builder
	b.WriteString("config 1\nmonitor 2\n")
	for g := range gpus {
		for i := range migInstances {
			fmt.Fprintf(&b, "gpu%d/gi%d/access %d\n", g, i, MIGMinor(g, i, -1))
			for c := range migComputes {
				fmt.Fprintf(&b, "gpu%d/gi%d/ci%d/access %d\n", g, i, c, MIGMinor(g, i, c))
			}
		}
	}
	return b.String()
}
