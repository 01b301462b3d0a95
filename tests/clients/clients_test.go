// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build clients

// Package clients runs unmodified CUDA programs, as published, on SIMULATED GPUs: bare
// on the host, with all of the GPU, and in a container with a share of it.
package clients

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	full   = flag.Bool("full", false, "run all clients, not only those that must work")
	record = flag.String("record", "", "directory, from the checkout's root, for the table of what was seen")
	only   = flag.String("only", "", "run only the clients whose name has this in it")
)

const (
	mib      = uint64(1) << 20
	gib      = uint64(1) << 30
	capacity = 80 * gib
	share    = 4 * gib
)

func TestClients(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("containers need root")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 23*time.Minute)
	defer cancel()
	var seen []row
	for _, m := range machines {
		m.clients = slices.DeleteFunc(slices.Clone(m.clients), func(c client) bool {
			return !c.required && !*full || !strings.Contains(c.name(), *only)
		})
		if len(m.clients) > 0 {
			t.Run(m.name, func(t *testing.T) { seen = append(seen, m.run(ctx, t, root)...) })
		}
	}
	if *record != "" && *only == "" {
		file, err := write(filepath.Join(root, *record), seen)
		if err != nil {
			t.Fatal(err)
		}
		t.Log("written: ", file)
	}
}

// run runs the clients of one node, each bare and limited.
func (m machine) run(ctx context.Context, t *testing.T, root string) (seen []row) {
	p, err := newPlace(ctx, root, m)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.n.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range m.clients {
		if m.card {
			c.env = append(slices.Clone(c.env), "CLIENT_ON_A_CARD=1")
		}
		for _, way := range []struct {
			name  string
			limit uint64
			run   func(context.Context, client, uint64) (outcome, error)
		}{{"bare", capacity, p.bare}, {"limited", share, p.limited}} {
			if m.card && way.name == "bare" {
				continue
			}
			t.Run(c.name()+"/"+way.name, func(t *testing.T) {
				r := row{client: c, way: way.name, limit: way.limit}
				defer func() {
					r.failed = t.Failed()
					seen = append(seen, r)
				}()
				begin := time.Now()
				r.outcome, err = way.run(ctx, c, way.limit)
				r.took = time.Since(begin)
				if skip := (missing{}); errors.As(err, &skip) {
					r.skipped = skip.what
					t.Skip(skip.what)
				}
				if err != nil {
					t.Error(err)
				} else {
					check(t, c, way.limit*uint64(p.gpus), r.outcome)
				}
				compare(t, seen, c, r.outcome)
			})
		}
	}
	return seen
}

// compare looks for tests of the client's own that end otherwise than in an earlier
// run of the same script.
func compare(t *testing.T, seen []row, c client, o outcome) {
	for _, before := range seen {
		if before.name() != c.name() {
			continue
		}
		for name, was := range before.Outcomes {
			if o.Outcomes[name] != was {
				t.Errorf("%s: %q, %s it was %q", name, o.Outcomes[name], before.way, was)
			}
		}
		for name, is := range o.Outcomes {
			if _, ok := before.Outcomes[name]; !ok {
				t.Errorf("%s: %q, %s it was not run", name, is, before.way)
			}
		}
	}
}

func check(t *testing.T, c client, limit uint64, o outcome) {
	if o.code != 0 {
		t.Errorf("exit status %d", o.code)
	}
	if printed := strings.Trim(o.stdout+o.stderr, "\n"); printed != c.says {
		t.Errorf("stdout %q, stderr %q, the client alone says %q", o.stdout, o.stderr, c.says)
	}
	if c.says == "" && o.stdout+o.stderr != "" {
		t.Errorf("empty lines were printed: %q %q", o.stdout, o.stderr)
	}
	if o.high > limit {
		t.Errorf("the simulator counts %d bytes, %d over the limit", o.high, o.high-limit)
	}
	if o.high+c.slack < limit {
		t.Errorf("the simulator counts %d bytes at most, the limit was %d: the client gave up early, holding %d: %s", o.high, limit, o.Held, o.Error)
	}
	if o.left != 0 {
		t.Errorf("the simulator counts %d bytes after the end", o.left)
	}
	if !strings.Contains(o.Device, "(SIMULATED)") {
		t.Errorf("the device is called %q", o.Device)
	}
}
