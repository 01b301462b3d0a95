// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package event keeps what happened on a node: the last events in memory, for
// whoever asks, and as they come for whoever follows.
//
// Nobody who causes events can push out what others need to see: each kind that
// a tenant can cause at will is limited in rate, and the events of containers'
// ordinary lives have a ring of their own. A reader holds no memory here, only
// a number; one that is too slow is told how many events it has missed.
package event

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

const (
	// Size is how many events each of the two rings holds.
	Size = 1024
	// maxMessage bounds a message in bytes.
	maxMessage = 1024
	// maxKeys bounds how many rate limits are remembered.
	maxKeys = 4096
)

// Rate is how many events of one key are let through: Burst at once, then one
// every Every. The zero value limits nothing.
type Rate struct {
	Burst int
	Every time.Duration
}

// Log is the node's events. It may be used by several goroutines.
type Log struct {
	now func() time.Time

	mu     sync.Mutex
	first  uint64 // sequence number of the first event of this log
	last   uint64
	life   ring // ordinary lives of containers
	rest   ring
	limits map[string]*bucket
	added  chan struct{} // closed and replaced with every event
}

type bucket struct {
	tokens  float64
	filled  time.Time
	skipped int
}

// New returns an empty log. Numbers go up over restarts too, since they begin at
// the time in microseconds.
func New(now func() time.Time) *Log {
	begin := uint64(max(now().UnixMicro(), 1))
	return &Log{now: now, first: begin + 1, last: begin, limits: make(map[string]*bucket), added: make(chan struct{})}
}

// Add keeps an event; it fills in Seq and Time.
func (l *Log) Add(e v1.Event) { l.AddLimited("", Rate{}, e) }

// AddLimited is Add for events that a tenant can cause: of those with the same
// key no more are kept than rate says, and the next one that is says how many
// were not.
func (l *Log) AddLimited(key string, rate Rate, e v1.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if rate.Burst > 0 {
		skipped, ok := l.admitLocked(key, rate, now)
		if !ok {
			return
		}
		if skipped > 0 {
			e.Message += fmt.Sprintf(" (and %d more like it)", skipped)
		}
	}
	l.last++
	e.Seq, e.Time, e.Message = l.last, now.UTC(), line(e.Message)
	if ordinary(e.Reason) {
		l.life.add(e)
	} else {
		l.rest.add(e)
	}
	close(l.added)
	l.added = make(chan struct{})
}

func ordinary(reason string) bool {
	return reason == v1.EventClaimed || reason == v1.EventStarted || reason == v1.EventReleased
}

// admitLocked takes a token of the key's bucket. It returns how many events had
// none since the last that had.
func (l *Log) admitLocked(key string, rate Rate, now time.Time) (skipped int, ok bool) {
	b := l.limits[key]
	if b == nil {
		if len(l.limits) >= maxKeys {
			l.forgetLocked(now)
		}
		b = &bucket{tokens: float64(rate.Burst), filled: now}
		l.limits[key] = b
	}
	if since := now.Sub(b.filled); since > 0 {
		b.tokens = min(b.tokens+float64(since)/float64(rate.Every), float64(rate.Burst))
	}
	b.filled = now
	if b.tokens < 1 {
		b.skipped++
		return 0, false
	}
	b.tokens--
	skipped, b.skipped = b.skipped, 0
	return skipped, true
}

// forgetLocked drops the older half of the rate limits.
func (l *Log) forgetLocked(now time.Time) {
	ages := make([]time.Duration, 0, len(l.limits))
	for _, b := range l.limits {
		ages = append(ages, now.Sub(b.filled))
	}
	slices.Sort(ages)
	for k, b := range l.limits {
		if now.Sub(b.filled) >= ages[len(ages)/2] {
			delete(l.limits, k)
		}
	}
}

// After returns the events with numbers above since, oldest first; how many of
// those are not kept any more; the number to ask after next; and a channel that
// is closed when there are more. A number that was never given out counts as 0.
func (l *Log) After(since uint64) (events []v1.Event, missed, next uint64, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if since > l.last || since < l.first-1 {
		since = l.first - 1
	}
	events = slices.Concat(l.life.after(since), l.rest.after(since))
	slices.SortFunc(events, func(a, b v1.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	missed = l.last - since - uint64(len(events))
	return events, missed, l.last, l.added
}

// ring holds the last Size events.
type ring struct {
	events []v1.Event
	at     int // of the oldest, once it is full
}

func (r *ring) add(e v1.Event) {
	if len(r.events) < Size {
		r.events = append(r.events, e)
		return
	}
	r.events[r.at] = e
	r.at = (r.at + 1) % Size
}

// after returns the events with higher numbers, oldest first.
func (r *ring) after(since uint64) []v1.Event {
	out := make([]v1.Event, 0, len(r.events))
	for i := range r.events {
		if e := r.events[(r.at+i)%len(r.events)]; e.Seq > since {
			out = append(out, e)
		}
	}
	return out
}

// line makes a message one line of bounded length: parts of it may be a tenant's.
func line(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage-len("…")], "") + "…"
	}
	return s
}
