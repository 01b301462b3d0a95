// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// An uninstall that is killed after dockerd was shown an empty table of runtimes is
// finished by the next one, to the byte.
func TestDockerUninstallAfterOneThatWasKilled(t *testing.T) {
	for _, text := range []string{"\x00", "", "\xef\xbb\xbf{ \"debug\":true }\n", "{\r\n\t\"debug\": false}"} {
		p := newPlace(t)
		name := filepath.Join(p.dir, "daemon.json")
		var before []byte
		if text != "\x00" {
			before = []byte(text)
			p.write(name, before, 0o644)
		}
		if err := p.install(Docker, name); err != nil {
			t.Fatal(err)
		}
		f, err := readFile(name)
		if err != nil {
			t.Fatal(err)
		}
		empty, err := withEmptyRuntimes(before)
		if err != nil || empty == nil {
			t.Fatalf("%q: %q, %v", text, empty, err)
		}
		if err := f.show(empty); err != nil {
			t.Fatal(err)
		}
		if err := p.uninstall(Docker, name); err != nil {
			t.Fatal(err)
		}
		if before == nil {
			if len(p.names()) != 0 {
				t.Errorf("left: %q", p.names())
			}
			continue
		}
		if got := p.read(name); !bytes.Equal(got, before) || len(p.names()) != 1 {
			t.Errorf("%q became %q; left: %q", before, got, p.names())
		}
	}
}

func TestInstallWithoutAGPUTouchesNothing(t *testing.T) {
	p := newPlace(t)
	p.write(filepath.Join(p.dir, "probe"), []byte("#!/bin/sh\n"), 0o755)
	o := Options{Engine: Docker, BinDir: p.bin, LibDir: p.dir, Node: func(context.Context) (v1.Daemon, error) {
		return v1.Daemon{Reason: "no usable driver"}, nil
	}}
	if err := o.ready(t.Context()); v1.Code(err) != v1.CodeNoGPU {
		t.Errorf("ready without a GPU: %v", err)
	}
	o.NoProbe = true
	if err := o.ready(t.Context()); err != nil {
		t.Errorf("ready without a probe: %v", err)
	}
}
