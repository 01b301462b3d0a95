// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	bootstrap "github.com/containerd/containerd/api/runtime/bootstrap/v1"
	taskv2 "github.com/containerd/containerd/api/runtime/task/v2"
	taskv3 "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/log"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"
)

// builtDir is where the program is, once a test has asked for it.
var builtDir string

// built is the program, built as it ships, once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gpushare-shim-")
	if err != nil {
		return "", err
	}
	builtDir = dir
	path := filepath.Join(dir, "containerd-shim-gpushare-v1")
	cmd := exec.Command("go", "build", "-tags", "no_grpc", "-o", path, "./cmd/containerd-shim-gpushare-v1")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return path, os.Chmod(dir, 0o755)
})

func TestMain(m *testing.M) {
	log.L.Logger.SetOutput(io.Discard) // the panics that tests provoke
	code := m.Run()
	if builtDir != "" {
		os.RemoveAll(builtDir)
	}
	os.Exit(code)
}

// call is one call of the program in a bundle.
type call struct {
	flags       []string
	stdin       []byte
	annotations string
	env         []string
}

// begin calls start, in the bundle dir, and returns what containerd would read.
func begin(t *testing.T, dir string, c call) (string, error) {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"annotations":{`+c.annotations+`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	// Where the serving process writes its log; containerd reads it.
	fifo := filepath.Join(dir, "log")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	log, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	cmd := exec.Command(path, c.flags...)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(c.stdin)
	cmd.Env = append(os.Environ(), c.env...)
	out, err := cmd.CombinedOutput() // as containerd does
	return string(out), err
}

func flags(id, namespace, address string) []string {
	return []string{"-namespace", namespace, "-address", address, "-publish-binary", "/usr/bin/containerd", "-id", id, "start"}
}

func params(t *testing.T, id, namespace, address, sockets string) []byte {
	t.Helper()
	data, err := proto.Marshal(&bootstrap.BootstrapParams{
		InstanceID: id, Namespace: namespace, ContainerdGrpcAddress: address, ContainerdTtrpcAddress: address + ".ttrpc", SocketDir: &sockets,
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// serving is a shim that was started; it is ended with the test.
type serving struct {
	address string
	client  *ttrpc.Client
	ctx     context.Context
}

func connect(t *testing.T, address, namespace string) *serving {
	t.Helper()
	conn, err := shim.AnonDialer(address, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	s := &serving{address: address, client: ttrpc.NewClient(conn), ctx: namespaces.WithNamespace(context.Background(), namespace)}
	t.Cleanup(func() {
		_, _ = taskv3.NewTTRPCTaskClient(s.client).Shutdown(s.ctx, &taskv3.ShutdownRequest{Now: true})
		s.client.Close()
	})
	return s
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: sockets in /run, a low-level runtime that is root's")
	}
}

// A containerd before 2.3 gets a plain address, on which it calls version 2 of the
// task API; a later one gets a message, and calls version 3.
func TestStartProtocols(t *testing.T) {
	needRoot(t)
	sockets := short(t)
	options, err := proto.Marshal(wrap(t, &runcoptions.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		call
		old bool
	}{
		"1.6, no options":      {call{stdin: nil}, true},
		"1.6, with options":    {call{stdin: options}, true},
		"2.3":                  {call{stdin: params(t, "id", "ns", "/c.sock", sockets)}, false},
		"2.3, debugging":       {call{stdin: debugging(t, params(t, "id", "ns", "/c.sock", sockets))}, false},
		"without flags or env": {call{flags: []string{"start"}, stdin: params(t, "id", "ns", "/c.sock", sockets), env: []string{"TTRPC_ADDRESS="}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.flags == nil {
				// Old ones have their sockets in one place, so each containerd is another.
				c.flags = flags("id", "ns", "/c.sock")
				if c.old {
					c.flags = flags("id", "ns", dir)
				}
			}
			out, err := begin(t, dir, c.call)
			if err != nil {
				t.Fatalf("start: %v: %s", err, out)
			}
			address := out
			if !c.old {
				var r bootstrap.BootstrapResult
				if err := proto.Unmarshal([]byte(out), &r); err != nil || r.GetVersion() != 3 || r.GetProtocol() != "ttrpc" {
					t.Fatalf("answer %q: %v, %v", out, &r, err)
				}
				address = r.GetAddress()
			}
			path, ok := strings.CutPrefix(address, "unix:///")
			path = "/" + path
			if !ok {
				t.Fatalf("address %q is no path", address)
			}
			if got, err := shim.ReadAddress(filepath.Join(dir, "address")); c.old && (err != nil || got != address) {
				t.Errorf("address in the bundle: %q, %v", got, err)
			}
			info, err := os.Lstat(path)
			if err != nil || info.Mode() != os.ModeSocket|0o600 {
				t.Errorf("socket %s: %v, %v; want 0600", path, info.Mode(), err)
			}
			s := connect(t, address, "ns")
			if r, err := taskv2.NewTTRPCTaskClient(s.client).Connect(s.ctx, &taskv2.ConnectRequest{ID: "id"}); err != nil || r.GetShimPid() == 0 {
				t.Errorf("version 2 of the API: %v, %v", r, err)
			}
			three := taskv3.NewTTRPCTaskClient(s.client)
			if r, err := three.Connect(s.ctx, &taskv3.ConnectRequest{ID: "id"}); err != nil || r.GetShimPid() == 0 {
				t.Errorf("version 3 of the API: %v, %v", r, err)
			}
			// The bundle is gone before the shim, as with a pod's first container.
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			_, _ = three.Shutdown(s.ctx, &taskv3.ShutdownRequest{ID: "id"}) // it may end before it answers
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := s.client.UserOnCloseWait(ctx); err != nil {
				t.Fatalf("the shim does not end: %v", err)
			}
			gone(t, path)
			if c.old {
				return
			}
			// With debugging there is a second one.
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				left, err := os.ReadDir(sockets)
				if err == nil && len(left) == 0 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("left behind: %v, %v", left, err)
				}
			}
		})
	}
}

// debugging asks for debug messages in the parameters of a start.
func debugging(t *testing.T, parameters []byte) []byte {
	t.Helper()
	var p bootstrap.BootstrapParams
	if err := proto.Unmarshal(parameters, &p); err != nil {
		t.Fatal(err)
	}
	p.LogLevel = bootstrap.LogLevel_LOG_LEVEL_DEBUG
	data, err := proto.Marshal(&p)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// short is a directory for sockets, whose paths have at most 106 bytes.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// gone waits until there is no file; the kernel offers no event for a process that
// is not ours but this.
func gone(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s stays behind", path)
		}
	}
}

// The containers of a group share one shim, found by either annotation.
func TestGroup(t *testing.T) {
	needRoot(t)
	for _, annotation := range []string{"io.containerd.runc.v2.group", "io.kubernetes.cri.sandbox-id"} {
		sockets := short(t)
		address := func(dir, id string) string {
			out, err := begin(t, dir, call{flags: flags(id, "ns", "/c.sock"), stdin: params(t, id, "ns", "/c.sock", sockets), annotations: `"` + annotation + `":"g"`})
			if err != nil {
				t.Fatalf("start %s: %v: %s", id, err, out)
			}
			var r bootstrap.BootstrapResult
			if err := proto.Unmarshal([]byte(out), &r); err != nil {
				t.Fatal(err)
			}
			return r.GetAddress()
		}
		first, second := t.TempDir(), t.TempDir()
		a := address(first, "a")
		s := connect(t, a, "ns")
		if b := address(second, "b"); a != b {
			t.Errorf("%s: %s and %s", annotation, a, b)
		}
		three := taskv3.NewTTRPCTaskClient(s.client)
		if _, err := three.Connect(s.ctx, &taskv3.ConnectRequest{ID: "b"}); err != nil {
			t.Fatal(err) // it serves: only now may its bundle go
		}
		if err := os.RemoveAll(first); err != nil {
			t.Fatal(err)
		}
		_, _ = three.Shutdown(s.ctx, &taskv3.ShutdownRequest{ID: "a"}) // it may end before it answers
		gone(t, strings.TrimPrefix(a, "unix://"))
	}
}

// A shim that was killed leaves its socket; delete takes it away, and not that of a
// shim that lives.
func TestDeleteRemovesDeadSocket(t *testing.T) {
	needRoot(t)
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	sockets, dir := short(t), t.TempDir()
	out, err := begin(t, dir, call{flags: flags("id", "ns", "/c.sock"), stdin: params(t, "id", "ns", "/c.sock", sockets)})
	if err != nil {
		t.Fatalf("start: %v: %s", err, out)
	}
	var r bootstrap.BootstrapResult
	if err := proto.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	// containerd keeps the answer in the bundle.
	if err := os.WriteFile(filepath.Join(dir, "bootstrap.json"), []byte(`{"version":3,"address":"`+r.GetAddress()+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := connect(t, r.GetAddress(), "ns")
	state, err := taskv3.NewTTRPCTaskClient(s.client).Connect(s.ctx, &taskv3.ConnectRequest{})
	if err != nil {
		t.Fatal(err)
	}
	socket := strings.TrimPrefix(r.GetAddress(), "unix://")
	for _, step := range []string{"alive", "killed"} {
		if step == "killed" {
			if err := syscall.Kill(int(state.GetShimPid()), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := s.client.UserOnCloseWait(s.ctx); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(path, "-namespace", "ns", "-address", "/c.sock", "-id", filepath.Base(dir), "-bundle", dir, "delete")
		cmd.Dir = dir
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: delete: %v: %s", step, err, &stderr)
		}
		var answer taskv3.DeleteResponse
		if err := proto.Unmarshal(stdout.Bytes(), &answer); err != nil || answer.GetExitStatus() != 137 {
			t.Errorf("%s: delete answered %q: %v, %v", step, stdout.String(), &answer, err)
		}
		if _, err := os.Lstat(socket); (err == nil) != (step == "alive") {
			t.Errorf("%s: socket: %v", step, err)
		}
	}
}

// -info writes one message and nothing else, whatever it is asked with; -v is for
// people.
func TestInfoAndVersion(t *testing.T) {
	needRoot(t)
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	runc, err := proto.Marshal(wrap(t, &runcoptions.Options{SystemdCgroup: true}))
	if err != nil {
		t.Fatal(err)
	}
	other, err := proto.Marshal(wrap(t, &taskv3.StartRequest{ID: "x"}))
	if err != nil {
		t.Fatal(err)
	}
	for name, stdin := range map[string][]byte{"nothing": nil, "runc's options": runc, "options of another type": other, "garbage": {0xff, 0xff}} {
		cmd := exec.Command(path, "-info")
		cmd.Stdin = bytes.NewReader(stdin)
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("-info with %s: %v", name, err)
			continue
		}
		var info types.RuntimeInfo
		if err := proto.Unmarshal(out, &info); err != nil || info.GetName() != Name || len(info.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("-info with %s: %q: %v, %v", name, out, &info, err)
		}
		var o runcoptions.Options
		if err := proto.Unmarshal(info.GetOptions().GetValue(), &o); err != nil || !filepath.IsAbs(o.GetBinaryName()) || o.GetSystemdCgroup() != (name == "runc's options") {
			t.Errorf("-info with %s tells options %v, %v", name, &o, err)
		}
	}
	out, err := exec.Command(path, "-v").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "containerd-shim-gpushare-v1") {
		t.Errorf("-v: %q, %v", out, err)
	}
}

func TestReadStart(t *testing.T) {
	full := params(t, "id", "ns", "/c.sock", "/s")
	// Options whose type's name and value can be taken for an id and a namespace.
	confusing, err := proto.Marshal(wrap(t, &runcoptions.Options{BinaryName: "runc"}))
	if err != nil {
		t.Fatal(err)
	}
	if proto.Unmarshal(confusing, &bootstrap.BootstrapParams{}) != nil {
		t.Fatal("these options do not even decode as parameters: the test shows nothing")
	}
	noFlags := commandLine{action: "start"}
	both := commandLine{action: "start", id: "id", namespace: "ns"}
	for name, c := range map[string]struct {
		input []byte
		line  commandLine
		is    bool
	}{
		"nothing":                     {nil, both, false},
		"parameters":                  {full, both, true},
		"parameters, no flags":        {full, noFlags, true},
		"of another container":        {params(t, "x", "ns", "/c.sock", "/s"), both, false},
		"of another namespace":        {params(t, "id", "x", "/c.sock", "/s"), both, false},
		"options":                     {confusing, both, false},
		"options, no flags":           {confusing, noFlags, false},
		"options, no flags but an id": {confusing, commandLine{action: "start", id: "id"}, false},
		"garbage":                     {[]byte("\xff\xff\xff"), both, false},
	} {
		if got := readStart(c.input, c.line); (got != nil) != c.is {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestStartWithoutIdentity(t *testing.T) {
	needRoot(t)
	out, err := begin(t, t.TempDir(), call{flags: []string{"start"}})
	if err == nil || !strings.Contains(out, "namespace") {
		t.Errorf("start without anything: %v, %q", err, out)
	}
}

// FuzzReadStart: options of any kind never pass for parameters of the container.
func FuzzReadStart(f *testing.F) {
	f.Add([]byte("\x0a\x02id\x12\x02ns"))
	f.Fuzz(func(t *testing.T, input []byte) {
		p := readStart(input, commandLine{id: "id", namespace: "ns", action: "start"})
		if p != nil && (p.GetInstanceID() != "id" || p.GetNamespace() != "ns") {
			t.Errorf("accepted %v", p)
		}
	})
}
