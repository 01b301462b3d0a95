// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// reconnectEvery is how often one who follows looks whether a daemon that was
// ended is there again.
const reconnectEvery = 500 * time.Millisecond

func (t *terminal) eventsCommand() *cli.Command {
	return &cli.Command{
		Name: "events", Usage: "say what happened to containers and GPUs, oldest first", ArgsUsage: "[CONTAINER]",
		UsageText: "gpushare events\ngpushare events --since 10m train\ngpushare events -f\ngpushare events -o json",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with those to come, also over a restart of the daemon"},
			&cli.StringFlag{Name: "since", Usage: "only those after `WHEN`: 10m, 2026-01-02T15:04:05Z, or the seq of an event"},
			outputFlag("table or json, one object a line"),
		},
		Action: t.events,
	}
}

func (t *terminal) events(c *cli.Context) error {
	if c.Args().Len() > 1 {
		return usagef("unexpected argument %q; see: gpushare events --help", c.Args().Get(1))
	}
	f, err := form(c, "table", "json")
	if err != nil {
		return err
	}
	q := v1.EventQuery{Follow: c.Bool("follow"), Container: c.Args().First()}
	var from time.Time
	if c.IsSet("since") {
		if q.Since, from, err = since(c.String("since"), time.Now()); err != nil {
			return err
		}
	}
	cl, err := client(c)
	if err != nil {
		return err
	}
	said := false
	begin := func(simulated bool) {
		if !said {
			t.simulated(simulated)
		}
		said = true
	}
	each := func(e v1.Event) error {
		q.Since = e.Seq
		if e.Time.Before(from) {
			return nil
		}
		return writeEvent(t.out, e, f == "json")
	}
	for {
		err := cl.Events(c.Context, q, begin, each)
		if !q.Follow || !said || c.Context.Err() != nil || !over(err) {
			return err
		}
		if err := t.awaitDaemon(c.Context, cl); err != nil {
			return err
		}
	}
}

// over reports whether a stream ended because the daemon did.
func over(err error) bool { return err == nil || v1.Code(err) == v1.CodeDaemonDown }

// awaitDaemon waits until the daemon is there again.
func (t *terminal) awaitDaemon(ctx context.Context, cl *v1.Client) error {
	for first := true; ; first = false {
		err := cl.Health(ctx)
		if err == nil {
			return nil
		}
		if first {
			fmt.Fprintf(t.err, "gpushare: %s; waiting for it\n", oneLine(err.Error()))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reconnectEvery):
		}
	}
}

// since reads a word of --since: a time ago, a time, or an event's number.
func since(word string, now time.Time) (seq uint64, from time.Time, err error) {
	if seq, err := strconv.ParseUint(word, 10, 64); err == nil {
		return seq, time.Time{}, nil
	}
	if d, err := time.ParseDuration(word); err == nil && d >= 0 {
		return 0, now.Add(-d), nil
	}
	if at, err := time.Parse(time.RFC3339, word); err == nil {
		return 0, at, nil
	}
	return 0, time.Time{}, usagef("--since %q: write 10m, 2026-01-02T15:04:05Z, or the seq of an event", word)
}

func writeEvent(out io.Writer, e v1.Event, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return enc.Encode(e)
	}
	_, err := fmt.Fprintln(out, eventLine(e))
	return err
}

// eventLine is an event as people read it. What was kept of a tenant's words has
// no control characters any more; another daemon's answer may have.
func eventLine(e v1.Event) string {
	whom := e.Name
	if whom == "" {
		whom = trunc(e.Container, false)
	}
	if whom == "" {
		whom = "-"
	}
	gpu := ""
	if e.GPU != nil {
		gpu = fmt.Sprintf("GPU %d", *e.GPU)
	}
	return oneLine(fmt.Sprintf("%s  %-13s  %-20s  %-6s  %s", e.Time.UTC().Format("2006-01-02T15:04:05Z"), e.Reason, whom, gpu, e.Message))
}
