// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"encoding/binary"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter/region"
)

func doorbellOf(kind, gpu uint32, wall time.Duration) []byte {
	b := make([]byte, unsafe.Sizeof(region.Doorbell{}))
	for i, v := range []uint32{region.DoorbellMagic, kind, gpu, 0} {
		binary.NativeEndian.PutUint32(b[4*i:], v)
	}
	binary.NativeEndian.PutUint64(b[16:], uint64(wall))
	return b
}

func dial(t *testing.T, dir string) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: filepath.Join(dir, "control.sock"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func openPage(t *testing.T, dir string) *region.Limits {
	t.Helper()
	p, err := region.OpenLimits(filepath.Join(dir, "limits"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// A tenant rings through its socket and gets a window on the GPU that it named,
// by the index of its own page; its neighbour there is held, nobody else.
func TestWindowThroughTheSocket(t *testing.T) {
	w := newWorld(t)
	a, _ := w.mustClaim("a", v1.Request{Memory: "1Gi", GPU: "0,1"})
	b, _ := w.mustClaim("b", v1.Request{Memory: "1Gi", GPU: "1"})
	c, _ := w.mustClaim("c", v1.Request{Memory: "1Gi", GPU: "0"})
	pa, pb, pc := openPage(t, a.Directory), openPage(t, b.Directory), openPage(t, c.Directory)
	bell := dial(t, a.Directory)
	for _, junk := range [][]byte{nil, {1}, make([]byte, 4096), doorbellOf(9, 0, 0), doorbellOf(region.DoorbellPrice, 2, 0)} {
		if _, err := bell.Write(junk); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bell.Write(doorbellOf(region.DoorbellPrice, 1, 40*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	w.eventually("window", func() bool { return pa.GPU(1).Window != 0 })
	if pb.GPU(0).Hold == 0 || pc.GPU(0).Hold != 0 || pa.GPU(0).Window != 0 || pa.GPU(1).Hold != 0 {
		t.Errorf("a %+v, b %+v, c %+v", pa.GPU(1), pb.GPU(0), pc.GPU(0))
	}
	if _, err := bell.Write(doorbellOf(region.DoorbellDone, 1, 0)); err != nil {
		t.Fatal(err)
	}
	w.eventually("the end of the window", func() bool { return pa.GPU(1).Window == 0 && pb.GPU(0).Hold == 0 })
}

// A tenant that floods its socket costs the daemon next to nothing and its
// neighbour at most what windows may take.
func TestFlood(t *testing.T) {
	w := newWorld(t)
	a, _ := w.mustClaim("a", v1.Request{Memory: "1Gi", GPU: "0"})
	b, _ := w.mustClaim("b", v1.Request{Memory: "1Gi", GPU: "0"})
	page := openPage(t, b.Directory)
	bell := dial(t, a.Directory)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if bell.SetWriteDeadline(time.Now().Add(time.Second)) != nil {
				return
			}
			if _, err := bell.Write(doorbellOf(region.DoorbellPrice, 0, time.Hour)); err != nil && !isTimeout(err) {
				return
			}
		}
	}()
	const total = 3 * time.Second
	begin, before := time.Now(), cpu()
	var held time.Duration
	for last := begin; time.Since(begin) < total; {
		time.Sleep(500 * time.Microsecond)
		now := time.Now()
		if page.GPU(0).Hold != 0 {
			held += now.Sub(last)
		}
		last = now
	}
	used := cpu() - before
	t.Logf("held %v of %v; %v of CPU, the flood's own included", held, total, used)
	// Half a second for a machine that is busy with other things: windows without
	// a budget would take half of the time.
	if most := total/50 + 200*time.Millisecond + 500*time.Millisecond; held > most {
		t.Errorf("held %v of %v, want at most about %v", held, total, most)
	}
	if used > total/2 {
		t.Errorf("%v of CPU in %v", used, total)
	}
	bell.Close()
	<-done
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}
