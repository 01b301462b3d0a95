// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"encoding/binary"
	"math"
	"net"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// Types of nvml.h's events.
const (
	eventSingleBitECC = 0x1
	eventDoubleBitECC = 0x2
	eventPState       = 0x4
	eventXID          = 0x8
	eventClock        = 0x10
	eventMIGConfig    = 0x100
)

// eventBacklog is how many events wait for a listener that does not read;
// further ones are lost to it.
const eventBacklog = 256

// listener is one event set: a connection on which events go out.
type listener struct {
	mask [wire.MaxGPUs]uint64
	out  chan wire.Event
}

// serveEvents takes registrations and sends events until the client is gone.
func (h *Host) serveEvents(conn *net.UnixConn, buf []byte) {
	l := &listener{out: make(chan wire.Event, eventBacklog)}
	h.mu.Lock()
	h.listeners[l] = struct{}{}
	h.mu.Unlock()
	gone := make(chan struct{})
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for {
			select {
			case e := <-l.out:
				var b bytes.Buffer
				_ = binary.Write(&b, binary.NativeEndian, e)
				if send(conn, wire.Reply{Op: wire.OpEvents}, b.Bytes(), nil) != nil {
					return
				}
			case <-gone:
				return
			}
		}
	}()
	h.loop(conn, buf, nil, nil, func(req *wire.Request, _ []byte) (wire.Reply, []byte, bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		switch {
		case req.Op != wire.OpEvents:
			return wire.Reply{Status: nvmlInvalidArgument}, nil, true
		case int(req.GPU) >= len(h.gpus):
			return wire.Reply{Status: nvmlNotFound}, nil, true
		case h.lost(int(req.GPU)):
			return wire.Reply{Status: nvmlGPUIsLost}, nil, true
		case req.A&^h.eventTypes(int(req.GPU)) != 0:
			return wire.Reply{Status: nvmlNotSupported}, nil, true
		}
		l.mask[req.GPU] |= req.A
		return wire.Reply{}, nil, true
	})
	h.mu.Lock()
	delete(h.listeners, l)
	h.mu.Unlock()
	close(gone)
	_ = conn.Close()
	<-sent
}

// eventTypes are the events that GPU i can report.
func (h *Host) eventTypes(i int) uint64 {
	t := uint64(eventPState | eventXID | eventClock)
	f := &h.gpus[i].nvml.facts
	if f.ECC.Supported {
		t |= eventSingleBitECC | eventDoubleBitECC
	}
	if f.MIG.MaxInstances > 0 {
		t |= eventMIGConfig
	}
	return t
}

// emit delivers an event to whoever registered for it. The caller holds mu.
func (h *Host) emit(i int, kind, data uint64) {
	for l := range h.listeners {
		if l.mask[i]&kind == 0 {
			continue
		}
		select {
		case l.out <- wire.Event{
			GPU: uint32(i), GI: math.MaxUint32, CI: math.MaxUint32, Type: kind, Data: data, //nolint:gosec // an index
			TimeUS: uint64(h.clock.epoch()+h.clock.now()) / 1000, //nolint:gosec // after 1970
		}:
		default:
			h.log.Debug("event lost: its listener does not read", "gpu", i)
		}
	}
}

// xidOf reports the critical error that goes with a kernel's fault, by its CUresult.
func (h *Host) xidOf(i int, code int32) {
	if x, ok := map[int32]uint32{719: 13, 700: 31, 702: 8}[code]; ok {
		h.xid(i, x)
	}
}

// xid reports a critical error of GPU i by its number. The caller holds mu.
func (h *Host) xid(i int, code uint32) {
	h.log.Info("XID", "gpu", i, "code", code)
	h.emit(i, eventXID, uint64(code))
}
