// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// fake is a driver whose calls can be made to hang.
type fake struct {
	hang chan struct{} // a call waits for it to be closed; nil: at once
	down bool
}

func (f *fake) wait() {
	if f.hang != nil {
		<-f.hang
	}
}
func (f *fake) Inventory() (Inventory, error) {
	f.wait()
	return Inventory{DriverVersion: "1", Devices: []Device{{UUID: "GPU-0", Name: "X (SIMULATED)"}}}, nil
}
func (f *fake) Sample(string) (Sample, error) {
	return Sample{UsedBytes: 7, UsedKnown: true}, nil
}
func (f *fake) Shutdown() { f.down = true }

func TestCallsReachTheDriver(t *testing.T) {
	f := &fake{}
	l := New(f, time.Second)
	inv, err := l.Inventory(context.Background())
	if err != nil || len(inv.Devices) != 1 || !inv.Devices[0].Simulated() {
		t.Fatalf("Inventory = %+v, %v", inv, err)
	}
	if s, err := l.Sample(context.Background(), "GPU-0"); err != nil || s.UsedBytes != 7 {
		t.Fatalf("Sample = %+v, %v", s, err)
	}
	l.Close()
	l.Close()
	if !f.down {
		t.Error("Close did not end the driver")
	}
	if _, err := l.Inventory(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("Inventory after Close: %v, want ErrClosed", err)
	}
}

// A driver that hangs costs a caller its deadline once; later callers nothing;
// and when it comes back the calls work again.
func TestHangingDriver(t *testing.T) {
	f := &fake{hang: make(chan struct{})}
	l := New(f, 50*time.Millisecond)
	begin := time.Now()
	if _, err := l.Inventory(context.Background()); !errors.Is(err, ErrHung) {
		t.Fatalf("Inventory: %v, want ErrHung", err)
	}
	if d := time.Since(begin); d > 2*time.Second {
		t.Fatalf("the first caller waited %v", d)
	}
	time.Sleep(60 * time.Millisecond)
	begin = time.Now()
	for range 100 {
		if _, err := l.Sample(context.Background(), "GPU-0"); !errors.Is(err, ErrHung) {
			t.Fatalf("Sample while hung: %v, want ErrHung", err)
		}
	}
	if d := time.Since(begin); d > time.Second {
		t.Errorf("100 callers of a hung driver waited %v in all", d)
	}
	close(f.hang)
	deadline := time.Now().Add(5 * time.Second)
	for {
		if _, err := l.Sample(context.Background(), "GPU-0"); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the driver came back, Sample did not: %v", err)
		}
		time.Sleep(time.Millisecond)
	}
	l.Close()
}

func TestNoLibrary(t *testing.T) {
	l := New(Open(filepath.Join(t.TempDir(), "libnvidia-ml.so.1")), time.Second)
	defer l.Close()
	_, err := l.Inventory(context.Background())
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "not found") {
		t.Fatalf("Inventory without a library: %v, want ErrUnavailable and the reason", err)
	}
}

func TestMergeKeepsUnknownApart(t *testing.T) {
	got := merge(
		[]nvml.ProcessInfo{{Pid: 1, UsedGpuMemory: 10}, {Pid: 2, UsedGpuMemory: notAvailable}},
		[]nvml.ProcessInfo{{Pid: 1, UsedGpuMemory: 12}, {Pid: 3, UsedGpuMemory: 0}},
	)
	want := []Process{{PID: 1, Bytes: 12, Known: true}, {PID: 2}, {PID: 3, Known: true}}
	if len(got) != len(want) {
		t.Fatalf("merge = %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("merge[%d] = %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestAddBusy(t *testing.T) {
	p := []Process{{PID: 1}, {PID: 2}}
	addBusy(p, []nvml.ProcessUtilizationSample{{Pid: 1, SmUtil: 30}, {Pid: 1, SmUtil: 40}, {Pid: 1, SmUtil: 4000000000}, {Pid: 9, SmUtil: 5}})
	if p[0].BusyMilli != 350 || !p[0].BusyKnown || p[1].BusyKnown {
		t.Errorf("%+v", p)
	}
}
