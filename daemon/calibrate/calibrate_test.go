// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpushare/gpushare/daemon/nvml"
)

const uuid = "GPU-00112233-4455-6677-8899-aabbccddeeff"

// TestMain is the helper too, as the daemon's binary is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == HelperArg {
		if err := Helper(os.Args[2], os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// driver is a driver library with one device. A context takes wait seconds.
const driver = `
#include <unistd.h>
#include <string.h>
int cuInit(unsigned f) { return INIT; }
int cuDeviceGetCount(int *n) { *n = 2; return 0; }
int cuDeviceGetUuid(char *u, int d) {
	static const char id[16] = {0,0x11,0x22,0x33,0x44,0x55,0x66,0x77,0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff};
	memcpy(u, id, 16);
	u[0] = d ? 0 : 9;
	return 0;
}
int cuDevicePrimaryCtxRetain(void **c, int d) { sleep(WAIT); return d == 1 ? 0 : 101; }
int cuDevicePrimaryCtxRelease_v2(int d) { return 0; }
`

func build(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	src := filepath.Join(dir, "d.c")
	if err := os.WriteFile(src, []byte(driver), 0o600); err != nil {
		t.Fatal(err)
	}
	lib := filepath.Join(dir, "libcuda.so.1")
	cmd := exec.Command("gcc", append([]string{"-shared", "-fPIC", "-o", lib, src}, flags...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build a driver: %v\n%s", err, out)
	}
	return lib
}

// samples answers one after the other; the last one for ever.
type samples struct {
	list  []nvml.Sample
	calls int
}

func (s *samples) Sample(context.Context, string) (nvml.Sample, error) {
	i := min(s.calls, len(s.list)-1)
	s.calls++
	return s.list[i], nil
}

func prober(t *testing.T, lib string, list ...nvml.Sample) *Prober {
	t.Helper()
	cmd, err := HelperCommand(lib)
	if err != nil {
		t.Fatal(err)
	}
	return &Prober{Command: cmd, NVML: &samples{list: list}}
}

func TestMeasure(t *testing.T) {
	lib := build(t, "-DINIT=0", "-DWAIT=0")
	before, after := nvml.Sample{UsedBytes: 100, UsedKnown: true}, nvml.Sample{UsedBytes: 100 + 300<<20, UsedKnown: true}
	p := prober(t, lib, before, before, after)
	got, err := p.Measure(context.Background(), uuid)
	if want := uint64(300<<20 + margin); err != nil || got.ContextBytes != want {
		t.Errorf("Measure = %+v, %v; want a context of %d", got, err, want)
	}
	// The driver has none of what the other figures take.
	if len(got.Unknown) != 5 || got.BlockBytes != 0 || !strings.Contains(got.Unknown[1], "block_bytes: the driver library has no cuMemAlloc") {
		t.Errorf("unknown: %q", got.Unknown)
	}
}

// While somebody else takes memory, the device's total says nothing.
func TestMeasureBesideOthers(t *testing.T) {
	var moving []nvml.Sample
	for i := range 100 {
		moving = append(moving, nvml.Sample{UsedBytes: uint64(i) << 20, UsedKnown: true})
	}
	p := prober(t, build(t, "-DINIT=0", "-DWAIT=0"), moving...)
	if got, err := p.Measure(context.Background(), uuid); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "others take memory") {
		t.Errorf("Measure = %+v, %v", got, err)
	}
}

func TestMeasureFails(t *testing.T) {
	good := nvml.Sample{UsedBytes: 1, UsedKnown: true}
	for _, tc := range []struct {
		name, lib, uuid, want string
		sample                nvml.Sample
	}{
		{"no library", filepath.Join(t.TempDir(), "none.so"), uuid, "none.so", good},
		{"driver not up", build(t, "-DINIT=100", "-DWAIT=0"), uuid, "CUDA error 100", good},
		{"another device", build(t, "-DINIT=0", "-DWAIT=0"), "GPU-" + strings.Repeat("1", 32), "no such device", good},
		{"no context", build(t, "-DINIT=0", "-DWAIT=0"), strings.Replace(uuid, "GPU-00", "GPU-09", 1), "CUDA error 101", good},
		{"no figures", build(t, "-DINIT=0", "-DWAIT=0"), uuid, "0 bytes", nvml.Sample{}},
		{"slow driver", build(t, "-DINIT=0", "-DWAIT=30"), uuid, "in time", good},
	} {
		t.Run(tc.name, func(t *testing.T) {
			limit := 10 * time.Second
			if tc.name == "slow driver" {
				limit = 200 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			begin := time.Now()
			_, err := prober(t, tc.lib, tc.sample).Measure(ctx, tc.uuid)
			if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Measure: %v, want ErrUnknown and %q", err, tc.want)
			}
			if d := time.Since(begin); d > limit+5*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

func TestCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	c := OpenCache(dir)
	if _, ok := c.Get("1", "X"); ok {
		t.Error("an empty cache has a figure")
	}
	if err := c.Put("1", "X", Figures{ContextBytes: 5, BlockBytes: 512}); err != nil {
		t.Fatal(err)
	}
	if v, ok := OpenCache(dir).Get("1", "X"); !ok || v.ContextBytes != 5 || v.BlockBytes != 512 {
		t.Errorf("Get = %+v, %v", v, ok)
	}
	if _, ok := OpenCache(dir).Get("2", "X"); ok {
		t.Error("another driver's figure was used")
	}
	if err := c.Put("1", "Y", Figures{ContextBytes: 6, Unknown: []string{"block_bytes: refused"}}); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Get("1", "Y"); !ok {
		t.Error("figures that lack one are measured again and again")
	}
	if err := c.Put("1", "Z", Figures{ContextBytes: 7}); err != nil {
		t.Fatal(err)
	}
	if _, ok := OpenCache(dir).Get("1", "Y"); ok {
		t.Error("figures that lack one were kept for the next daemon")
	}
	for _, bad := range []string{
		"", "{", `{"version":9,"figures":{"1/X":{"context_bytes":5}}}`, `{"version":1,"context_bytes":{"1/X":5}}`, `{"version":2,"figures":{"1/X":{"context_bytes":0}}}`,
		`{"version":2,"figures":{"1/X":{"context_bytes":99999999999999}}}`, `{"version":2,"figures":{"1/X":{"context_bytes":5,"block_bytes":3}}}`,
	} {
		os.WriteFile(filepath.Join(dir, cacheName), []byte(bad), 0o600)
		if v, ok := OpenCache(dir).Get("1", "X"); ok {
			t.Errorf("cache %q gave %+v", bad, v)
		}
	}
}

func TestParseUUID(t *testing.T) {
	u, err := ParseUUID(uuid)
	if err != nil || u[1] != 0x11 || u[15] != 0xff {
		t.Errorf("ParseUUID = %x, %v", u, err)
	}
	for _, bad := range []string{"", "GPU-", "MIG-" + uuid[4:], uuid[:20], uuid + "0", "GPU-zz112233-4455-6677-8899-aabbccddeeff"} {
		if _, err := ParseUUID(bad); err == nil {
			t.Errorf("ParseUUID(%q) succeeded", bad)
		}
	}
}
