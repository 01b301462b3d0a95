// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"testing"
	"time"

	task "github.com/containerd/containerd/api/runtime/task/v3"
)

// A shim to which no container ever comes ends; while one is being made it does not,
// and afterwards containerd's own service, which knows its containers, is asked again.
func TestAlone(t *testing.T) {
	ended := make(chan struct{}, 8)
	a := newAlone(time.Millisecond, func() { ended <- struct{}{} })
	wait := func(when string) {
		t.Helper()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatal("did not end " + when)
		}
	}
	wait("without a container")
	a.begin()
	a.begin()
	a.done()
	a.fire()
	select {
	case <-ended:
		t.Error("ended while a container was being made")
	default:
	}
	a.done()
	wait("after the last call")
}

// Create and Delete count, also where they fail.
func TestAloneCountsCalls(t *testing.T) {
	w := newWorld(t, configured(t))
	w.service.alone = newAlone(time.Hour, func() {})
	_ = w.create(t, &task.CreateTaskRequest{ID: "c1", Bundle: t.TempDir()})
	_, _ = w.service.Delete(context.Background(), &task.DeleteRequest{ID: "c1"})
	w.service.alone.mu.Lock()
	defer w.service.alone.mu.Unlock()
	if w.service.alone.calls != 0 {
		t.Errorf("%d calls are under way", w.service.alone.calls)
	}
	if !w.service.alone.timer.Stop() {
		t.Error("nothing waits for the next container")
	}
}
