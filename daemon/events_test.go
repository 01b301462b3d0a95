// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter/region"
)

// events returns what a query gets at once.
func (w *world) events(q v1.EventQuery) ([]v1.Event, error) {
	w.t.Helper()
	var out []v1.Event
	err := w.m.Events(context.Background(), q, func(bool) {}, func(e v1.Event) error { out = append(out, e); return nil })
	return out, err
}

func reasons(events []v1.Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.Reason)
	}
	return out
}

// A container's life is told, with its numbers, and so are claims that were
// refused.
func TestEventsOfALife(t *testing.T) {
	w := newWorld(t)
	_, claimant := w.mustClaim("aa1", v1.Request{Memory: "8Gi", Compute: "30%"})
	init := w.run("aa1", claimant)
	if _, err := w.m.Resize(context.Background(), "aa1", v1.ResizeRequest{Memory: "10Gi"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.claim("bb1", v1.Request{Memory: "99Gi"}); v1.Code(err) != v1.CodeNoFit {
		t.Fatal(err)
	}
	// A restart forgets what was told, and tells what it finds.
	before, err := w.events(v1.EventQuery{Container: "aa"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{v1.EventClaimed, v1.EventStarted, v1.EventLimitChanged}; !slices.Equal(reasons(before), want) {
		t.Errorf("%v, want %v", reasons(before), want)
	}
	for i, want := range []string{"asked for memory 8Gi, compute 30% (by env): 8 GiB of GPU 0, compute 30%, at most 30%", fmt.Sprintf("pid %d", init.Process.Pid), "8 GiB of GPU 0, compute 30%, at most 30% → 10 GiB"} {
		if !strings.Contains(before[i].Message, want) || before[i].GPU == nil || *before[i].GPU != 0 {
			t.Errorf("%+v, want %q", before[i], want)
		}
	}
	all, _ := w.events(v1.EventQuery{})
	if last := all[len(all)-1]; last.Reason != v1.EventRefused || last.Container != "bb1" ||
		!strings.Contains(last.Message, "asked for memory 99Gi (by env): ") || !strings.HasSuffix(last.Message, "["+v1.CodeNoFit+"]") {
		t.Errorf("%+v", last)
	}
	w.restart()
	end(init)
	w.eventually("the end is told", func() bool {
		after, err := w.events(v1.EventQuery{Since: all[len(all)-1].Seq, Container: "aa1"})
		return err == nil && slices.Equal(reasons(after), []string{v1.EventTakenUp, v1.EventReleased})
	})
	if _, err := w.events(v1.EventQuery{Container: "cc"}); v1.Code(err) != v1.CodeNotFound {
		t.Errorf("of nobody: %v", err)
	}
}

// Refusals and denials do not flood the events, however often a tenant tries.
func TestEventsAreLimited(t *testing.T) {
	w := newWorld(t)
	for i := range 200 {
		_, err := w.m.Claim(context.Background(), w.request(fmt.Sprintf("x%d", i), os.Getpid(), v1.Request{Memory: "8", Compute: "a\nb"}))
		if err == nil {
			t.Fatal("claimed")
		}
	}
	got, _ := w.events(v1.EventQuery{})
	if n := len(got); n > 2*refusedRate.Burst {
		t.Errorf("%d events of 200 refusals", n)
	}
	c, _ := w.mustClaim("aa1", v1.Request{Memory: "8Gi", GPU: "0"})
	ledger, err := os.OpenFile(filepath.Join(c.Directory, "ledger"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	deny := func(n uint64) {
		word := make([]byte, 16)
		binary.NativeEndian.PutUint64(word, n)
		binary.NativeEndian.PutUint64(word[8:], n*gib)
		if _, err := ledger.WriteAt(word, 64+8*5); err != nil { // GPUAccount.Denied, DeniedBytes
			t.Fatal(err)
		}
	}
	denials := func() []v1.Event {
		all, _ := w.events(v1.EventQuery{Container: "aa1"})
		return slices.DeleteFunc(all, func(e v1.Event) bool { return e.Reason != v1.EventDenied })
	}
	deny(3)
	w.eventually("a denial is told", func() bool { return len(denials()) == 1 })
	if e := denials()[0]; !strings.Contains(e.Message, "3 allocations refused on GPU 0 at its limit of 8 GiB") || !strings.Contains(e.Message, "3 GiB refused in all") {
		t.Errorf("%+v", e)
	}
	own := w.m.containers["aa1"]
	usage := func(n uint64) region.Usage {
		return region.Usage{GPU: []region.GPUUsage{{GPUAccount: region.GPUAccount{Denied: n}}}}
	}
	for i := range uint64(100) {
		w.m.countDenied(own, usage(4+i))
	}
	w.m.countDenied(own, region.Usage{GPU: make([]region.GPUUsage, 9)}) // nonsense of a tenant's
	if n := len(denials()); n != 1 {
		t.Errorf("%d events within a minute", n)
	}
	w.m.mu.Lock()
	own.seen.deniedAt = own.seen.deniedAt.Add(-deniedEvery)
	w.m.mu.Unlock()
	w.m.countDenied(own, usage(1000))
	if all := denials(); len(all) != 2 || !strings.HasPrefix(all[1].Message, "997 allocations") {
		t.Errorf("a minute later: %+v", all)
	}
}

// A loss of enforcement is told once, and its end.
func TestEventsOfEnforcement(t *testing.T) {
	w := newWorld(t)
	_, claimant := w.mustClaim("aa1", v1.Request{Memory: "8Gi", GPU: "1"})
	w.run("aa1", claimant)
	look := func() []string {
		w.m.observe(context.Background())
		all, _ := w.events(v1.EventQuery{})
		return reasons(all)
	}
	first := look()
	w.nvml.mu.Lock()
	w.nvml.lost = true
	w.nvml.mu.Unlock()
	w.m.node.refresh(context.Background())
	look()
	lost := look()[len(first):]
	w.nvml.mu.Lock()
	w.nvml.lost = false
	w.nvml.mu.Unlock()
	w.m.node.refresh(context.Background())
	look()
	found := look()[len(first)+len(lost):]
	if !slices.Equal(lost, []string{v1.EventDegraded, v1.EventGPULost}) || !slices.Equal(found, []string{v1.EventEnforced, v1.EventGPUFound}) {
		t.Errorf("lost: %v, found again: %v", lost, found)
	}
}

func TestFollowersAreLimited(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	begun, ended := make(chan bool, maxFollowers), make(chan error, maxFollowers)
	for range maxFollowers {
		go func() {
			ended <- w.m.Events(ctx, v1.EventQuery{Follow: true}, func(s bool) { begun <- s }, func(v1.Event) error { return nil })
		}()
	}
	for range maxFollowers {
		<-begun
	}
	err := w.m.Events(ctx, v1.EventQuery{Follow: true}, func(bool) { t.Error("one too many") }, func(v1.Event) error { return nil })
	if v1.Code(err) != v1.CodeRequest {
		t.Errorf("one too many: %v", err)
	}
	cancel()
	for range maxFollowers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	got := make(chan v1.Event, 100)
	go func() {
		ended <- w.m.Events(ctx, v1.EventQuery{Follow: true}, func(s bool) { begun <- s }, func(e v1.Event) error { got <- e; return nil })
	}()
	<-begun
	w.mustClaim("aa1", v1.Request{Memory: "8Gi"})
	for e := range got {
		if e.Reason == v1.EventClaimed {
			break
		}
	}
	w.m.Close() // lets go of who follows
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A manager that is stuck does not say that it is well.
func TestHealth(t *testing.T) {
	w := newWorld(t)
	if err := w.m.Health(); err != nil {
		t.Error(err)
	}
	w.m.mu.Lock()
	answered := make(chan error, 1)
	go func() { answered <- w.m.Health() }()
	select {
	case err := <-answered:
		t.Errorf("with its lock held: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	w.m.mu.Unlock()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	// A container whose account is held hangs the round over the ledgers.
	w.mustClaim("aa1", v1.Request{Memory: "8Gi"})
	c := w.m.containers["aa1"]
	c.acct.Lock()
	w.eventually("a round begins", func() bool { return w.m.round.Load() != 0 })
	w.m.round.Store(-int64(2 * stuckAfter)) // as if it had begun that long ago
	err := w.m.Health()
	c.acct.Unlock()
	if err == nil || !strings.Contains(err.Error(), "has hung for") {
		t.Errorf("with a round that hangs: %v", err)
	}
	w.m.Close()
	if err := w.m.Health(); !errors.Is(err, errClosed) {
		t.Errorf("ended: %v", err)
	}
}
