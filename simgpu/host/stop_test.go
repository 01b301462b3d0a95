// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// A client that keeps its connection cannot keep the host process: one of CUDA,
// one of NVML, one that has not said what it is.
func TestServeEndsWithClientsConnected(t *testing.T) {
	h, err := New(testConfig(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- h.Serve(ctx, l) }()

	dial(t, path) // says nothing
	for _, kind := range []uint64{wire.KindCUDA, wire.KindNVML} {
		c := dial(t, path)
		if _, err := c.Write(message(wire.Request{Op: wire.OpHello, A: kind, B: wire.Version}, nil)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, wire.MaxMessage)); err != nil { // it is served
			t.Fatal(err)
		}
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Serve does not end while clients are connected")
	}
}
