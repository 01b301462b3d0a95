// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/event"
	"github.com/gpushare/gpushare/daemon/state"
	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/limiter/region"
)

// maxFollowers bounds how many follow the events at one time.
const maxFollowers = 64

// How often events are kept that a tenant can cause as often as it likes.
var (
	refusedRate = event.Rate{Burst: 10, Every: 6 * time.Second} // of each code
	stateRate   = event.Rate{Burst: 4, Every: time.Minute}      // of each container or GPU
)

// noteLocked keeps an event about a container.
func (m *Manager) noteLocked(c *container, reason, format string, args ...any) {
	m.events.Add(m.eventLocked(c, reason, format, args...))
}

func (m *Manager) eventLocked(c *container, reason, format string, args ...any) v1.Event {
	e := v1.Event{Container: c.id, Name: c.rec.Name, Reason: reason, Message: fmt.Sprintf(format, args...)}
	if len(c.rec.GPUs) == 1 {
		index := c.rec.GPUs[0].Index
		e.GPU = &index
	}
	return e
}

// noteRefused keeps that a claim was refused.
func (m *Manager) noteRefused(req v1.ClaimRequest, err error) {
	if errors.Is(err, errClosed) {
		return
	}
	code := v1.Code(err)
	m.events.AddLimited("refused "+code, refusedRate, v1.Event{
		Container: validOrEmpty(req.ID), Reason: v1.EventRefused,
		Message: fmt.Sprintf("asked for %s: %v", askedWords(req.Request, req.Source), err),
	})
}

// askedWords are the words of a request as people read them.
func askedWords(r v1.Request, source string) string {
	var out []string
	for _, w := range []struct{ name, word string }{
		{"profile", r.Profile}, {"memory", r.Memory}, {"compute", r.Compute}, {"compute-max", r.ComputeMax}, {"host-memory", r.HostMemory}, {"gpu", r.GPU},
	} {
		if w.word != "" {
			out = append(out, fmt.Sprintf("%s %.60s", w.name, w.word))
		}
	}
	if len(out) == 0 {
		out = append(out, "the node's default share")
	}
	return fmt.Sprintf("%s (by %.20s)", strings.Join(out, ", "), source)
}

// grantedWords are limits as people read them, with the host memory beside them.
func grantedWords(gpus []state.GPU, host uint64) string {
	var out []string
	for _, g := range gpus {
		share := "no guarantee"
		if g.ComputeMilli > 0 {
			share = quantity.FormatShare(g.ComputeMilli)
		}
		ceiling := "no ceiling"
		if g.CeilingMilli < region.MilliGPU {
			ceiling = "at most " + quantity.FormatShare(g.CeilingMilli)
		}
		out = append(out, fmt.Sprintf("%s of GPU %d, compute %s, %s", quantity.FormatBytes(g.MemoryBytes), g.Index, share, ceiling))
	}
	if host > 0 {
		out = append(out, quantity.FormatBytes(host)+" of host memory")
	}
	return strings.Join(out, " · ")
}

// Events hands out events: those that are kept, and, following, those to come
// until ctx or the daemon ends. begin is called first.
func (m *Manager) Events(ctx context.Context, q v1.EventQuery, begin func(simulated bool), send func(v1.Event) error) error {
	match, err := m.matcher(q)
	if err != nil {
		return err
	}
	if q.Follow {
		if m.followers.Add(1) > maxFollowers {
			m.followers.Add(-1)
			return v1.Errorf(http.StatusTooManyRequests, v1.CodeRequest, "%d follow the events already, no more can; end one", maxFollowers)
		}
		defer m.followers.Add(-1)
	}
	begin(m.node.simulated())
	for {
		events, missed, next, more := m.events.After(q.Since)
		if missed > 0 && q.Since > 0 {
			err := send(v1.Event{Seq: q.Since, Time: time.Now().UTC(), Reason: v1.EventMissed,
				Message: fmt.Sprintf("%d events are not kept any more", missed)})
			if err != nil {
				return err
			}
		}
		for _, e := range events {
			if match(e) {
				if err := send(e); err != nil {
					return err
				}
			}
		}
		if q.Since = next; !q.Follow {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		case <-m.ctx.Done():
			return nil
		}
	}
}

// matcher says which events a query means. A container need not live any more,
// but something must be known of it.
func (m *Manager) matcher(q v1.EventQuery) (func(v1.Event) bool, error) {
	if q.Container == "" {
		return func(v1.Event) bool { return true }, nil
	}
	ids := make(map[string]bool)
	m.mu.Lock()
	c, err := m.lookLocked(q.Container)
	m.mu.Unlock()
	switch {
	case err == nil:
		ids[c.id] = true
	case v1.Code(err) == v1.CodeAmbiguous:
		return nil, err
	}
	is := func(e v1.Event) bool {
		return e.Container != "" && strings.HasPrefix(e.Container, q.Container) || e.Name != "" && e.Name == q.Container
	}
	// Its first events were kept before its name was known.
	events, _, _, _ := m.events.After(0)
	for _, e := range events {
		if is(e) {
			ids[e.Container] = true
		}
	}
	if len(ids) == 0 {
		return nil, v1.Errorf(http.StatusNotFound, v1.CodeNotFound, "nothing is known of a container %.80q; see: gpushare events", q.Container)
	}
	return func(e v1.Event) bool { return ids[e.Container] || is(e) }, nil
}

// recent returns the last events of a container, at most n.
func (m *Manager) recent(id string, n int) []v1.Event {
	var out []v1.Event
	events, _, _, _ := m.events.After(0)
	for _, e := range events {
		if e.Container == id {
			out = append(out, e)
		}
	}
	return out[max(0, len(out)-n):]
}
