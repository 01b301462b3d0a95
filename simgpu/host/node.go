// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/profile"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// makeNode makes the file in which every client reads what the node is like.
// The seal keeps clients from mapping it for writing; the mapping of this
// process, made before, stays writable.
func (h *Host) makeNode() (err error) {
	size := int(unsafe.Sizeof(wire.Node{}))
	if h.nodeFD, h.nodeMem, err = sharedFile("simgpu-node", size, unix.F_SEAL_FUTURE_WRITE); err != nil {
		return err
	}
	h.node = (*wire.Node)(unsafe.Pointer(&h.nodeMem[0])) //nolint:gosec // layout pinned by wire.TestHeader
	h.node.Magic, h.node.Version = wire.Magic, wire.Version
	h.node.GPUs, h.node.CUDAVersion = uint32(len(h.cfg.GPUs)), uint32(h.driver.CUDA)
	h.node.Attributes = uint32(profile.AttributesKnown(h.driver.CUDA)) //nolint:gosec // a small count
	if n := copy(h.node.DriverVersion[:], h.driver.Version); n == len(h.node.DriverVersion) {
		return fmt.Errorf("driver version %q: at most %d characters", h.driver.Version, n-1)
	}
	return nil
}
