// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func newLog() (*Log, *clock) {
	c := &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	return New(c.now), c
}

func TestAfter(t *testing.T) {
	l, c := newLog()
	for _, r := range []string{v1.EventClaimed, v1.EventLimitChanged, v1.EventReleased} {
		l.Add(v1.Event{Reason: r})
	}
	all, missed, next, more := l.After(0)
	if len(all) != 3 || missed != 0 || all[0].Reason != v1.EventClaimed || all[1].Reason != v1.EventLimitChanged || all[2].Seq != next {
		t.Fatalf("%+v, %d missed, next %d", all, missed, next)
	}
	if got, _, _, _ := l.After(all[1].Seq); len(got) != 1 || got[0].Seq != next {
		t.Errorf("after the second: %+v", got)
	}
	if got, missed, _, _ := l.After(next + 7); len(got) != 3 || missed != 0 {
		t.Errorf("a number of the future: %d events", len(got))
	}
	select {
	case <-more:
		t.Error("more without an event")
	default:
	}
	l.Add(v1.Event{Reason: v1.EventDegraded})
	<-more
	// The log of the next daemon goes on above.
	c.t = c.t.Add(time.Second)
	later := New(c.now)
	later.Add(v1.Event{Reason: v1.EventDaemonStarted})
	if got, missed, _, _ := later.After(next + 1); len(got) != 1 || missed != 0 || got[0].Seq <= next+1 {
		t.Errorf("after a restart: %+v, %d missed", got, missed)
	}
}

// Containers that come and go by the thousand do not push out what matters, and
// a reader that was away learns how much it has missed.
func TestFloodOfLives(t *testing.T) {
	l, _ := newLog()
	l.Add(v1.Event{Reason: v1.EventDegraded})
	_, _, before, _ := l.After(0)
	for range 5000 {
		l.Add(v1.Event{Reason: v1.EventStarted})
	}
	all, missed, _, _ := l.After(0)
	if len(all) != Size+1 || all[0].Reason != v1.EventDegraded || missed != 5000-Size {
		t.Errorf("%d events, %d missed, the first is %s", len(all), missed, all[0].Reason)
	}
	if got, missed, _, _ := l.After(before); len(got) != Size || missed != 5000-Size {
		t.Errorf("a reader of before: %d events, %d missed", len(got), missed)
	}
}

func TestRates(t *testing.T) {
	l, c := newLog()
	rate := Rate{Burst: 3, Every: time.Minute}
	refuse := func(key string) { l.AddLimited(key, rate, v1.Event{Reason: v1.EventRefused, Message: "no"}) }
	for range 10 {
		refuse("a")
	}
	refuse("b")
	if got, _, _, _ := l.After(0); len(got) != 4 {
		t.Errorf("%d events, want 3 of a and 1 of b", len(got))
	}
	c.t = c.t.Add(time.Minute)
	refuse("a")
	got, _, _, _ := l.After(0)
	if last := got[len(got)-1].Message; last != "no (and 7 more like it)" {
		t.Errorf("after a minute: %q", last)
	}
	// A clock that is set back stops nobody for good.
	c.t = c.t.Add(-time.Hour)
	refuse("a")
	c.t = c.t.Add(time.Minute)
	refuse("a")
	if again, _, _, _ := l.After(0); len(again) != len(got)+1 {
		t.Errorf("after the clock was set back: %d events, want %d", len(again), len(got)+1)
	}
	for i := range 3 * maxKeys {
		refuse(strings.Repeat("k", i%97) + time.Duration(i).String())
	}
	if len(l.limits) > maxKeys {
		t.Errorf("%d keys are remembered", len(l.limits))
	}
}

func TestMessages(t *testing.T) {
	l, _ := newLog()
	for _, m := range []string{"a\nb\x1b[31m\u2028c\u009b\u202ed", "\xff\xfe", strings.Repeat("é", 4000)} {
		l.Add(v1.Event{Message: m})
	}
	all, _, _, _ := l.After(0)
	if all[0].Message != "a b [31m c  d" {
		t.Errorf("%q", all[0].Message)
	}
	for _, e := range all {
		if !utf8.ValidString(e.Message) || len(e.Message) > maxMessage || strings.ContainsAny(e.Message, "\n\x1b\u009b\u202e") {
			t.Errorf("%d bytes: %.60q", len(e.Message), e.Message)
		}
	}
}
