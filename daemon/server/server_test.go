// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// backend answers with what it was asked.
type backend struct {
	caller atomic.Int64
	block  chan struct{} // Containers waits for it
	// claiming hears of the claim of "slow", which lasts until its caller is gone, and
	// of its release.
	claiming chan struct{}
	sick     error
	events   chan v1.Event // to come
	ended    chan struct{} // closed when a follower was let go
}

func (b *backend) Health() error { return b.sick }

func (b *backend) Events(ctx context.Context, q v1.EventQuery, begin func(bool), send func(v1.Event) error) error {
	if q.Container == "nobody" {
		return v1.Errorf(http.StatusNotFound, v1.CodeNotFound, "nothing is known of it")
	}
	begin(true)
	if err := send(v1.Event{Seq: q.Since + 1, Container: q.Container, Message: "<&>"}); err != nil || !q.Follow {
		return err
	}
	defer close(b.ended)
	for {
		select {
		case e := <-b.events:
			if err := send(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (b *backend) Claim(ctx context.Context, r v1.ClaimRequest) (v1.Claim, error) {
	switch r.ID {
	case "slow":
		b.claiming <- struct{}{}
		<-ctx.Done()
	case "full":
		return v1.Claim{}, v1.Errorf(http.StatusConflict, v1.CodeNoFit, "no room: %w", io.EOF)
	case "broken":
		return v1.Claim{}, errors.New("disk on fire")
	}
	return v1.Claim{APIVersion: v1.APIVersion, ID: r.ID, MemoryBytes: 5}, nil
}
func (b *backend) Release(id string, caller int) error {
	b.caller.Store(int64(caller))
	if id == "slow" {
		b.claiming <- struct{}{}
	}
	if id != "a/b c" {
		return v1.Errorf(http.StatusNotFound, v1.CodeNotFound, "no %s", id)
	}
	return nil
}
func (b *backend) List(context.Context) v1.ContainerList {
	if b.block != nil {
		<-b.block
	}
	return v1.ContainerList{APIVersion: v1.APIVersion, Containers: []v1.Container{{ID: "x"}}}
}
func (*backend) Container(_ context.Context, ref string) (v1.Container, error) {
	return v1.Container{ID: ref}, nil
}
func (*backend) Resize(_ context.Context, ref string, r v1.ResizeRequest) (v1.Resize, error) {
	return v1.Resize{ID: ref, New: []v1.Limits{{MemoryBytes: uint64(len(r.Memory))}}}, nil
}
func (*backend) Daemon(context.Context) v1.Daemon { return v1.Daemon{Version: "9"} }

// start serves b and returns a client; the server ends with the test.
func start(t *testing.T, b Backend) *v1.Client {
	t.Helper()
	// A run directory of any length works: the socket's own path is short.
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 30))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, b, slog.New(slog.NewTextHandler(io.Discard, nil))) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return v1.NewClient("unix://" + filepath.Join(dir, v1.SocketName))
}

func TestCalls(t *testing.T) {
	b := &backend{}
	c := start(t, b)
	ctx := context.Background()
	if got, err := c.Claim(ctx, v1.ClaimRequest{ID: "a"}); err != nil || got.ID != "a" || got.MemoryBytes != 5 {
		t.Errorf("Claim = %+v, %v", got, err)
	}
	if err := c.Release(ctx, "a/b c"); err != nil || b.caller.Load() != int64(os.Getpid()) {
		t.Errorf("Release: %v, caller %d", err, b.caller.Load())
	}
	if got, err := c.Containers(ctx); err != nil || got.Containers[0].ID != "x" {
		t.Errorf("Containers = %+v, %v", got, err)
	}
	if got, err := c.Container(ctx, "x/../y"); err != nil || got.ID != "x/../y" {
		t.Errorf("Container = %+v, %v", got, err)
	}
	if got, err := c.Resize(ctx, "x", v1.ResizeRequest{Memory: "8Gi"}); err != nil || got.ID != "x" || got.New[0].MemoryBytes != 3 {
		t.Errorf("Resize = %+v, %v", got, err)
	}
	if got, err := c.Daemon(ctx); err != nil || got.Version != "9" {
		t.Errorf("Daemon = %+v, %v", got, err)
	}
	fi, err := os.Stat(c.Socket())
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", fi, err)
	}
}

