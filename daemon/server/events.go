// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// eventTimeout is how long a reader may leave one event in its connection. What
// is kept for a reader here is nothing but where it is, so one that does not
// read is dropped, and can ask again from there.
const eventTimeout = 10 * time.Second

// events writes events, one JSON object a line.
func events(w http.ResponseWriter, r *http.Request, b Backend, stopping context.Context) {
	q, err := eventQuery(r)
	if err != nil {
		answer(w, nil, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(stopping, cancel)()
	conn := http.NewResponseController(w)
	begun := false
	extend := func() { _ = conn.SetWriteDeadline(time.Now().Add(eventTimeout)) }
	begin := func(simulated bool) {
		begun = true
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.Header().Set(v1.SimulatedHeader, strconv.FormatBool(simulated))
		w.WriteHeader(http.StatusOK)
		if extend(); q.Follow {
			_ = conn.Flush() // so that the client knows that it is heard
		}
	}
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	err = b.Events(ctx, q, begin, func(e v1.Event) error {
		extend()
		if err := lines.Encode(e); err != nil || !q.Follow {
			return err
		}
		return conn.Flush()
	})
	if err != nil && !begun {
		answer(w, nil, err)
	}
}

func eventQuery(r *http.Request) (v1.EventQuery, error) {
	v := r.URL.Query()
	q := v1.EventQuery{Container: v.Get("container")}
	for name := range v {
		switch name {
		case "since", "follow", "container":
		default:
			return q, v1.Errorf(http.StatusBadRequest, v1.CodeRequest, "%.60q: events know since, follow and container", name)
		}
	}
	var err error
	if s := v.Get("since"); s != "" {
		if q.Since, err = strconv.ParseUint(s, 10, 64); err != nil {
			return q, v1.Errorf(http.StatusBadRequest, v1.CodeRequest, "since %.60q: write the seq of an event", s)
		}
	}
	if s := v.Get("follow"); s != "" {
		if q.Follow, err = strconv.ParseBool(s); err != nil {
			return q, v1.Errorf(http.StatusBadRequest, v1.CodeRequest, "follow %.60q: write 1 or 0", s)
		}
	}
	return q, nil
}
