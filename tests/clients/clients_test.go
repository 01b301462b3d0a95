// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build clients

// Package clients runs unmodified Python CUDA programs, as published, on a SIMULATED
// GPU: bare on the host, with all of the GPU, and in a container with a share of it.
package clients

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

var (
	full   = flag.Bool("full", false, "run all clients, not only those that must work")
	record = flag.String("record", "", "directory, from the checkout's root, for the table of what was seen")
)

const (
	mib      = uint64(1) << 20
	gib      = uint64(1) << 30
	capacity = 80 * gib
	share    = 4 * gib
)

// client is a script of py/ around one published package.
type client struct {
	script   string
	required bool
	// slack is how many bytes below its limit the client's own error may come.
	slack uint64
	// says is what the client itself prints, but for empty lines.
	says string
}

var all = []client{
	// Its own pieces are that large.
	{script: "nvml_view", required: true, slack: 256 * mib},
	{script: "numba_fill", required: true, slack: mib},
	{script: "tinygrad_fill", required: true, slack: mib},
	// A pool grows in steps.
	{script: "cuda_core_fill", slack: 32 * mib},
	{script: "taichi_fill", slack: mib, says: "[Taichi] Starting on arch=cuda"},
	// Holds a little and looks.
	{script: "tools_view", slack: capacity},
	// Passes and fails as it does without us.
	{script: "numba_tests", slack: capacity},
}

func TestPythonClients(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("containers need root")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 22*time.Minute)
	defer cancel()
	p := &place{root: root, wheels: filepath.Join(root, ".cache/clients"), image: filepath.Join(root, ".cache/images/python")}
	for _, cmd := range [][]string{{"tests/setup/wheels.sh", p.wheels}, {"tests/setup/image.sh", "python", p.image}} {
		cmd[0] = filepath.Join(root, cmd[0])
		if r := node.Run(ctx, nil, cmd...); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if p.n, err = node.Start(ctx, node.Options{Root: root, Memory: "80GiB"}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.n.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := p.prepare(ctx); err != nil {
		t.Fatal(err)
	}
	var seen []row
	for _, c := range all {
		if !c.required && !*full {
			continue
		}
		for _, way := range []struct {
			name  string
			limit uint64
			run   func(context.Context, string, uint64) (outcome, error)
		}{{"bare", capacity, p.bare}, {"limited", share, p.limited}} {
			t.Run(c.script+"/"+way.name, func(t *testing.T) {
				o, err := way.run(ctx, c.script, way.limit)
				if err == nil {
					check(t, c, way.limit, o)
				} else {
					t.Error(err)
				}
				compare(t, seen, c, o)
				seen = append(seen, row{client: c, way: way.name, limit: way.limit, outcome: o, failed: t.Failed()})
			})
		}
	}
	if *record != "" {
		file, err := write(filepath.Join(root, *record), seen)
		if err != nil {
			t.Fatal(err)
		}
		t.Log("written: ", file)
	}
}

// compare looks for tests of the client's own that end otherwise than in an earlier
// run of the same script.
func compare(t *testing.T, seen []row, c client, o outcome) {
	for _, before := range seen {
		if before.script != c.script {
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
		t.Errorf("the simulator counts %d bytes at most, the limit was %d: the client gave up early", o.high, limit)
	}
	if o.left != 0 {
		t.Errorf("the simulator counts %d bytes after the end", o.left)
	}
	if !strings.Contains(o.Device, "(SIMULATED)") {
		t.Errorf("the device is called %q", o.Device)
	}
}
