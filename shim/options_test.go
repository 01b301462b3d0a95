// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	task "github.com/containerd/containerd/api/runtime/task/v3"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/api/types/runtimeoptions/v1"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/typeurl/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const written = `
BinaryName = "/usr/sbin/crun"
SystemdCgroup = true
Root = "/run/other"
NoPivotRoot = true
IoUid = 7
`

func TestRuncOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "options.toml")
	if err := os.WriteFile(file, []byte(written), 0o644); err != nil {
		t.Fatal(err)
	}
	want := &runcoptions.Options{BinaryName: "/usr/sbin/crun", SystemdCgroup: true, Root: "/run/other", NoPivotRoot: true, IoUid: 7}
	withHost, err := anypb.New(want)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		in   *anypb.Any
		want *runcoptions.Options
		err  string
	}{
		"none":                         {nil, nil, ""},
		"an empty message":             {&anypb.Any{}, nil, ""},
		"runc's":                       {wrap(t, want), want, ""},
		"runc's, with a host":          {withHost, want, ""},
		"runc's, all at their zero":    {wrap(t, &runcoptions.Options{}), &runcoptions.Options{}, ""},
		"runc's, damaged":              {&anypb.Any{TypeUrl: wrap(t, want).GetTypeUrl(), Value: []byte{0xff}}, nil, "containerd.runc.v1.Options"},
		"generic, with a body":         {wrap(t, &runtimeoptions.Options{ConfigBody: []byte(written)}), want, ""},
		"generic, naming its type":     {wrap(t, &runtimeoptions.Options{TypeUrl: "x", ConfigBody: []byte(written)}), want, ""},
		"generic, with a file":         {wrap(t, &runtimeoptions.Options{ConfigPath: file}), want, ""},
		"generic, with nothing":        {wrap(t, &runtimeoptions.Options{}), nil, ""},
		"generic, misspelt key":        {wrap(t, &runtimeoptions.Options{ConfigBody: []byte("SystemdCgroups = true")}), nil, `unknown key "SystemdCgroups"`},
		"generic, no TOML":             {wrap(t, &runtimeoptions.Options{ConfigBody: []byte("{]")}), nil, "ConfigBody"},
		"generic, file that is absent": {wrap(t, &runtimeoptions.Options{ConfigPath: file + "x"}), nil, "no such file"},
		"generic, relative file":       {wrap(t, &runtimeoptions.Options{ConfigPath: "options.toml"}), nil, "absolute"},
		"generic, damaged":             {&anypb.Any{TypeUrl: "runtimeoptions.v1.Options", Value: []byte{0xff}}, nil, "runtimeoptions.v1.Options"},
		"unknown type":                 {wrap(t, &task.StartRequest{ID: "x"}), nil, "containerd.task.v3.StartRequest"},
		"unknown type, no value":       {&anypb.Any{TypeUrl: "example.org/gvisor.Options"}, nil, "example.org/gvisor.Options"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "generic, with a file" && os.Geteuid() != 0 {
				t.Skip("needs root: the file must be root's")
			}
			got, err := runcOptions(c.in)
			if c.err != "" {
				if err == nil || !errdefs.IsInvalidArgument(err) || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want an invalid argument that says %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (got == nil) != (c.want == nil) || got != nil && !proto.Equal(got, c.want) {
				t.Errorf("options %v, want %v", got, c.want)
			}
		})
	}
}

// A file that others can write must not say what root runs.
func TestOptionsFileOfOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "options.toml")
	if err := os.WriteFile(file, []byte(written), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := runcOptions(wrap(t, &runtimeoptions.Options{ConfigPath: file})); err == nil {
		t.Error("accepted")
	}
}

// An unknown type is told as such through the API, whatever the container is.
func TestUnknownOptionsOverTheAPI(t *testing.T) {
	w := newWorld(t, configured(t))
	err := errgrpc.ToNative(w.create(t, &task.CreateTaskRequest{ID: "a", Options: wrap(t, &task.StartRequest{ID: "x"})}))
	if !errdefs.IsInvalidArgument(err) || strings.Count(err.Error(), "invalid argument") != 1 {
		t.Errorf("error %v", err)
	}
	if len(w.daemon.claims) != 0 || w.made != nil {
		t.Error("went on nevertheless")
	}
}

// Without options, or with some that only name who owns a task's streams, the cgroup
// driver is read off the path that the engine chose; others decide.
func TestSystemdCgroup(t *testing.T) {
	for path, want := range map[string]bool{
		"system.slice:docker:4f1c":                          true,
		"kubepods-burstable-pod1.slice:cri-containerd:4f1c": true,
		":prefix:name":                  true,
		"/default/a":                    false,
		"/kubepods/burstable/pod1/4f1c": false,
		"":                              false,
		"a:b:c":                         false,
		"system.slice:docker":           false,
		"system.slice:docker:":          false,
		"/x.slice:docker:a":             false,
		"system.slice:docker:a:b":       false,
	} {
		w := newWorld(t, configured(t))
		if err := os.WriteFile(filepath.Join(w.bundle, "config.json"), []byte(`{"linux":{"cgroupsPath":"`+path+`"}}`), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			options *anypb.Any
			want    bool
		}{{nil, want}, {&anypb.Any{}, want}, {wrap(t, &runtimeoptions.Options{}), want}, {wrap(t, &runcoptions.Options{}), false},
			{wrap(t, &runcoptions.Options{IoUid: 1}), want}, {wrap(t, &runcoptions.Options{IoUid: 1, Root: "/r"}), false},
			{wrap(t, &runtimeoptions.Options{ConfigBody: []byte("SystemdCgroup = true")}), true},
			{wrap(t, &runtimeoptions.Options{ConfigBody: []byte("SystemdCgroup = false")}), false},
			{wrap(t, &runcoptions.Options{SystemdCgroup: true}), true}} {
			if err := w.create(t, &task.CreateTaskRequest{ID: "a", Options: c.options}); err != nil {
				t.Fatal(err)
			}
			got, err := typeurl.UnmarshalAny(w.made.Options)
			if err != nil {
				t.Fatal(err)
			}
			if got.(*runcoptions.Options).SystemdCgroup != c.want {
				t.Errorf("cgroup path %q, options %v: systemd %t, want %t", path, c.options, !c.want, c.want)
			}
		}
	}
}

// FuzzOptions: whatever an engine sends, it is options or an error.
func FuzzOptions(f *testing.F) {
	f.Add("runtimeoptions.v1.Options", []byte("\x1a\x05a = 1"))
	f.Add("containerd.runc.v1.Options", []byte{0x32, 1, 'x'})
	f.Fuzz(func(t *testing.T, url string, value []byte) {
		o, err := runcOptions(&anypb.Any{TypeUrl: url, Value: value})
		if err != nil && (o != nil || !errdefs.IsInvalidArgument(err)) {
			t.Errorf("options %v with error %v", o, err)
		}
	})
}
