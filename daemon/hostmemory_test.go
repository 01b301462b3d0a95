// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter"
	"github.com/gpushare/gpushare/limiter/region"
)

// pageHost is what the limits page of a container says.
func pageHost(t *testing.T, w *world, id string) uint64 {
	t.Helper()
	l, err := region.OpenLimits(filepath.Join(w.containers(), id, "limits"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.HostMemory()
}

// A node that lends nothing refuses, says what to set, and shows nothing of it.
func TestHostMemoryIsOff(t *testing.T) {
	w := newWorld(t)
	_, _, err := w.claim("a", v1.Request{Memory: "1Gi", HostMemory: "2Gi"})
	if v1.Code(err) != v1.CodeCap || !strings.Contains(err.Error(), `2 GiB asked`) || !strings.Contains(err.Error(), `host_memory = "64Gi"`) {
		t.Errorf("%v", err)
	}
	w.empty()
	c, _ := w.mustClaim("b", v1.Request{Memory: "1Gi"})
	w.mustClaim("c", v1.Request{Memory: "1Gi", HostMemory: "0B"})
	if got := pageHost(t, w, "b") | pageHost(t, w, "c"); got != 0 {
		t.Errorf("pages lend %d bytes", got)
	}
	list := w.m.List(context.Background())
	list.Containers = list.Containers[:1]
	for _, v := range []any{c, list, w.m.Daemon(context.Background())} {
		if text, _ := json.Marshal(v); strings.Contains(string(text), "host_memory") {
			t.Errorf("shown although off: %s", text)
		}
	}
	if raw, _ := os.ReadFile(filepath.Join(w.base, "run", "state", "b.json")); len(raw) == 0 || strings.Contains(string(raw), "host_memory") {
		t.Errorf("record: %s", raw)
	}
	if _, err := w.m.Resize(context.Background(), "b", v1.ResizeRequest{HostMemory: "1Gi"}); v1.Code(err) != v1.CodeCap {
		t.Errorf("set: %v", err)
	}
}

// The node's total is promised once, to the byte, and never counts against a GPU.
func TestHostMemoryIsPromised(t *testing.T) {
	w := newWorld(t)
	w.m.Close()
	w.policy.HostMemoryBytes = 10 * gib
	w.start()
	free := w.m.Daemon(context.Background()).GPUs[0].MemoryPromisedBytes
	c, claimant := w.mustClaim("a", v1.Request{Memory: "1Gi", HostMemory: "6Gi", GPU: "0"})
	if c.HostMemoryBytes != 6*gib || pageHost(t, w, "a") != 6*gib {
		t.Errorf("claim %d, page %d", c.HostMemoryBytes, pageHost(t, w, "a"))
	}
	_, _, err := w.claim("b", v1.Request{Memory: "1Gi", HostMemory: "4294967297B"})
	if v1.Code(err) != v1.CodeNoFit || !strings.Contains(err.Error(), "4 GiB of the 10 GiB that this node lends") {
		t.Errorf("one byte too many: %v", err)
	}
	w.mustClaim("b", v1.Request{Memory: "1Gi", HostMemory: "4Gi", GPU: "0"})
	d := w.m.Daemon(context.Background())
	if d.HostMemoryBytes != 10*gib || d.HostMemoryPromisedBytes != 10*gib || d.GPUs[0].MemoryPromisedBytes-free != 2*gib {
		t.Errorf("%+v", d)
	}
	w.run("a", claimant)
	w.restart() // the promise is kept
	if _, _, err := w.claim("c", v1.Request{Memory: "1Gi", HostMemory: "5Gi"}); v1.Code(err) != v1.CodeNoFit {
		t.Errorf("after a restart: %v", err)
	}
	one, err := w.m.Container(context.Background(), "a")
	if err != nil || one.HostMemoryLimitBytes != 6*gib || one.Request.HostMemory != "6Gi" {
		t.Errorf("%+v, %v", one, err)
	}
	events := w.m.recent("a", 9)
	if text, _ := json.Marshal(events); !strings.Contains(string(text), "6 GiB of host memory") {
		t.Errorf("events: %s", text)
	}
}

func TestHostMemoryCaps(t *testing.T) {
	w := newWorld(t)
	w.m.Close()
	w.policy.HostMemoryBytes = 64 * gib
	w.policy.EnvCap = mustCap(t, "cap.env", limiter.Words{HostMemory: "2Gi"})
	w.policy.AnnotationCap = mustCap(t, "cap.annotation", limiter.Words{HostMemory: "0B"})
	w.start()
	for source, want := range map[string]string{
		v1.SourceEnv:        `cap.env.host_memory = "2Gi"`,
		v1.SourceAnnotation: `cap.annotation.host_memory = "0B"`,
		v1.SourceBoth:       `cap.`,
		v1.SourceDefault:    "",
	} {
		req := w.request("x"+source[:1], w.process().Process.Pid, v1.Request{Memory: "1Gi", HostMemory: "3Gi"})
		req.Source = source
		_, err := w.m.Claim(context.Background(), req)
		if (err == nil) != (want == "") || err != nil && (v1.Code(err) != v1.CodeCap || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
	_, _, err := w.claim("u", v1.Request{Memory: "1Gi", HostMemory: "25%"})
	if v1.Code(err) != v1.CodeUnit || !strings.Contains(err.Error(), `GPUSHARE_HOST_MEMORY: "25%": host memory is not counted in parts`) {
		t.Errorf("a percentage: %v", err)
	}
}

// What was refused was refused in both places, and the event says so.
func TestHostMemoryInDenials(t *testing.T) {
	w := newWorld(t)
	w.m.Close()
	w.policy.HostMemoryBytes = 10 * gib
	w.start()
	w.mustClaim("a", v1.Request{Memory: "1Gi", HostMemory: "2Gi", GPU: "0"})
	w.m.countDenied(w.m.containers["a"], region.Usage{
		GPU: []region.GPUUsage{{Bytes: gib, GPUAccount: region.GPUAccount{Denied: 1, DeniedBytes: gib}}}, HostBytes: gib,
	})
	const want = "1 GiB in use now, and 1 GiB of 2 GiB of host memory, 1 GiB refused in all"
	if text, _ := json.Marshal(w.m.recent("a", 1)); !strings.Contains(string(text), want) {
		t.Errorf("%s, want %q", text, want)
	}
}

// A change is in the page at once; below what is in use only softly.
func TestHostMemoryIsChanged(t *testing.T) {
	w := newWorld(t)
	w.m.Close()
	w.policy.HostMemoryBytes = 10 * gib
	w.start()
	w.mustClaim("a", v1.Request{Memory: "1Gi", HostMemory: "2Gi"})
	set := func(r v1.ResizeRequest) error {
		_, err := w.m.Resize(context.Background(), "a", r)
		return err
	}
	if err := set(v1.ResizeRequest{HostMemory: "10g", CommandLine: true}); err != nil || pageHost(t, w, "a") != 10*gib {
		t.Errorf("raised: %v, page %d", err, pageHost(t, w, "a"))
	}
	if err := set(v1.ResizeRequest{HostMemory: "10737418241B"}); v1.Code(err) != v1.CodeNoFit {
		t.Errorf("above what is lent: %v", err)
	}
	if err := set(v1.ResizeRequest{HostMemory: "5%", CommandLine: true}); v1.Code(err) != v1.CodeUnit || !strings.Contains(err.Error(), "--gpu-host-memory: ") {
		t.Errorf("a percentage: %v", err)
	}
	// A profile says nothing of host memory, so it leaves it.
	if err := set(v1.ResizeRequest{Profile: "1of4"}); err != nil || pageHost(t, w, "a") != 10*gib {
		t.Errorf("profile: %v, page %d", err, pageHost(t, w, "a"))
	}
	one, _ := w.m.Container(context.Background(), "a")
	if one.Request != (v1.Request{Profile: "1of4", HostMemory: "10g"}) || one.Details.Set[v1.LimitHostMemory].Word != "10g" {
		t.Errorf("%+v, %+v", one.Request, one.Details.Set)
	}
	holder := spend(t, filepath.Join(w.containers(), "a", "ledger"), 3*gib)
	if err := set(v1.ResizeRequest{HostMemory: "2Gi"}); v1.Code(err) != v1.CodeMemInUse || !strings.Contains(err.Error(), "3 GiB are in use") {
		t.Errorf("below the use: %v", err)
	}
	if err := set(v1.ResizeRequest{HostMemory: "0B", Soft: true}); err != nil || pageHost(t, w, "a") != 0 {
		t.Errorf("softly: %v", err)
	}
	if text := w.m.recent("a", 1)[0].Message; !strings.HasSuffix(text, "· 10 GiB of host memory → "+strings.Split(text, " → ")[1]) || !strings.HasSuffix(text, "· no host memory") {
		t.Error(text)
	}
	one, _ = w.m.Container(context.Background(), "a")
	if one.HostMemoryUsedBytes != 3*gib || one.HostMemoryLimitBytes != 0 {
		t.Errorf("%+v", one)
	}
	holder.Close()
	if one, _ = w.m.Container(context.Background(), "a"); one.HostMemoryUsedBytes != 0 {
		t.Errorf("after its death: %+v", one)
	}
}

// Host memory that was taken back stays taken back, also over daemons that read the
// record of one before them.
func TestHostMemoryTakenBackStaysSo(t *testing.T) {
	w := newWorld(t)
	w.m.Close()
	w.policy.HostMemoryBytes = 10 * gib
	w.start()
	_, claimant := w.mustClaim("a", v1.Request{Memory: "1Gi", HostMemory: "2Gi"})
	w.writeState("a", w.mounted("a").Process.Pid)
	end(claimant)
	w.eventually("start", func() bool { return w.get("a").PID != 0 })
	w.restart()
	if _, err := w.m.Resize(context.Background(), "a", v1.ResizeRequest{HostMemory: "0B"}); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if one := w.get("a"); one.HostMemoryLimitBytes != 0 || pageHost(t, w, "a") != 0 {
		t.Errorf("after a restart %d, page %d", one.HostMemoryLimitBytes, pageHost(t, w, "a"))
	}
}

// spend writes a living process's host bytes into a ledger, as the library does.
func spend(t *testing.T, path string, bytes uint64) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	lk := unix.Flock_t{Type: unix.F_WRLCK, Start: region.LockBase, Len: 1}
	slot := make([]byte, region.SlotSize)
	binary.NativeEndian.PutUint32(slot, region.SlotUsed)
	binary.NativeEndian.PutUint64(slot[unsafe.Offsetof(region.Slot{}.HostBytes):], bytes)
	high := make([]byte, 4)
	binary.NativeEndian.PutUint32(high, 1)
	_, slotErr := f.WriteAt(slot, region.LedgerHeaderSize)
	_, highErr := f.WriteAt(high, int64(unsafe.Offsetof(region.LedgerHeader{}.SlotHigh)))
	if err := errors.Join(unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk), slotErr, highErr); err != nil {
		t.Fatal(err)
	}
	return f
}
