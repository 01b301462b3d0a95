// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/server"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

const gib = 1 << 30

// backend is a daemon with fixed containers.
type backend struct{ empty, host bool }

func (backend) Claim(context.Context, v1.ClaimRequest) (v1.Claim, error) {
	return v1.Claim{}, errors.New("not asked for here")
}
func (backend) Release(string, int) error { return nil }

func ptr(n uint64) *uint64 { return &n }

func (b backend) List(context.Context) v1.ContainerList {
	out := v1.ContainerList{APIVersion: v1.APIVersion, Simulated: !b.empty, Containers: []v1.Container{}}
	if b.empty {
		return out
	}
	uuid := "GPU-00000000-0000-0000-0000-00000000000"
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	out.Containers = []v1.Container{
		{ID: strings.Repeat("a1", 32), Name: "train", Engine: "docker", Phase: v1.PhaseRunning, State: v1.StateEnforced, PID: 71, Processes: 2, Created: created,
			Source: v1.SourceEnv, Request: v1.Request{Memory: "10Gi", Compute: "50%"},
			GPUs: []v1.ContainerGPU{{Index: 0, UUID: uuid + "0", MemoryLimitBytes: 10 * gib, MemoryUsedBytes: 7*gib + 400<<20, MemoryLedgerBytes: 7 * gib, MemoryDriverBytes: ptr(7*gib + 400<<20), MemoryPeakBytes: 8 * gib,
				ComputeMilli: 500, ComputeMaxMilli: 500, ComputeUsedMilli: 494, ThrottledMilli: 310, Launches: 12345}}},
		{ID: strings.Repeat("b2", 32), Name: "llm", Engine: "docker", Phase: v1.PhaseRunning, State: v1.StateDegraded, Reason: "unpriced", PID: 72, Processes: 1, Created: created,
			GPUs: []v1.ContainerGPU{
				{Index: 0, UUID: uuid + "0", MemoryLimitBytes: 8 * gib, MemoryUsedBytes: 8*gib - 1, ComputeMilli: 0, ComputeMaxMilli: 1000, ComputeUsedMilli: 260, Denied: 12},
				{Index: 1, UUID: uuid + "1", MemoryLimitBytes: 512 << 20, MemoryUsedBytes: 0, ComputeMilli: 100, ComputeMaxMilli: 300},
			}},
		{ID: strings.Repeat("c3", 32), Engine: "runc", Phase: v1.PhasePending, State: v1.StateEnforced, Created: created,
			Source: v1.SourceAnnotation, Request: v1.Request{Profile: "1of4"},
			GPUs: []v1.ContainerGPU{{Index: 1, UUID: uuid + "1", MemoryLimitBytes: 1000, ComputeMilli: 1, ComputeMaxMilli: 1000}}},
		{ID: strings.Repeat("d4", 32), Name: "capped", Engine: "docker", Phase: v1.PhaseRunning, State: v1.StateDegraded, Created: created,
			Reason: "privileged by node policy", Exposed: []string{v1.ExposedPrivileged},
			GPUs: []v1.ContainerGPU{{Index: 1, UUID: uuid + "1", MemoryLimitBytes: 1 << 40, ComputeMilli: 0, ComputeMaxMilli: 333}}},
	}
	if b.host {
		out.Containers = out.Containers[:2]
		out.Containers[1].HostMemoryLimitBytes, out.Containers[1].HostMemoryUsedBytes = 16*gib, 3*gib
		out.Containers[1].Request = v1.Request{Memory: "8Gi", HostMemory: "16Gi"}
	}
	return out
}

