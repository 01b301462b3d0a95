// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	task "github.com/containerd/containerd/api/runtime/task/v3"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/process"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/typeurl/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/hook"
	"github.com/gpushare/gpushare/hook/create"
	"github.com/gpushare/gpushare/internal/config"
)

// fakeRunc stands in for containerd's service. Its other methods are nil and panic.
type fakeRunc struct {
	task.TTRPCTaskService
	create func(*task.CreateTaskRequest) error
	delete func() error
}

func (f *fakeRunc) Create(_ context.Context, r *task.CreateTaskRequest) (*task.CreateTaskResponse, error) {
	return &task.CreateTaskResponse{Pid: 42}, f.create(r)
}

func (f *fakeRunc) Delete(context.Context, *task.DeleteRequest) (*task.DeleteResponse, error) {
	return &task.DeleteResponse{Pid: 42}, f.delete()
}

// fakeDaemon counts.
type fakeDaemon struct {
	mu       sync.Mutex
	claims   []v1.ClaimRequest
	released []string
	stall    bool
}

func (d *fakeDaemon) Claim(_ context.Context, r v1.ClaimRequest) (v1.Claim, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.claims = append(d.claims, r)
	return v1.Claim{ID: r.ID}, nil
}

func (d *fakeDaemon) Release(ctx context.Context, id string) error {
	d.mu.Lock()
	d.released = append(d.released, id)
	d.mu.Unlock()
	if d.stall {
		<-ctx.Done()
	}
	return ctx.Err()
}

// world is a service with fakes around it.
type world struct {
	*service
	runc   *fakeRunc
	daemon *fakeDaemon
	bundle string
	seen   create.Container
	made   *task.CreateTaskRequest
}

func newWorld(t *testing.T, config_ *config.Config) *world {
	t.Helper()
	w := &world{daemon: &fakeDaemon{}, bundle: t.TempDir()}
	w.runc = &fakeRunc{create: func(r *task.CreateTaskRequest) error { w.made = r; return nil }, delete: func() error { return nil }}
	w.service = newService(w.runc)
	w.configuration = func() (*config.Config, error) { return config_, nil }
	w.service.daemon = func(*config.Config) create.Claims { return w.daemon }
	// A GPU container of which nothing but the claim matters here.
	w.prepare = func(ctx context.Context, _ *config.Config, ct create.Container, d create.Claims) (prepared, error) {
		w.seen = ct
		if _, err := d.Claim(ctx, v1.ClaimRequest{ID: ct.ID}); err != nil {
			return prepared{}, err
		}
		return prepared{true, func() { _ = d.Release(context.Background(), ct.ID) }}, nil
	}
	return w
}

// configured is a configuration with a low-level runtime that exists and is root's.
func configured(t *testing.T) *config.Config {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: the low-level runtime must belong to root")
	}
	c := config.Default()
	c.Runtimes = []string{program(t, "runc")}
	return c
}

