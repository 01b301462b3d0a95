// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

var errNoTrace = errors.New("the node writes no trace: start it with --trace FILE")

// Trace makes the trace's file hold what has happened so far, and names it.
func (h *Host) Trace() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trace == nil {
		return "", errNoTrace
	}
	h.trace.sync()
	return h.trace.path, nil
}

func (h *Host) traceRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /trace", func(w http.ResponseWriter, r *http.Request) {
		path, err := h.Trace()
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		http.ServeFile(w, r, path)
	})
}

// Trace copies the trace so far to w.
func (a *AdminClient) Trace(ctx context.Context, w io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://simgpu/trace", nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	patient := a.http
	patient.Timeout = 0
	resp, err := patient.Do(req)
	if err != nil {
		return a.down(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to the end
	if resp.StatusCode != http.StatusOK {
		return refusal(resp)
	}
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("read trace: %w", err)
	}
	return nil
}