func TestRefusalsTravel(t *testing.T) {
	c := start(t, &backend{})
	_, err := c.Claim(context.Background(), v1.ClaimRequest{ID: "full"})
	var e *v1.Error
	if !errors.As(err, &e) || e.Code != v1.CodeNoFit || e.Status != http.StatusConflict || err.Error() != "no room: EOF  [GS-NO-FIT]" {
		t.Errorf("%v", err)
	}
	if _, err := c.Claim(context.Background(), v1.ClaimRequest{ID: "broken"}); v1.Code(err) != v1.CodeInternal || !strings.Contains(err.Error(), "on fire") {
		t.Errorf("%v", err)
	}
	if err := c.Release(context.Background(), "none"); v1.Code(err) != v1.CodeNotFound {
		t.Errorf("%v", err)
	}
}

func TestMalformedRequests(t *testing.T) {
	c := start(t, &backend{})
	for name, tc := range map[string]struct{ method, path, body string }{
		"no JSON":       {"POST", "/v1/claims", "hello"},
		"empty":         {"POST", "/v1/claims", ""},
		"another type":  {"POST", "/v1/claims", `{"id":7}`},
		"unknown field": {"POST", "/v1/claims", `{"id":"a","memory_limit":"8Gi"}`},
		"two":           {"POST", "/v1/claims", `{"id":"a"}{"id":"b"}`},
		"too large":     {"POST", "/v1/claims", `{"id":"` + strings.Repeat("a", maxBody) + `"}`},
		"deep":          {"PATCH", "/v1/containers/a", strings.Repeat("[", 20000)},
		"no such call":  {"GET", "/v1/secrets", ""},
		"wrong method":  {"PUT", "/v1/claims", ""},
		"root":          {"GET", "/", ""},
	} {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("unix", c.Socket())
		}}}
		req, _ := http.NewRequest(tc.method, "http://d"+tc.path, strings.NewReader(tc.body))
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		raw, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode < 400 || resp.StatusCode >= 500 || !strings.Contains(string(raw), v1.CodeRequest) || !strings.Contains(string(raw), v1.APIVersion) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, raw)
		}
	}
}

func TestClientWithoutADaemon(t *testing.T) {
	dir := t.TempDir()
	c := v1.NewClient(filepath.Join(dir, "none.sock"))
	if _, err := c.Daemon(context.Background()); v1.Code(err) != v1.CodeDaemonDown || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "Start it as root: gpushared") {
		t.Errorf("no socket: %v", err)
	}
	// A socket that nobody listens on.
	dead := filepath.Join(dir, "dead.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := v1.NewClient(dead).Daemon(context.Background()); v1.Code(err) != v1.CodeDaemonDown {
		t.Errorf("a dead socket: %v", err)
	}
	// One that does not answer.
	b := &backend{block: make(chan struct{})}
	slow := start(t, b).WithTimeout(50 * time.Millisecond)
	begin := time.Now()
	if _, err := slow.Containers(context.Background()); v1.Code(err) != v1.CodeTimeout || time.Since(begin) > 5*time.Second {
		t.Errorf("a slow daemon: %v after %v", err, time.Since(begin))
	}
	close(b.block)
}

// A new socket takes the place of the old one without a moment in between.
func TestListenReplaces(t *testing.T) {
	dir := t.TempDir()
	first, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	got := make(chan error, 1)
	go func() {
		c, err := second.Accept()
		if err == nil {
			c.Close()
		}
		got <- err
	}()
	c, err := net.Dial("unix", filepath.Join(dir, v1.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("%v", entries)
	}
	if err := errors.Join(Remove(dir), Remove(dir)); err != nil {
		t.Error(err)
	}
}

// A claim that is granted after its caller has gone is given back, in its claimant's
// name.
func TestCallerGone(t *testing.T) {
	b := &backend{claiming: make(chan struct{})}
	c := start(t, b)
	ctx, cancel := context.WithCancel(context.Background())
	asked := make(chan error)
	go func() {
		_, err := c.Claim(ctx, v1.ClaimRequest{ID: "slow", PID: 77})
		asked <- err
	}()
	<-b.claiming
	cancel()
	if err := <-asked; err == nil {
		t.Error("a claim was answered whose caller had gone")
	}
	select {
	case <-b.claiming:
	case <-time.After(10 * time.Second):
		t.Fatal("the claim was not given back")
	}
	if got := b.caller.Load(); got != 77 {
		t.Errorf("released by %d, want the claimant 77", got)
	}
}