// program makes a program that does nothing, called name.
func program(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func (w *world) create(t *testing.T, r *task.CreateTaskRequest) error {
	t.Helper()
	r.Bundle = w.bundle
	_, err := w.Create(namespaces.WithNamespace(t.Context(), "ns"), r)
	return err
}

func TestDefaultRuntimeRootIsContainerds(t *testing.T) {
	if defaultRuntimeRoot != process.RuncRoot {
		t.Errorf("the runtime's root is %s, containerd's service uses %s", defaultRuntimeRoot, process.RuncRoot)
	}
}

// What the daemon needs to find the container again, and what runc's service gets.
func TestCreate(t *testing.T) {
	c := configured(t)
	w := newWorld(t, c)
	if err := w.create(t, &task.CreateTaskRequest{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	want := create.Container{ID: "a", Bundle: w.bundle, RuntimeRoot: "/run/containerd/runc/ns", PID: os.Getpid()}
	if w.seen != want {
		t.Errorf("prepared %+v, want %+v", w.seen, want)
	}
	// As containerd's own service reads it.
	got, err := typeurl.UnmarshalAny(w.made.Options)
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := got.(*runcoptions.Options); !ok || o.BinaryName != c.Runtimes[0] {
		t.Errorf("runc's service got %T %v, want BinaryName %s", got, got, c.Runtimes[0])
	}
	if err := w.create(t, &task.CreateTaskRequest{ID: "b", Options: wrap(t, &runcoptions.Options{Root: "/elsewhere"}), Checkpoint: "/c"}); err != nil {
		t.Fatal(err)
	}
	if w.seen.RuntimeRoot != "/elsewhere/ns" || !w.seen.Restore {
		t.Errorf("prepared %+v, want root /elsewhere/ns and a restore", w.seen)
	}
	if len(w.daemon.released) != 0 {
		t.Errorf("released %v of containers that were made", w.daemon.released)
	}
}

// A container that is not made holds no claim afterwards, whatever went wrong: the
// claimant lives on.
func TestFailedCreateGivesClaimBack(t *testing.T) {
	for name, break_ := range map[string]func(*world){
		"runc fails": func(w *world) {
			w.runc.create = func(*task.CreateTaskRequest) error { return errors.New("runc says no") }
		},
		"runc panics": func(w *world) { w.runc.create = func(*task.CreateTaskRequest) error { panic("oh") } },
		"editor panics behind the claim": func(w *world) {
			inner := w.prepare
			w.prepare = func(ctx context.Context, c *config.Config, ct create.Container, d create.Claims) (prepared, error) {
				_, _ = inner(ctx, c, ct, d)
				panic("oh")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, configured(t))
			break_(w)
			if err := w.create(t, &task.CreateTaskRequest{ID: "a"}); err == nil {
				t.Fatal("no error")
			}
			if !reflect.DeepEqual(w.daemon.released, []string{"a"}) {
				t.Errorf("released %q, want a", w.daemon.released)
			}
		})
	}
}

// The reason reaches whoever asked for the container, in one line.
func TestRefusalIsShown(t *testing.T) {
	w := newWorld(t, configured(t))
	w.prepare = func(context.Context, *config.Config, create.Container, create.Claims) (prepared, error) {
		return prepared{}, &hook.Refusal{Code: hook.CodeNoShare, Message: "no share\nof \x1b[31mit"}
	}
	err := errgrpc.ToNative(w.create(t, &task.CreateTaskRequest{ID: "a"}))
	if !errdefs.IsFailedPrecondition(err) || !strings.Contains(err.Error(), "gpushare: no share of  [31mit  [GS-NO-SHARE]") {
		t.Errorf("error %q", err)
	}
	if w.made != nil {
		t.Error("runc's service was called nevertheless")
	}
	// containerd 1.6 makes an error of the class with the message as a format.
	w.prepare = func(context.Context, *config.Config, create.Container, create.Claims) (prepared, error) {
		return prepared{}, &hook.Refusal{Code: hook.CodeNoShare, Message: "30% asked"}
	}
	if err := w.create(t, &task.CreateTaskRequest{ID: "a"}); status.Code(err) != codes.Unknown || !strings.Contains(err.Error(), "30% asked") {
		t.Errorf("error with a per cent sign: %v", err)
	}
}

// A config.toml that cannot be used refuses GPU containers and no others.
func TestBrokenConfiguration(t *testing.T) {
	for spec, gpu := range map[string]bool{
		`{"process":{"env":["GPUSHARE_MEMORY=1Gi"]}}`: true,
		`{"process":{"env":["PATH=/bin"]}}`:           false,
		`{`:                                           true, // nobody knows
	} {
		w := newWorld(t, nil)
		w.configuration = func() (*config.Config, error) { return nil, errors.New("read config.toml: no") }
		if err := os.WriteFile(filepath.Join(w.bundle, "config.json"), []byte(spec), 0o600); err != nil {
			t.Fatal(err)
		}
		err := w.create(t, &task.CreateTaskRequest{ID: "a"})
		switch {
		case gpu && (err == nil || !strings.Contains(err.Error(), "read config.toml: no  [GS-CONFIG]") || w.made != nil):
			t.Errorf("%s: made %v, error %v", spec, w.made, err)
		case !gpu && (err != nil || w.made == nil):
			t.Errorf("%s: made %v, error %v", spec, w.made, err)
		}
	}
}

// A runtime that has a kernel of its own gets no GPU container, and others as
// before.
func TestSandboxedRuntime(t *testing.T) {
	for _, name := range []string{"runsc", "kata-runtime", "krun"} {
		w := newWorld(t, configured(t))
		options := wrap(t, &runcoptions.Options{BinaryName: program(t, name)})
		err := w.create(t, &task.CreateTaskRequest{ID: "a", Options: options})
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "[GS-RUNTIME]") {
			t.Errorf("GPU container with %s: %v", name, err)
		}
		if len(w.daemon.claims) != 0 {
			t.Errorf("%s: the daemon was asked", name)
		}
		w.prepare = func(context.Context, *config.Config, create.Container, create.Claims) (prepared, error) {
			return prepared{}, nil
		}
		if err := w.create(t, &task.CreateTaskRequest{ID: "a", Options: options}); err != nil {
			t.Errorf("other container with %s: %v", name, err)
		}
	}
}

// Deleting a container is told to the daemon, deleting one of its processes is not,
// and neither a daemon that stalls nor one that is gone keeps a delete.
func TestDeleteReleases(t *testing.T) {
	w := newWorld(t, configured(t))
	w.daemon.stall = true
	if err := w.create(t, &task.CreateTaskRequest{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*task.DeleteRequest{{ID: "a", ExecID: "e"}, {ID: "other"}} {
		if _, err := w.Delete(t.Context(), r); err != nil || len(w.daemon.released) != 0 {
			t.Errorf("delete %v: %v, released %v", r, err, w.daemon.released)
		}
	}
	w.runc.delete = func() error { return errdefs.ErrFailedPrecondition }
	if _, err := w.Delete(t.Context(), &task.DeleteRequest{ID: "a"}); err == nil || len(w.daemon.released) != 0 {
		t.Errorf("a delete that failed: %v, released %v", err, w.daemon.released)
	}
	w.runc.delete = func() error { return nil }
	begin := time.Now()
	response, err := w.Delete(t.Context(), &task.DeleteRequest{ID: "a"})
	if err != nil || response.GetPid() != 42 {
		t.Errorf("delete: %v, %v", response, err)
	}
	if !reflect.DeepEqual(w.daemon.released, []string{"a"}) {
		t.Errorf("released %q, want a", w.daemon.released)
	}
	// The bound is 50 ms; a loaded machine may be late, but not by the client's 2 s.
	if took := time.Since(begin); took > time.Second {
		t.Errorf("a daemon that stalls kept the delete for %s", took)
	}
}

// A panic in any method ends that call, not the process.
func TestPanicsAreErrors(t *testing.T) {
	w := newWorld(t, configured(t))
	w.runc.create = func(*task.CreateTaskRequest) error { panic("in Create") }
	w.runc.delete = func() error { panic("in Delete") }
	all := methods(w.service)
	if want := reflect.TypeFor[task.TTRPCTaskService]().NumMethod(); len(all) != want {
		t.Errorf("%d methods are served, the task API has %d", len(all), want)
	}
	for name, call := range all {
		// The methods of the fake below are nil: calling one panics by itself.
		_, err := call(namespaces.WithNamespace(t.Context(), "ns"), func(any) error { return nil })
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "GS-INTERNAL") {
			t.Errorf("panic in %s gave %v", name, err)
		}
		if !errdefs.IsInternal(errgrpc.ToNative(err)) {
			t.Errorf("panic in %s is of another class: %v", name, err)
		}
	}
}

// wrap is m as containerd sends it.
func wrap(t *testing.T, m any) *anypb.Any {
	t.Helper()
	a, err := typeurl.MarshalAnyToProto(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
