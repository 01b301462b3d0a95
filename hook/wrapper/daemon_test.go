// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wrapper_test

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// daemon stands in for gpushared.
type daemon struct {
	t      testing.TB
	runDir string
	stop   func() // as if it had been killed and its socket swept

	mu       sync.Mutex
	claims   []v1.ClaimRequest
	released []string
	refusal  *v1.Error
	gpus     []v1.GrantedGPU
}

func startDaemon(t testing.TB, runDir string) *daemon {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(runDir, "c"), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(runDir, v1.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, runDir: runDir, gpus: []v1.GrantedGPU{{Index: 0, UUID: "GPU-0", CDIDevice: "GPU-0"}}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/claims", d.claim)
	mux.HandleFunc("DELETE /v1/claims/{id}", d.release)
	server := &http.Server{Handler: mux}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	d.stop = sync.OnceFunc(func() {
		listener.Close() // before Serve has begun, Close does not know of it
		server.Close()
		<-done
	})
	t.Cleanup(d.stop)
	return d
}

func (d *daemon) claim(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var req v1.ClaimRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d.claims = append(d.claims, req)
	if d.refusal != nil {
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(d.refusal)
		return
	}
	dir := filepath.Join(d.runDir, "c", req.ID)
	for name, mode := range map[string]os.FileMode{"limits": 0o444, "ledger": 0o666, "driver/cuda.real": 0o444, "driver/nvml.real": 0o444} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if err := errors.Join(os.WriteFile(path, []byte(name), mode), os.Chmod(path, mode)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	_ = json.NewEncoder(w).Encode(v1.Claim{ID: req.ID, Directory: dir, GPUs: d.gpus})
}

func (d *daemon) release(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.released = append(d.released, r.PathValue("id"))
	if err := os.RemoveAll(filepath.Join(d.runDir, "c", r.PathValue("id"))); err != nil {
		d.t.Error(err)
	}
	w.WriteHeader(http.StatusNoContent)
}

// seen returns the claims and releases so far.
func (d *daemon) seen() ([]v1.ClaimRequest, []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]v1.ClaimRequest(nil), d.claims...), append([]string(nil), d.released...)
}
