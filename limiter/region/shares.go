// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tag is a lock that marks a descriptor: its offset and its file.
type tag struct{ offset, file uint64 }

// fileLine names a file as Share.File does, from "major:minor:inode" as /proc/locks
// has it. It is 0 if that is something else.
func fileLine(s []byte) uint64 {
	p := bytes.Split(s, []byte(":"))
	if len(p) != 3 {
		return 0
	}
	major, err1 := strconv.ParseUint(string(p[0]), 16, 32)
	minor, err2 := strconv.ParseUint(string(p[1]), 16, 32)
	inode, err3 := strconv.ParseUint(string(p[2]), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return 0
	}
	return major<<52 + minor<<40 + inode
}

// tags are the locks of one byte that are held anywhere on this machine. They are
// nil if the kernel does not tell.
func tags() map[tag]bool {
	f, err := os.Open("/proc/locks")
	if err != nil {
		return nil
	}
	defer f.Close()
	all := map[tag]bool{}
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		w := bytes.Fields(scan.Bytes())
		if len(w) < 8 || string(w[1]) != "OFDLCK" || !bytes.Equal(w[6], w[7]) {
			continue
		}
		if offset, err := strconv.ParseUint(string(w[6]), 10, 63); err == nil {
			all[tag{offset, fileLine(w[5])}] = true
			all[tag{offset, 0}] = true
		}
	}
	if scan.Err() != nil {
		return nil
	}
	return all
}

func decodeShare(b []byte) Share {
	word := func(off uintptr) uint64 { return binary.NativeEndian.Uint64(b[off:]) }
	half := func(off uintptr) uint16 { return binary.NativeEndian.Uint16(b[off:]) }
	var s Share
	s.Tag, s.Bytes, s.DiedNs = word(unsafe.Offsetof(s.Tag)), word(unsafe.Offsetof(s.Bytes)), word(unsafe.Offsetof(s.DiedNs))
	for i := range s.File {
		s.Key[i] = word(unsafe.Offsetof(s.Key) + 8*uintptr(i))
		s.File[i] = word(unsafe.Offsetof(s.File) + 8*uintptr(i))
	}
	s.State = binary.NativeEndian.Uint32(b[unsafe.Offsetof(s.State):])
	s.GPU, s.Flags = half(unsafe.Offsetof(s.GPU)), half(unsafe.Offsetof(s.Flags))
	return s
}

// tagged reports whether a descriptor of the share is open; true if in doubt. all is
// what tags returned.
func (s Share) tagged(all map[tag]bool) bool {
	if s.Flags&ShareTagged == 0 {
		return false
	}
	if all == nil || s.Flags&ShareAnyFile != 0 {
		return all == nil || all[tag{s.Tag, 0}]
	}
	for _, f := range s.File {
		if f != 0 && all[tag{s.Tag, f}] {
			return true
		}
	}
	return false
}

// addShares adds to u the shares that a living slot holds or a descriptor. With
// reclaim it frees those that nobody holds.
func (l *Ledger) addShares(u *Usage, head []byte, living []bool, reclaim bool) error {
	word := func(off uintptr, most uint32) int { return int(min(binary.NativeEndian.Uint32(head[off:]), most)) }
	shares := make([]byte, ShareSize*word(unsafe.Offsetof(LedgerHeader{}.ShareHigh), ShareCount))
	holders := make([]byte, 8*word(unsafe.Offsetof(LedgerHeader{}.HolderHigh), HolderCount))
	if err := l.readAt(shares, ShareOffset(l.gpus, 0)); err != nil {
		return err
	}
	if err := l.readAt(holders, HolderOffset(l.gpus, 0)); err != nil {
		return err
	}
	var held [ShareCount]bool
	for ; len(holders) > 0; holders = holders[8:] {
		h := binary.NativeEndian.Uint64(holders)
		if share, slot := h>>32-1, h&0xffffffff-1; share < ShareCount && slot < uint64(len(living)) && living[slot] {
			held[share] = true
		}
	}
	var all map[tag]bool
	asked := false
	for i := 0; i*ShareSize < len(shares); i++ {
		s := decodeShare(shares[i*ShareSize:])
		if s.State == ShareFree || int(s.GPU) >= l.gpus {
			continue
		}
		if owner := s.Key[1] - 1; s.State == ShareStandby && held[i] && owner < uint64(len(living)) && living[owner] {
			continue // in its owner's word
		}
		if !held[i] {
			if s.Flags&ShareTagged != 0 && !asked {
				all, asked = tags(), true
			}
			if !s.tagged(all) {
				if reclaim {
					l.reclaimShare(i)
				}
				continue
			}
		}
		u.GPU[s.GPU].Bytes = addSaturating(u.GPU[s.GPU].Bytes, s.Bytes)
	}
	return nil
}

