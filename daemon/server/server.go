// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package server serves the daemon's API, package daemon/api/v1, on a unix
// socket. Only root may connect: the socket's mode says so, and each peer is
// asked again.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

const (
	// maxBody bounds a request's body in bytes.
	maxBody = 64 << 10
	// deadlines of a connection: the work of a request is bounded by the backend.
	readTimeout  = 5 * time.Second
	writeTimeout = 30 * time.Second
	// stopTimeout is what requests in progress get when the daemon ends.
	stopTimeout = 3 * time.Second
)

// Backend does the work. Its errors are *v1.Error where the caller can do
// something about them.
type Backend interface {
	Claim(ctx context.Context, req v1.ClaimRequest) (v1.Claim, error)
	Release(id string, caller int) error
	List(ctx context.Context) v1.ContainerList
	Container(ctx context.Context, ref string) (v1.Container, error)
	Resize(ctx context.Context, ref string, req v1.ResizeRequest) (v1.Resize, error)
	Daemon(ctx context.Context) v1.Daemon
	// Events calls begin, then send for each event. With q.Follow it goes on until
	// ctx ends. It returns send's error.
	Events(ctx context.Context, q v1.EventQuery, begin func(simulated bool), send func(v1.Event) error) error
	// Health may wait for as long as there is no progress.
	Health() error
}

// Listen makes the socket in runDir, mode 0600. It takes the place of an earlier
// one at once, so that a client never finds a socket that nobody may open yet.
func Listen(runDir string) (net.Listener, error) {
	dirfd, err := unix.Open(runDir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open run directory %s: %w", runDir, err)
	}
	defer unix.Close(dirfd)
	const fresh = v1.SocketName + ".new"
	_ = unix.Unlinkat(dirfd, fresh, 0)
	// Addressed through a descriptor: a socket's path may have 107 bytes only.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dirfd, fresh), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make socket in %s: %w", runDir, err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(
		unix.Fchmodat(dirfd, fresh, 0o600, 0),
		unix.Renameat(dirfd, fresh, dirfd, v1.SocketName),
	); err != nil {
		l.Close()
		return nil, fmt.Errorf("make socket in %s: %w", runDir, err)
	}
	return l, nil
}

// Remove takes the socket away, so that a client learns at once that nobody
// listens.
func Remove(runDir string) error {
	err := os.Remove(filepath.Join(runDir, v1.SocketName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove socket: %w", err)
	}
	return nil
}

// Serve answers requests until ctx ends, then lets those in progress finish.
func Serve(ctx context.Context, l net.Listener, b Backend, log *slog.Logger) error {
	stopping, stopped := context.WithCancel(context.Background())
	defer stopped()
	s := &http.Server{
		Handler: handler(b, stopping), ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: readTimeout,
		MaxHeaderBytes: 16 << 10, ConnContext: withPeer,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	s.RegisterOnShutdown(stopped) // streams would not end by themselves
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := s.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close()
	}
	<-failed
	return err
}

type peerKey struct{}

// withPeer notes who is at the other end of a connection.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return ctx
	}
	var peer *unix.Ucred
	_ = raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, peer)
}

// Handler answers requests with what the backend says.
func Handler(b Backend) http.Handler { return handler(b, context.Background()) }

// handler ends streams when stopping does.
func handler(b Backend, stopping context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/claims", func(w http.ResponseWriter, r *http.Request) {
		var req v1.ClaimRequest
		if decode(w, r, &req) {
			out, err := b.Claim(r.Context(), req)
			if err == nil && r.Context().Err() != nil {
				// Nobody reads the answer, and a claimant may live on, as a shim does whose
				// engine died. One that has started is not released by this.
				_ = b.Release(out.ID, req.PID)
			}
			answer(w, out, err)
		}
	})
	mux.HandleFunc("DELETE /v1/claims/{id}", func(w http.ResponseWriter, r *http.Request) {
		caller := 0
		if p, ok := r.Context().Value(peerKey{}).(*unix.Ucred); ok {
			caller = int(p.Pid)
		}
		if err := b.Release(r.PathValue("id"), caller); err != nil {
			answer(w, nil, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /v1/containers", func(w http.ResponseWriter, r *http.Request) {
		answer(w, b.List(r.Context()), nil)
	})
	mux.HandleFunc("GET /v1/containers/{ref}", func(w http.ResponseWriter, r *http.Request) {
		out, err := b.Container(r.Context(), r.PathValue("ref"))
		answer(w, out, err)
	})
	mux.HandleFunc("PATCH /v1/containers/{ref}", func(w http.ResponseWriter, r *http.Request) {
		var req v1.ResizeRequest
		if decode(w, r, &req) {
			out, err := b.Resize(r.Context(), r.PathValue("ref"), req)
			answer(w, out, err)
		}
	})
	mux.HandleFunc("GET /v1/daemon", func(w http.ResponseWriter, r *http.Request) {
		answer(w, b.Daemon(r.Context()), nil)
	})
	mux.HandleFunc("GET /v1/health", func(w http.ResponseWriter, r *http.Request) {
		if err := b.Health(); err != nil {
			answer(w, nil, v1.Errorf(http.StatusServiceUnavailable, v1.CodeInternal, "no progress: %w", err))
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /v1/events", func(w http.ResponseWriter, r *http.Request) { events(w, r, b, stopping) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, nil, v1.Errorf(http.StatusNotFound, v1.CodeRequest, "%.20s %.100s is no call of %s", r.Method, r.URL.Path, v1.APIVersion))
	})
	return onlyRoot(mux)
}

// onlyRoot refuses peers that are not root. A connection without a peer is a
// test's.
func onlyRoot(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p, ok := r.Context().Value(peerKey{}).(*unix.Ucred); ok && p.Uid != 0 {
			answer(w, nil, v1.Errorf(http.StatusForbidden, v1.CodeRequest, "uid %d may not use the daemon: only root may", p.Uid))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// decode reads a request's body. A field that it does not know is refused: it
// could be a limit that this daemon would not keep.
func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows it")
		}
	}
	if err != nil {
		answer(w, nil, v1.Errorf(http.StatusBadRequest, v1.CodeRequest, "read request: %w", err))
		return false
	}
	return true
}

// answer writes what the backend returned.
func answer(w http.ResponseWriter, out any, err error) {
	status := http.StatusOK
	if err != nil {
		var e *v1.Error
		if !errors.As(err, &e) {
			e = v1.Errorf(http.StatusInternalServerError, v1.CodeInternal, "%w", err)
		}
		status = e.Status
		if status < 400 {
			status = http.StatusInternalServerError
		}
		out = &v1.Error{APIVersion: v1.APIVersion, Code: e.Code, Message: e.Message}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(out)
}
