// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// listen accepts one connection and hands it to serve.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		serve(conn)
	}()
	return path
}

// What Go's own server understands and says, in one piece and in many.
func TestOpenAgainstNetHTTP(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 1<<20)
	srv := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch body, _ := io.ReadAll(r.Body); r.URL.Path {
		case "/echo":
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(r.Method + " " + r.Header.Get("Content-Type") + " " + string(body)))
		case "/large":
			_, _ = io.WriteString(w, large)
		case "/stream":
			for range 3 {
				_, _ = io.WriteString(w, "line\n")
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
		}
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close() })
	get := func(method, of string, body []byte) (int, string) {
		a, err := open(t.Context(), path, method, of, body)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		all, err := io.ReadAll(a.body)
		if err != nil {
			t.Fatal(err)
		}
		return a.status, string(all)
	}
	if status, got := get("POST", "/echo", []byte("{}")); status != 409 || got != "POST application/json {}" {
		t.Errorf("answer %d %q", status, got)
	}
	if status, got := get("DELETE", "/echo", nil); status != 409 || got != "DELETE  " {
		t.Errorf("answer %d %q", status, got)
	}
	if _, got := get("GET", "/large", nil); got != large {
		t.Errorf("a large body came as %d bytes", len(got))
	}
	// A stream is read as it comes and ends with its reader.
	ctx, cancel := context.WithCancel(t.Context())
	a, err := open(ctx, path, "GET", "/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	lines := bufio.NewScanner(a.body)
	for range 3 {
		if !lines.Scan() || lines.Text() != "line" {
			t.Fatalf("stream gave %q, %v", lines.Text(), lines.Err())
		}
	}
	cancel()
	if lines.Scan() || !errors.Is(lines.Err(), context.Canceled) {
		t.Errorf("a cancelled stream ended with %v", lines.Err())
	}
}

// An answer that is none, or not whole, is an error, in time.
func TestBadAnswers(t *testing.T) {
	for name, say := range map[string]string{
		"nothing":                 "",
		"garbage":                 "no HTTP at all\r\n\r\n",
		"status that is no code":  "HTTP/1.1 9999 OK\r\n\r\n",
		"negative length":         "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
		"length that is none":     "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
		"head without an end":     "HTTP/1.1 200 OK\r\nX: y\r\n",
		"endless head":            "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 1<<15),
		"endless line":            strings.Repeat("x", 1<<20),
		"body cut off":            "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"containers\":[",
		"unbounded body, no JSON": "HTTP/1.0 200 OK\r\n\r\n{\"containers\":[",
	} {
		t.Run(name, func(t *testing.T) {
			path := listen(t, func(c net.Conn) {
				_, _ = bufio.NewReader(c).ReadString('\n')
				_, _ = io.WriteString(c, say)
			})
			if _, err := NewClient(path).Containers(t.Context()); err == nil {
				t.Error("accepted")
			} else if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %q", err)
			}
		})
	}
}

// A daemon that accepts and says nothing costs the deadline, not more.
func TestSilentDaemon(t *testing.T) {
	quiet := make(chan struct{})
	defer close(quiet)
	path := listen(t, func(net.Conn) { <-quiet })
	_, err := NewClient(path).WithTimeout(20*time.Millisecond).Claim(t.Context(), ClaimRequest{ID: "a"})
	if Code(err) != CodeTimeout {
		t.Errorf("error %v, want code %s", err, CodeTimeout)
	}
}
