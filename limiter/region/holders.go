// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"encoding/binary"
	"unsafe"
)

// Holder is a process that has a slot, by its own word.
type Holder struct {
	Slot  int
	PID   int    // as the process itself sees it
	Bytes uint64 // in use, all GPUs together
}

// Holders lists the slots whose holder lives, at most that many. Its errors are
// those of Read.
func (l *Ledger) Holders(most int) ([]Holder, error) {
	head := make([]byte, LedgerHeaderSize)
	if err := l.readAt(head, 0); err != nil {
		return nil, err
	}
	high := int(min(binary.NativeEndian.Uint32(head[unsafe.Offsetof(LedgerHeader{}.SlotHigh):]), SlotCount))
	slots := make([]byte, high*SlotSize)
	if err := l.readAt(slots, LedgerHeaderSize); err != nil {
		return nil, err
	}
	var out []Holder
	for s := 0; s < high && len(out) < most; s++ {
		slot := slots[s*SlotSize:]
		if binary.NativeEndian.Uint32(slot) == SlotFree {
			continue
		}
		held, err := l.held(s)
		if err != nil {
			return nil, err
		}
		if !held {
			continue
		}
		h := Holder{Slot: s, PID: int(binary.NativeEndian.Uint32(slot[unsafe.Offsetof(Slot{}.PID):]))}
		for g := range l.gpus {
			word := make([]byte, 8)
			if err := l.readAt(word, UsedOffset(g, s)); err != nil {
				return nil, err
			}
			h.Bytes = addSaturating(h.Bytes, binary.NativeEndian.Uint64(word))
		}
		out = append(out, h)
	}
	return out, nil
}