func (b backend) Container(ctx context.Context, ref string) (v1.Container, error) {
	for _, c := range b.List(ctx).Containers {
		if c.Name != ref {
			continue
		}
		c.APIVersion = v1.APIVersion
		if slot := 3; ref == "train" {
			c.Details = &v1.Details{
				Asked: v1.Request{Memory: "8Gi", Compute: "50%"},
				Set:   map[string]v1.SetWord{v1.LimitMemory: {Word: "10Gi", Time: c.Created.Add(time.Hour)}},
				Pod:   &v1.Pod{Namespace: "ml", Name: "train-0", Container: "main"}, Bundle: "/run/b", RuntimeRoot: "/run/runc",
				Cgroup: "/docker/a1", Directory: "/run/gpushare/c/a1", ClaimantPID: 70,
				Libraries: []v1.Library{{Directory: "/usr/local/lib/gpushare/0.1.0-abc", Processes: 2}, {Processes: 1}},
				Processes: []v1.Process{
					{PID: 71, ContainerPID: 1, Command: "python3", Slot: &slot, MemoryBytes: 7 * gib, Library: "/usr/local/lib/gpushare/0.1.0-abc"},
					{PID: 80, ContainerPID: 9, Command: "a\x1bb"},
				},
				ProcessesTotal: 70, Events: events()[:2],
			}
		}
		return c, nil
	}
	return v1.Container{}, v1.Errorf(http.StatusNotFound, v1.CodeNotFound, "no container %q holds a share; see: gpushare ps", ref)
}

func events() []v1.Event {
	at, gpu := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 0
	return []v1.Event{
		{Seq: 11, Time: at, Container: strings.Repeat("a1", 32), Reason: v1.EventClaimed, Message: "asked for memory 8Gi (by env): 8 GiB of GPU 0", GPU: &gpu},
		{Seq: 12, Time: at.Add(time.Second), Container: strings.Repeat("a1", 32), Name: "train", Reason: v1.EventLimitChanged, Message: "8 GiB → 10 GiB", GPU: &gpu},
		{Seq: 13, Time: at.Add(2 * time.Second), Reason: v1.EventRefused, Message: "asked for memory 99Gi: no room"},
	}
}

