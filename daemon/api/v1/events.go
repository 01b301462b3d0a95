// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strconv"
	"time"
)

// Reasons of events.
const (
	EventDaemonStarted = "DaemonStarted" // this daemon took up its work
	EventTakenUp       = "TakenUp"       // a container that an earlier daemon left running
	EventClaimed       = "Claimed"       // a container got its place
	EventStarted       = "Started"       // its first process runs
	EventReleased      = "Released"      // its place is free again
	EventRefused       = "Refused"       // a container did not get a place
	EventDenied        = "Denied"        // allocations were refused at the limit; at most one event a minute
	EventThrottled     = "Throttled"     // launches wait for the share; at most one event in five minutes
	EventDegraded      = "Degraded"      // a container's limits are not held, or not known to be
	EventEnforced      = "Enforced"      // they are again
	EventOverrun       = "Overrun"       // the driver took memory unasked, beyond a container's limit
	EventOverrunEnded  = "OverrunEnded"  // the container is within its limit again
	EventLimitChanged  = "LimitChanged"  // by gpushare set
	EventGPULost       = "GPULost"       // a GPU cannot be used any more
	EventGPUFound      = "GPUFound"      // it can again
	EventStateDamaged  = "StateDamaged"  // something of the daemon's own state had to be set aside
	EventMissed        = "EventsMissed"  // in a stream: events that are not kept any more
)

// Event is something that happened on the node.
type Event struct {
	// Seq goes up with every event, over restarts of the daemon too; not every
	// number is used.
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	// Container is the id of the container that it is about, if it is about one,
	// Name what its engine calls it, if that was known then.
	Container string `json:"container,omitempty"`
	Name      string `json:"name,omitempty"`
	// GPU is the index of the GPU that it is about, absent if it is about none or
	// several.
	GPU     *int   `json:"gpu,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// EventQuery says which events are wanted.
type EventQuery struct {
	// Since is the Seq of the last event that is known already; 0 asks for all.
	Since uint64
	// Follow keeps the answer open for events to come.
	Follow bool
	// Container is an id, a prefix of one, or a name; empty for all.
	Container string
}

// SimulatedHeader is "true" in an answer about a node whose GPUs are simulated.
const SimulatedHeader = "Gpushare-Simulated"

// Events hands the events that were asked for to each, one after the other, until
// there is no more, or, following, until ctx or the daemon ends. begin is called
// first, with whether the node's GPUs are simulated. An error of each ends it.
func (c *Client) Events(ctx context.Context, q EventQuery, begin func(simulated bool), each func(Event) error) error {
	if !q.Follow {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	v := url.Values{}
	v.Set("since", strconv.FormatUint(q.Since, 10))
	if q.Follow {
		v.Set("follow", "1")
	}
	if q.Container != "" {
		v.Set("container", q.Container)
	}
	resp, err := open(ctx, c.socket, "GET", "/v1/events?"+v.Encode(), nil)
	if err != nil {
		return c.unreachable(err)
	}
	defer resp.Close()
	if resp.status >= 400 {
		raw, _ := io.ReadAll(io.LimitReader(resp.body, maxAnswer))
		return refusal(resp.status, raw)
	}
	begin(resp.simulated)
	d := json.NewDecoder(resp.body)
	for {
		var e Event
		err := d.Decode(&e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.unreachable(err)
		}
		if err := each(e); err != nil {
			return err
		}
	}
}
