// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	bootstrap "github.com/containerd/containerd/api/runtime/bootstrap/v1"
	task "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"

	"github.com/gpushare/gpushare/tests/node"
)

// directNamespace is the containerd namespace of the tests that play containerd.
const directNamespace = "direct"

// playContainerd starts our shim for a bundle and speaks to it, for what no client
// of containerd can ask: a container that is made and not started.
func playContainerd(t *testing.T, n *node.Node, b *node.Bundle) (task.TTRPCTaskService, context.Context) {
	t.Helper()
	sockets := filepath.Join(n.Dir, "s")
	input, err := proto.Marshal(&bootstrap.BootstrapParams{
		InstanceID: b.ID, Namespace: directNamespace, ContainerdGrpcAddress: n.Dir, SocketDir: &sockets,
	})
	if err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(b.Dir, "log")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	cmd := exec.Command(n.Bin("containerd-shim-gpushare-v1"), "-namespace", directNamespace, "-id", b.ID, "-address", n.Dir, "start")
	cmd.Dir, cmd.Stdin = b.Dir, bytes.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("start the shim: %v: %s", err, out)
	}
	var r bootstrap.BootstrapResult
	if err := proto.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	conn, err := shim.AnonDialer(r.GetAddress(), limit)
	if err != nil {
		t.Fatal(err)
	}
	client := ttrpc.NewClient(conn)
	ctx := namespaces.WithNamespace(within(t), directNamespace)
	s := task.NewTTRPCTaskClient(client)
	t.Cleanup(func() {
		ctx := namespaces.WithNamespace(context.Background(), directNamespace)
		_, _ = s.Kill(ctx, &task.KillRequest{ID: b.ID, Signal: uint32(syscall.SIGKILL), All: true})
		_, _ = s.Delete(ctx, &task.DeleteRequest{ID: b.ID})
		_, _ = s.Shutdown(ctx, &task.ShutdownRequest{ID: b.ID, Now: true})
		client.Close()
	})
	return s, ctx
}

// A container that is made, left alone over a restart of the daemon, and deleted
// before it was started: its share is held for as long as it is there, although who
// claimed it lives on, and goes back with it.
func TestShimDeleteBeforeStart(t *testing.T) {
	n := up(t, node.Options{NoEngine: true})
	k := &containerdNode{n: n}
	b, err := n.NewBundle(within(t), "unstarted", node.Spec{Rootfs: image(n), Args: []string{"sleep", "100000"}, Env: share("1Gi")})
	if err != nil {
		t.Fatal(err)
	}
	s, ctx := playContainerd(t, n, b)
	made, err := s.Create(ctx, &task.CreateTaskRequest{ID: b.ID, Bundle: b.Dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"before", "after"} {
		soon(t, 2*time.Second, "the daemon finds the container "+when+" its restart", func() bool {
			return held(t, k)[b.ID].PID == int(made.GetPid())
		})
		if when == "before" {
			if err := n.Daemon().Kill(); err != nil {
				t.Fatal(err)
			}
			if err := n.StartDaemon(within(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.Kill(ctx, &task.KillRequest{ID: b.ID, Signal: uint32(syscall.SIGKILL)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Wait(ctx, &task.WaitRequest{ID: b.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(ctx, &task.DeleteRequest{ID: b.ID}); err != nil {
		t.Fatal(err)
	}
	soon(t, 2*time.Second, "the share goes back", func() bool { return len(held(t, k)) == 0 })
	if r, err := s.Connect(ctx, &task.ConnectRequest{ID: b.ID}); err != nil || r.GetShimPid() == 0 {
		t.Errorf("the shim that claimed is gone, so this shows nothing: %v", err)
	}
	// The same shim, the same container once more: what is left of the first is not
	// taken for it.
	again, err := n.NewBundle(within(t), "unstarted-2", node.Spec{Rootfs: image(n), Args: []string{"alloc", "--fill", "--hold", "stdin"}, Env: share("2Gi")})
	if err != nil {
		t.Fatal(err)
	}
	made, err = s.Create(ctx, &task.CreateTaskRequest{ID: b.ID, Bundle: again.Dir})
	if err != nil {
		t.Fatal(err)
	}
	soon(t, 2*time.Second, "the daemon finds the second container", func() bool {
		c := held(t, k)[b.ID]
		return c.PID == int(made.GetPid()) && len(c.GPUs) == 1 && c.GPUs[0].MemoryLimitBytes == 2*gib
	})
}

// A GPU container is not made from a checkpoint; nothing of it stays.
func TestShimRestoreRefused(t *testing.T) {
	n := up(t, node.Options{NoEngine: true})
	k := &containerdNode{n: n}
	b, err := n.NewBundle(within(t), "restored", node.Spec{Rootfs: image(n), Args: []string{"sleep", "100000"}, Env: share("1Gi")})
	if err != nil {
		t.Fatal(err)
	}
	before, err := b.Config()
	if err != nil {
		t.Fatal(err)
	}
	s, ctx := playContainerd(t, n, b)
	_, err = s.Create(ctx, &task.CreateTaskRequest{ID: b.ID, Bundle: b.Dir, Checkpoint: filepath.Join(n.Dir, "checkpoint")})
	if err == nil || !strings.Contains(err.Error(), "[GS-RESTORE]") {
		t.Errorf("restore: %v", err)
	}
	if after, err := b.Config(); err != nil || after != before {
		t.Errorf("config.json was changed: %v", err)
	}
	if got := held(t, k); len(got) != 0 {
		t.Errorf("shares %v", got)
	}
}
