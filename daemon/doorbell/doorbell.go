// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package doorbell reads what the processes of one container send to the daemon
// on its control socket. The sender is a tenant: messages have one size, are
// checked, and are read at a bounded rate whatever is sent.
package doorbell

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
	"unsafe"

	"github.com/gpushare/gpushare/limiter/region"
)

const (
	size = int(unsafe.Sizeof(region.Doorbell{}))
	// perSecond messages are read of one container, and burst at once.
	perSecond = 200
	burst     = 50
)

// ErrMalformed is returned for a message that is not a doorbell.
var ErrMalformed = errors.New("not a doorbell")

// Parse reads one message of a container that holds that many GPUs.
func Parse(raw []byte, gpus int) (region.Doorbell, error) {
	if len(raw) != size {
		return region.Doorbell{}, fmt.Errorf("%d bytes: %w", len(raw), ErrMalformed)
	}
	word := func(i int) uint32 { return binary.NativeEndian.Uint32(raw[4*i:]) }
	d := region.Doorbell{Magic: word(0), Kind: word(1), GPU: word(2), Slot: word(3), WallNs: binary.NativeEndian.Uint64(raw[16:])}
	switch {
	case d.Magic != region.DoorbellMagic:
		return region.Doorbell{}, fmt.Errorf("magic %#x: %w", d.Magic, ErrMalformed)
	case d.Kind != region.DoorbellPrice && d.Kind != region.DoorbellDone && d.Kind != region.DoorbellSettle:
		return region.Doorbell{}, fmt.Errorf("kind %d: %w", d.Kind, ErrMalformed)
	case d.GPU >= uint32(gpus):
		return region.Doorbell{}, fmt.Errorf("GPU %d of %d: %w", d.GPU, gpus, ErrMalformed)
	case d.Slot >= region.SlotCount:
		return region.Doorbell{}, fmt.Errorf("slot %d: %w", d.Slot, ErrMalformed)
	}
	return d, nil
}

// Wall is the wall time that a doorbell names, at most an hour.
func Wall(d region.Doorbell) time.Duration {
	return time.Duration(min(d.WallNs, uint64(time.Hour)))
}

// pace is a token bucket on an injected clock.
type pace struct {
	tokens float64
	at     time.Duration
}

// take takes one token and returns how long to wait before the next message may
// be read.
func (p *pace) take(now time.Duration) time.Duration {
	p.tokens = min(burst, p.tokens+float64(now-p.at)/float64(time.Second)*perSecond) - 1
	p.at = now
	if p.tokens >= 0 {
		return 0
	}
	return time.Duration(-p.tokens / perSecond * float64(time.Second))
}

// Serve reads messages until conn is closed and hands the good ones to ring. It
// may run a little longer than conn is open: up to the pace of one message.
func Serve(conn io.Reader, gpus int, ring func(region.Doorbell)) {
	// One byte more than a message, so that a longer one is seen to be longer.
	buf := make([]byte, size+1)
	start := time.Now()
	p := pace{tokens: burst}
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		if d, err := Parse(buf[:n], gpus); err == nil {
			ring(d)
		}
		// Not reading fills the sender's queue: it is the one that waits, or loses
		// its message.
		if wait := p.take(time.Since(start)); wait > 0 {
			time.Sleep(wait)
		}
	}
}