// lock takes or gives back the write lock of one byte of the ledger.
func (l *Ledger) lock(at int64, kind int16) bool {
	lk := unix.Flock_t{Type: kind, Start: at, Len: 1}
	return unix.FcntlFlock(l.f.Fd(), unix.F_OFD_SETLK, &lk) == nil
}

// reclaimShare frees a share that no slot holds, dead ones included, and no
// descriptor; the last of those must have been seen closed TagGrace ago.
func (l *Ledger) reclaimShare(share int) {
	if !l.lock(ShareLockBase+int64(share), unix.F_WRLCK) {
		return // being changed
	}
	defer l.lock(ShareLockBase+int64(share), unix.F_UNLCK)
	b, off := make([]byte, ShareSize), ShareOffset(l.gpus, share)
	if _, err := l.f.ReadAt(b, off); err != nil || l.anyHolder(share) {
		return
	}
	s := decodeShare(b)
	died := off + int64(unsafe.Offsetof(s.DiedNs))
	if s.Flags&ShareTagged != 0 && (s.tagged(tags()) || !l.past(died, TagGrace)) {
		return
	}
	_, _ = l.f.WriteAt(make([]byte, 4), off+int64(unsafe.Offsetof(s.State)))
}

// holders is all the words of holders.
func (l *Ledger) holders() []byte {
	b := make([]byte, 8*HolderCount)
	if l.readAt(b, HolderOffset(l.gpus, 0)) != nil {
		return nil
	}
	return b
}

func (l *Ledger) anyHolder(share int) bool {
	for b := l.holders(); len(b) > 0; b = b[8:] {
		if binary.NativeEndian.Uint64(b)>>32 == uint64(share)+1 {
			return true
		}
	}
	return false
}

// wake makes the shares count whose bytes are in a slot's word, which is about to go.
func (l *Ledger) wake(slot int) {
	b := make([]byte, ShareCount*ShareSize)
	if l.readAt(b, ShareOffset(l.gpus, 0)) != nil {
		return
	}
	for i := range ShareCount {
		s := decodeShare(b[i*ShareSize:])
		if s.State != ShareStandby || s.Key[1] != uint64(slot)+1 || !l.lock(ShareLockBase+int64(i), unix.F_WRLCK) {
			continue
		}
		off := ShareOffset(l.gpus, i) + int64(unsafe.Offsetof(s.State))
		state := make([]byte, 4)
		if _, err := l.f.ReadAt(state, off); err == nil && binary.NativeEndian.Uint32(state) == ShareStandby {
			binary.NativeEndian.PutUint32(state, ShareUsed)
			_, _ = l.f.WriteAt(state, off)
		}
		l.lock(ShareLockBase+int64(i), unix.F_UNLCK)
	}
}

// forgetHolder takes a slot off all shares. The caller holds the slot's lock, so
// nobody else writes a word that names it.
func (l *Ledger) forgetHolder(slot int) {
	l.wake(slot)
	for i, b := 0, l.holders(); len(b) > 0; i, b = i+1, b[8:] {
		if binary.NativeEndian.Uint64(b)&0xffffffff == uint64(slot)+1 {
			_, _ = l.f.WriteAt(make([]byte, 8), HolderOffset(l.gpus, i))
		}
	}
}
