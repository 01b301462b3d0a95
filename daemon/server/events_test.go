// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

func follower(b *backend) *backend {
	b.events, b.ended = make(chan v1.Event), make(chan struct{})
	return b
}

func TestEvents(t *testing.T) {
	c := start(t, &backend{})
	ctx := context.Background()
	var got []v1.Event
	simulated := false
	collect := func(e v1.Event) error { got = append(got, e); return nil }
	err := c.Events(ctx, v1.EventQuery{Since: 41, Container: "a/b"}, func(s bool) { simulated = s }, collect)
	if err != nil || !simulated || len(got) != 1 || got[0].Seq != 42 || got[0].Container != "a/b" || got[0].Message != "<&>" {
		t.Errorf("%+v, simulated %v, %v", got, simulated, err)
	}
	if err := c.Events(ctx, v1.EventQuery{Container: "nobody"}, func(bool) { t.Error("begun") }, collect); v1.Code(err) != v1.CodeNotFound {
		t.Errorf("unknown container: %v", err)
	}
	mine := errors.New("enough")
	if err := c.Events(ctx, v1.EventQuery{}, func(bool) {}, func(v1.Event) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("a reader's own error: %v", err)
	}
	for _, query := range []string{"since=x", "since=-1", "follow=maybe", "until=3"} {
		resp, err := get(c, "/v1/events?"+query)
		if err != nil || resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %v, %v", query, resp, err)
		}
	}
}

// Who follows stays connected for longer than a request may take, gets each event
// at once, and is let go when it leaves.
func TestFollow(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for longer than the deadline of a request, 5 s")
	}
	b := follower(&backend{})
	c := start(t, b)
	ctx, leave := context.WithCancel(context.Background())
	got := make(chan v1.Event)
	done := make(chan error, 1)
	go func() {
		done <- c.Events(ctx, v1.EventQuery{Follow: true}, func(bool) {}, func(e v1.Event) error { got <- e; return nil })
	}()
	<-got
	select {
	case err := <-done:
		t.Fatalf("ended after less than a request's deadline: %v", err)
	case <-time.After(readTimeout + time.Second):
	}
	b.events <- v1.Event{Seq: 7, Message: strings.Repeat("x", 8000)}
	if e := <-got; e.Seq != 7 {
		t.Errorf("%+v", e)
	}
	leave()
	<-done
	<-b.ended
}

// A daemon that ends does not wait for those who follow.
func TestFollowersDoNotHoldUpTheEnd(t *testing.T) {
	b := follower(&backend{})
	dir := t.TempDir()
	l, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, b, slog.New(slog.NewTextHandler(io.Discard, nil))) }()
	c := v1.NewClient(filepath.Join(dir, v1.SocketName))
	first := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- c.Events(context.Background(), v1.EventQuery{Follow: true}, func(bool) {}, func(v1.Event) error { close(first); return nil })
	}()
	<-first
	begin := time.Now()
	cancel()
	if err := <-served; err != nil || time.Since(begin) >= stopTimeout {
		t.Errorf("ended after %v: %v", time.Since(begin), err)
	}
	if err := <-done; err != nil {
		t.Errorf("the follower: %v", err)
	}
}

// A reader that does not read is dropped; the others do not notice.
func TestReaderThatDoesNotRead(t *testing.T) {
	b := follower(&backend{})
	c := start(t, b)
	conn, err := net.Dial("unix", c.Socket())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/events?follow=1 HTTP/1.1\r\nHost: x\r\n\r\n")
	message := strings.Repeat("y", 1000)
	limit := time.After(4 * eventTimeout)
	for n := 0; ; n++ {
		select {
		case b.events <- v1.Event{Message: message}:
			if _, err := c.Daemon(context.Background()); err != nil {
				t.Fatalf("another client, after %d events: %v", n, err)
			}
		case <-b.ended:
			return
		case <-limit:
			t.Fatalf("not dropped after %d events", n)
		}
	}
}

func TestHealth(t *testing.T) {
	if err := start(t, &backend{}).Health(context.Background()); err != nil {
		t.Error(err)
	}
	err := start(t, &backend{sick: errors.New("a round hangs")}).Health(context.Background())
	if v1.Code(err) != v1.CodeInternal || !strings.Contains(err.Error(), "a round hangs") {
		t.Errorf("sick: %v", err)
	}
}

// get asks without the client's own checks.
func get(c *v1.Client, path string) (*http.Response, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", c.Socket())
	}
	resp, err := (&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}).Get("http://gpushared" + path)
	if err == nil {
		resp.Body.Close()
	}
	return resp, err
}
