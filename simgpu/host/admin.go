// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gpushare/gpushare/simgpu/kernel"
)

// Admin answers the operator on a socket of its own, which no tenant sees:
// GET /status, POST /reset, POST /kernel-time, POST /stop.
func (h *Host) Admin(stop func()) http.Handler {
	mux := http.NewServeMux()
	h.adminFaults(mux)
	h.adminKill(mux)
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(h.Status())
	})
	mux.HandleFunc("POST /reset", func(http.ResponseWriter, *http.Request) { h.Reset() })
	mux.HandleFunc("POST /kernel-time", func(w http.ResponseWriter, r *http.Request) {
		var texts []string
		err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&texts)
		var rules []kernel.Rule
		if err == nil {
			rules, err = kernel.ParseRules(texts)
		}
		if err == nil {
			err = h.SetKernelTimes(rules)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	h.clockRoutes(mux)
	mux.HandleFunc("POST /condition", h.serveConditions)
	h.handleManagement(mux)
	h.traceRoutes(mux)
	h.adminEngine(mux)
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, os.Getpid())
		stop()
	})
	return mux
}

// AdminClient talks to a host process over its administration socket.
type AdminClient struct {
	http   http.Client
	socket string
}

// down says what to do about a host process that cannot be reached.
func (a *AdminClient) down(err error) error {
	var op *net.OpError // without the words of HTTP around it
	if !errors.As(err, &op) {
		return fmt.Errorf("ask the simulator: %w", err)
	}
	dir := filepath.Dir(a.socket)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no GPUs are up in %s: start some with simgpu up --dir %s: %w", dir, dir, op.Err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("ask the simulator in %s: only the user who started it may: %w", dir, op.Err)
	}
	return fmt.Errorf("ask the simulator in %s: %w", dir, op)
}

// NewAdminClient returns a client of the host process behind socket; it does
// not connect.
func NewAdminClient(socket string) *AdminClient {
	var d net.Dialer
	return &AdminClient{socket: socket, http: http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", socket)
		}},
	}}
}

func (a *AdminClient) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://simgpu"+path, body)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return a.down(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to the end
	if resp.StatusCode != http.StatusOK {
		return refusal(resp)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	return nil
}

// refusal returns what the host process said, in its own words.
func refusal(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if b = bytes.TrimSpace(b); resp.StatusCode == http.StatusNotFound || len(b) == 0 {
		return fmt.Errorf("ask for %s: the simulator answers %s; is it of another version?", resp.Request.URL.Path, resp.Status)
	}
	return fmt.Errorf("%s", b)
}

// Status fetches the account.
func (a *AdminClient) Status(ctx context.Context) (st Status, err error) {
	return st, a.call(ctx, http.MethodGet, "/status", nil, &st)
}

// Reset clears high-water marks and times.
func (a *AdminClient) Reset(ctx context.Context) error {
	return a.call(ctx, http.MethodPost, "/reset", nil, nil)
}

// SetKernelTimes changes how long kernels run, by rules as package kernel reads
// them.
func (a *AdminClient) SetKernelTimes(ctx context.Context, rules []string) error {
	return a.call(ctx, http.MethodPost, "/kernel-time", rules, nil)
}

// Stop asks the process to end and returns its process id.
func (a *AdminClient) Stop(ctx context.Context) (pid int, err error) {
	return pid, a.call(ctx, http.MethodPost, "/stop", nil, &pid)
}