func (b backend) Events(_ context.Context, q v1.EventQuery, begin func(bool), send func(v1.Event) error) error {
	if q.Container == "nobody" {
		return v1.Errorf(http.StatusNotFound, v1.CodeNotFound, "nothing is known of a container %q; see: gpushare events", q.Container)
	}
	begin(!b.empty)
	for _, e := range events() {
		if e.Seq > q.Since && (q.Container == "" || e.Container != "") {
			if err := send(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (backend) Health() error { return nil }

func (backend) Resize(_ context.Context, ref string, r v1.ResizeRequest) (v1.Resize, error) {
	if ref != "llm" {
		return v1.Resize{}, v1.Errorf(http.StatusNotFound, v1.CodeNotFound, "no container %q holds a share; see: gpushare ps", ref)
	}
	if r.Memory == "6Gi" && !r.Soft {
		return v1.Resize{}, v1.Errorf(http.StatusConflict, v1.CodeMemInUse, "cannot lower llm to 6 GiB: 7.9 GiB are in use")
	}
	old := v1.Limits{GPUIndex: 0, MemoryBytes: 8 * gib, ComputeMaxMilli: 1000}
	now := v1.Limits{GPUIndex: 0, MemoryBytes: 12 * gib, ComputeMilli: 400, ComputeMaxMilli: 600}
	if r.HostMemory != "" {
		now = old
		now.HostMemoryBytes = 4 * gib
	}
	if r.Soft {
		now = old
		now.MemoryBytes++
	}
	return v1.Resize{APIVersion: v1.APIVersion, ID: strings.Repeat("b2", 32), Name: "llm", Old: []v1.Limits{old}, New: []v1.Limits{now}}, nil
}

func (b backend) Daemon(context.Context) v1.Daemon {
	d := v1.Daemon{APIVersion: v1.APIVersion, Version: "0.1.0", PID: 7, Socket: "/run/gpushare/gpushared.sock", GPUs: []v1.GPU{}}
	if b.empty {
		d.Reason = "start libnvidia-ml.so.1: not found: no usable driver"
		return d
	}
	if b.host {
		d.HostMemoryBytes, d.HostMemoryPromisedBytes = 64*gib, 16*gib
	}
	d.DriverVersion, d.Simulated, d.Containers = "575.57.08", true, 4
	d.Warnings = []string{"record of container abc set aside: not a record"}
	d.GPUs = []v1.GPU{
		{Index: 0, Name: "NVIDIA H100 80GB HBM3 (SIMULATED)", MemoryTotalBytes: 80 * gib, MemoryPromisedBytes: 18 * gib, MemoryUsedBytes: ptr(15 * gib), ComputePromisedMilli: 500, Containers: 2, ContextBytes: 300 << 20, ContextMeasured: true},
		{Index: 1, Name: "NVIDIA H100 80GB HBM3 (SIMULATED)", MemoryTotalBytes: 80 * gib, ContextBytes: 512 << 20, Reason: "the driver does not list it any more"},
	}
	return d
}

// serve returns the socket of a daemon that works with b.
func serve(t *testing.T, b server.Backend) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "d.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: server.Handler(b)}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return path
}

// call runs the command line and returns what it wrote and its exit status.
func call(args ...string) (out, errs string, status int, argv []string) {
	var o, e bytes.Buffer
	tm := &terminal{out: &o, err: &e, exec: func(a []string) error { argv = a; return nil }}
	status = tm.run(append([]string{"gpushare"}, args...))
	return o.String(), e.String(), status, argv
}

func TestGolden(t *testing.T) {
	full, empty, host := serve(t, backend{}), serve(t, backend{empty: true}), serve(t, backend{host: true})
	for name, tc := range map[string]struct {
		socket string
		args   []string
		status int
	}{
		"ps":              {full, []string{"ps"}, 0},
		"ps-wide":         {full, []string{"ps", "-o", "wide"}, 0},
		"ps-json":         {full, []string{"ps", "-o", "json"}, 0},
		"ps-quiet":        {full, []string{"ps", "-q"}, 0},
		"ps-quiet-full":   {full, []string{"ps", "-q", "--no-trunc"}, 0},
		"ps-empty":        {empty, []string{"ps"}, 0},
		"ps-argument":     {full, []string{"ps", "x"}, 2},
		"ps-form":         {full, []string{"ps", "-o", "xml"}, 2},
		"daemon":          {full, []string{"daemon"}, 0},
		"daemon-json":     {full, []string{"daemon", "-o=json"}, 0},
		"daemon-no-gpu":   {empty, []string{"daemon"}, 4},
		"events":          {full, []string{"events"}, 0},
		"events-of":       {full, []string{"events", "train", "-o", "json"}, 0},
		"events-since":    {full, []string{"events", "--since", "2026-01-02T03:04:06Z"}, 0},
		"events-when":     {full, []string{"events", "--since", "yesterday"}, 2},
		"events-unknown":  {full, []string{"events", "nobody"}, 5},
		"events-two":      {full, []string{"events", "a", "b"}, 2},
		"inspect":         {full, []string{"inspect", "train", "llm"}, 0},
		"inspect-json":    {full, []string{"inspect", "-o", "json", "train"}, 0},
		"inspect-unknown": {full, []string{"inspect", "nobody", "train", "noone"}, 5},
		"inspect-whom":    {full, []string{"inspect"}, 2},
		"inspect-form":    {full, []string{"inspect", "-o", "table", "train"}, 2},
		"set":             {full, []string{"set", "llm", "--gpu-memory", "12g", "--gpu-compute", "40%", "--gpu-compute-max=60%"}, 0},
		"set-flags-first": {full, []string{"set", "--gpu-memory=12Gi", "llm"}, 0},
		"set-soft":        {full, []string{"set", "llm", "--soft", "--gpu-memory", "6Gi"}, 0},
		"set-json":        {full, []string{"set", "llm", "-o", "json", "--gpu-memory", "12Gi"}, 0},
		"set-in-use":      {full, []string{"set", "llm", "--gpu-memory", "6Gi"}, 6},
		"set-unknown":     {full, []string{"set", "nobody", "--gpu-memory", "6Gi"}, 5},
		"set-unit":        {full, []string{"set", "llm", "--gpu-memory", "8"}, 2},
		"set-share":       {full, []string{"set", "llm", "--gpu-compute", "30"}, 2},
		"set-nothing":     {full, []string{"set", "llm"}, 2},
		"set-whom":        {full, []string{"set", "--gpu-memory", "8Gi"}, 2},
		"set-empty":       {full, []string{"set", "llm", "--gpu-memory="}, 2},
		"set-profile":     {full, []string{"set", "llm", "--gpu-profile", "1of4"}, 0},
		"set-no-profile":  {full, []string{"set", "llm", "--gpu-profile", "quarter"}, 2},
		"set-both":        {full, []string{"set", "llm", "--gpu-profile", "1of4", "--gpu-memory", "8g"}, 2},
		"set-host":        {full, []string{"set", "llm", "--gpu-host-memory", "4g"}, 0},
		"set-host-unit":   {full, []string{"set", "llm", "--gpu-host-memory", "25%"}, 2},
		"ps-host":         {host, []string{"ps"}, 0},
		"ps-host-wide":    {host, []string{"ps", "-o", "wide"}, 0},
		"ps-host-json":    {host, []string{"ps", "-o", "json"}, 0},
		"inspect-host":    {host, []string{"inspect", "llm"}, 0},
		"daemon-host":     {host, []string{"daemon"}, 0},
		"config":          {full, []string{"config"}, 0},
		"config-unknown":  {full, []string{"config", "show"}, 2},
		"set-bad-flag":    {full, []string{"set", "llm", "--memory", "8Gi"}, 2},
		"set-no-value":    {full, []string{"set", "llm", "--gpu-memory"}, 2},
		"version":         {full, []string{"version"}, 0},
		"version-json":    {full, []string{"version", "-o", "json"}, 0},
		"unknown":         {full, []string{"pss"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, status, _ := call(append([]string{"--host", "unix://" + tc.socket}, tc.args...)...)
			if status != tc.status {
				t.Errorf("exit status %d, want %d", status, tc.status)
			}
			got := "--- stdout\n" + out + "--- stderr\n" + errs
			path := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || got != string(want) {
				t.Errorf("got\n%s\nwant (%v)\n%s", got, err, want)
			}
			if strings.Contains(got, "\x1b") {
				t.Error("colour in a file")
			}
			if strings.Contains(strings.Join(tc.args, " "), "json") {
				checkJSON(t, tc.args[0], out)
			}
		})
	}
}

// checkJSON fails unless out is one versioned object; inspect has a list of those,
// events have an object a line.
func checkJSON(t *testing.T, command, out string) {
	t.Helper()
	var v map[string]any
	var list []map[string]any
	switch command {
	case "events":
		for line := range strings.Lines(out) {
			if err := json.Unmarshal([]byte(line), &v); err != nil || v["seq"] == nil {
				t.Errorf("JSON: %v in %q", err, line)
			}
		}
		return
	case "inspect":
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) == 0 {
			t.Errorf("JSON: %v, %d containers", err, len(list))
			return
		}
		v = list[0]
	default:
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			t.Errorf("JSON: %v", err)
		}
	}
	if v["apiVersion"] != v1.APIVersion {
		t.Errorf("JSON: apiVersion %v", v["apiVersion"])
	}
}

func TestDaemonDown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.sock")
	for _, command := range [][]string{{"ps"}, {"daemon"}, {"set", "x", "--gpu-memory", "8Gi"}} {
		out, errs, status, _ := call(append([]string{"-H", path}, command...)...)
		if status != 3 || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "Start it as root: gpushared") || !strings.HasSuffix(errs, "[GS-DAEMON-DOWN]\n") {
			t.Errorf("%v: status %d, %q %q", command, status, out, errs)
		}
	}
}

// Each code has the exit status that scripts were promised.
func TestStatuses(t *testing.T) {
	for code, want := range map[string]int{
		v1.CodeDaemonDown: 3, v1.CodeTimeout: 7, v1.CodeNoGPU: 4, v1.CodeNotFound: 5, v1.CodeGPUUnknown: 5, v1.CodeUnit: 2,
		v1.CodeNoFit: 6, v1.CodeMemTooSmall: 6, v1.CodeMemInUse: 6, v1.CodeConflict: 6, v1.CodeCap: 6, v1.CodePolicy: 6, v1.CodeInternal: 1,
	} {
		if got := status(v1.Errorf(400, code, "x")); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
}
