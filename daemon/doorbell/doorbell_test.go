// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package doorbell

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/gpushare/gpushare/limiter/region"
)

func message(magic, kind, gpu, slot uint32, wall uint64) []byte {
	b := make([]byte, size)
	for i, v := range []uint32{magic, kind, gpu, slot} {
		binary.NativeEndian.PutUint32(b[4*i:], v)
	}
	binary.NativeEndian.PutUint64(b[16:], wall)
	return b
}

func TestParse(t *testing.T) {
	d, err := Parse(message(region.DoorbellMagic, region.DoorbellPrice, 1, 7, 5000), 2)
	if err != nil || d.GPU != 1 || d.Slot != 7 || Wall(d) != 5*time.Microsecond {
		t.Fatalf("Parse = %+v, %v", d, err)
	}
	if d.WallNs = 1<<64 - 1; Wall(d) != time.Hour {
		t.Errorf("Wall = %v", Wall(d))
	}
	for name, raw := range map[string][]byte{
		"empty":        {},
		"short":        make([]byte, size-1),
		"long":         append(message(region.DoorbellMagic, region.DoorbellPrice, 0, 0, 0), 0),
		"magic":        message(1, region.DoorbellPrice, 0, 0, 0),
		"kind 0":       message(region.DoorbellMagic, 0, 0, 0, 0),
		"kind 4":       message(region.DoorbellMagic, 4, 0, 0, 0),
		"another GPU":  message(region.DoorbellMagic, region.DoorbellPrice, 2, 0, 0),
		"no such slot": message(region.DoorbellMagic, region.DoorbellPrice, 0, region.SlotCount, 0),
	} {
		if _, err := Parse(raw, 2); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
	}
}

// A tenant that rings as fast as it can is read at the pace and no faster.
func TestPace(t *testing.T) {
	p := pace{tokens: burst}
	now, read := time.Duration(0), 0
	for now < 10*time.Second {
		read++
		now += p.take(now) + time.Microsecond
	}
	if most := burst + 10*perSecond + 1; read > most || read < most*9/10 {
		t.Errorf("%d messages read in 10 s, want about %d", read, most)
	}
	now += time.Hour
	if p.take(now); p.tokens > burst {
		t.Errorf("%v tokens saved, want at most %d", p.tokens, burst)
	}
}

// script is a connection that gives messages, then ends.
type script [][]byte

func (s *script) Read(b []byte) (int, error) {
	if len(*s) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*s)[0])
	*s = (*s)[1:]
	return n, nil
}

func TestServe(t *testing.T) {
	good := message(region.DoorbellMagic, region.DoorbellDone, 0, 0, 0)
	s := script{good, nil, make([]byte, 1<<16), []byte("x"), good}
	rung := 0
	Serve(&s, 1, func(region.Doorbell) { rung++ })
	if rung != 2 {
		t.Errorf("rung %d times, want 2", rung)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(message(region.DoorbellMagic, region.DoorbellPrice, 0, 0, 1))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if d, err := Parse(raw, 3); err == nil && (d.GPU >= 3 || Wall(d) < 0) {
			t.Errorf("accepted %+v", d)
		}
	})
}
