// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// claimWithBundle claims as "a" for a shim that lives, with a bundle that is there.
func claimWithBundle(w *world) (bundle string, shim *exec.Cmd) {
	w.t.Helper()
	bundle, shim = filepath.Join(w.base, "bundle"), w.process()
	if err := os.Mkdir(bundle, 0o700); err != nil {
		w.t.Fatal(err)
	}
	req := w.request("a", shim.Process.Pid, v1.Request{Memory: "8Gi"})
	req.Bundle = bundle
	if _, err := w.m.Claim(context.Background(), req); err != nil {
		w.t.Fatal(err)
	}
	return bundle, shim
}

// A claim goes back once the engine has removed the bundle of a container that never
// started, though the claimant lives on; also if there was no daemon then.
func TestBundleRemoved(t *testing.T) {
	for name, restart := range map[string]bool{"under the daemon": false, "without one": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			bundle, shim := claimWithBundle(w)
			// Its neighbour in the same shim has a bundle that the daemon cannot see.
			if _, err := w.m.Claim(context.Background(), w.request("b", shim.Process.Pid, v1.Request{Memory: "8Gi"})); err != nil {
				t.Fatal(err)
			}
			if restart {
				w.m.Close()
			}
			if err := os.Remove(bundle); err != nil {
				t.Fatal(err)
			}
			if restart {
				w.start()
			}
			w.eventually("release", func() bool { return w.gone("a") })
			if w.gone("b") {
				t.Error("a claim went whose bundle was never seen")
			}
		})
	}
}

// A container that runs is not given up with its bundle, whatever the runtime's state
// says of it.
func TestBundleRemovedOfOneThatRuns(t *testing.T) {
	w := newWorld(t)
	bundle, _ := claimWithBundle(w)
	init := w.mounted("a")
	if err := os.Remove(bundle); err != nil {
		t.Fatal(err)
	}
	w.eventually("start", func() bool {
		c, err := w.m.Container(context.Background(), "a")
		return err == nil && c.PID == init.Process.Pid
	})
	end(init)
	w.eventually("release", func() bool { return w.gone("a") })
}
