// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// What a container asked for, what was changed and when, and who it is, also
// after a restart.
func TestDetails(t *testing.T) {
	w := newWorld(t)
	bundle := filepath.Join(w.base, "io.containerd.runtime.v2.task", "k8s.io", "aa1")
	if err := os.MkdirAll(bundle, 0o700); err != nil {
		t.Fatal(err)
	}
	spec := `{"annotations":{"io.kubernetes.cri.sandbox-namespace":"ml","io.kubernetes.cri.sandbox-name":"train-0","io.kubernetes.cri.container-name":"main"}}`
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	claimant := w.process()
	req := w.request("aa1", claimant.Process.Pid, v1.Request{Memory: "8Gi", Compute: "30%"})
	req.Bundle = bundle
	claim, err := w.m.Claim(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	w.run("aa1", claimant)
	for _, r := range []v1.ResizeRequest{{Memory: "9Gi"}, {Memory: "10Gi"}, {ComputeMax: "none"}} {
		if _, err := w.m.Resize(context.Background(), "aa1", r); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually("the pod's name is known", func() bool {
		c, err := w.m.Container(context.Background(), "train-0/main")
		return err == nil && c.ID == "aa1"
	})
	for range 2 {
		c, err := w.m.Container(context.Background(), "aa1")
		if err != nil || c.Details == nil {
			t.Fatalf("%+v, %v", c, err)
		}
		d := c.Details
		if d.Asked != req.Request || c.Request != (v1.Request{Memory: "10Gi", Compute: "30%", ComputeMax: "none"}) {
			t.Errorf("asked for %+v, now %+v", d.Asked, c.Request)
		}
		if len(d.Set) != 2 || d.Set[v1.LimitMemory].Word != "10Gi" || d.Set[v1.LimitComputeMax].Word != "none" || d.Set[v1.LimitMemory].Time.Before(c.Created) {
			t.Errorf("set: %+v", d.Set)
		}
		if d.Pod == nil || *d.Pod != (v1.Pod{Namespace: "ml", Name: "train-0", Container: "main"}) || d.Directory != claim.Directory || d.Bundle != bundle {
			t.Errorf("%+v", d)
		}
		w.restart()
	}
	// A list does not carry them.
	if l := w.m.List(context.Background()); l.Containers[0].Details != nil {
		t.Error("details in a list")
	}
}
