// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// oldDriver is a management library with one GPU that lacks what newer drivers
// have: a call of a name that it does not export would end the process.
const oldDriver = `
#include <string.h>
struct memory { unsigned long long total, free, used; };
struct process { unsigned pid; unsigned long long used; unsigned gi, ci; };
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *s, unsigned n) { strncpy(s, "450.80.02", n); return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { if (i) return 15; *h = (void *)0x1000; return 0; }
int nvmlDeviceGetUUID(void *h, char *s, unsigned n) { strncpy(s, "GPU-00000000-0000-0000-0000-000000000001", n); return 0; }
int nvmlDeviceGetName(void *h, char *s, unsigned n) { strncpy(s, "Old GPU", n); return 0; }
int nvmlDeviceGetMemoryInfo(void *h, struct memory *m) { m->total = 1000; m->used = 400; m->free = 600; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v2(void *h, unsigned *n, struct process *p) {
	unsigned have = *n;
	*n = 2;
	if (have < 2) return 7;
	p[0] = (struct process){ .pid = 10, .used = 300 };
	p[1] = (struct process){ .pid = 11, .used = ~0ULL };
	return 0;
}
int nvmlDeviceGetGraphicsRunningProcesses_v2(void *h, unsigned *n, struct process *p) { *n = 0; return 0; }
`

// TestOldDriver runs in a process of its own: the names of a management library
// are process-wide.
func TestOldDriver(t *testing.T) {
	if lib := os.Getenv("GPUSHARE_TEST_NVML"); lib != "" {
		tryOldDriver(t, lib)
		return
	}
	dir := t.TempDir()
	src, lib := filepath.Join(dir, "d.c"), filepath.Join(dir, "libnvidia-ml.so.1")
	if err := os.WriteFile(src, []byte(oldDriver), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-w", "-o", lib, src).CombinedOutput(); err != nil {
		t.Fatalf("build a driver: %v\n%s", err, out)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOldDriver$", "-test.v")
	cmd.Env = append(os.Environ(), "GPUSHARE_TEST_NVML="+lib)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func tryOldDriver(t *testing.T, lib string) {
	l := New(Open(lib), 5*time.Second)
	defer l.Close()
	inv, err := l.Inventory(context.Background())
	if err != nil || inv.DriverVersion != "450.80.02" || len(inv.Devices) != 2 {
		t.Fatalf("Inventory = %+v, %v", inv, err)
	}
	const uuid = "GPU-00000000-0000-0000-0000-000000000001"
	if d := inv.Devices[0]; d.UUID != uuid || d.Name != "Old GPU" || d.MemoryTotal != 1000 || d.MemoryReserved != 0 || d.Err != nil || d.Simulated() {
		t.Errorf("GPU 0 = %+v", d)
	}
	if d := inv.Devices[1]; d.Err == nil { // lost: its own trouble
		t.Errorf("GPU 1 = %+v", d)
	}
	s, err := l.Sample(context.Background(), uuid)
	want := Sample{UsedBytes: 400, UsedKnown: true, Processes: []Process{{PID: 10, Bytes: 300, Known: true}, {PID: 11}}}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("Sample = %+v, %v; want %+v", s, err, want)
	}
	if _, err := l.Sample(context.Background(), "GPU-none"); err == nil {
		t.Error("a GPU that is not there was sampled")
	}
}
