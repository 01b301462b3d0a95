// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// chromeEvent is an entry of the Trace Event Format, which chrome://tracing and
// Perfetto read. Times are microseconds.
type chromeEvent struct {
	Name  string            `json:"name"`
	Phase string            `json:"ph"`
	TS    float64           `json:"ts"`
	PID   int               `json:"pid"`
	TID   int               `json:"tid"`
	Scope string            `json:"s,omitempty"`
	Args  map[string]string `json:"args,omitempty"`
}

type lane struct {
	client          string
	context, stream int
}

// Chrome turns a trace into the JSON that chrome://tracing and Perfetto read: a
// process a GPU, a thread a stream, a slice for each time that an operation had
// an engine.
func Chrome(r io.Reader, w io.Writer) error {
	b := bufio.NewWriter(w)
	lanes, open, gpus := map[lane]int{}, map[lane]string{}, map[int]bool{}
	first := true
	put := func(e chromeEvent) error {
		sep := ",\n"
		if first {
			sep, first = "[\n", false
		}
		j, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		_, err = b.WriteString(sep + string(j))
		return err //nolint:wrapcheck // of the caller's writer
	}
	err := Each(r, func(e Event) error {
		l := lane{e.Client, e.Context, e.Stream}
		c := chromeEvent{TS: float64(e.TimeNS) / 1000, PID: e.GPU + 1, Args: map[string]string{}}
		for _, a := range e.Args {
			c.Args[a.Key] = a.Value
		}
		if !gpus[e.GPU] {
			gpus[e.GPU] = true
			name := fmt.Sprintf("GPU %d (SIMULATED)", e.GPU)
			if e.GPU == None {
				name = "clients"
			}
			if err := put(chromeEvent{Name: "process_name", Phase: "M", PID: c.PID, Args: map[string]string{"name": name}}); err != nil {
				return err
			}
		}
		if lanes[l] == 0 {
			lanes[l] = len(lanes) + 1
			name := e.Client
			if e.Context != None {
				name += fmt.Sprintf(" context %d", e.Context)
			}
			if e.Stream != None {
				name += fmt.Sprintf(" stream %d", e.Stream)
			}
			if err := put(chromeEvent{Name: "thread_name", Phase: "M", PID: c.PID, TID: lanes[l], Args: map[string]string{"name": name}}); err != nil {
				return err
			}
		}
		c.TID = lanes[l]
		switch {
		case e.What == Begin:
			c.Name, c.Phase = e.Arg("name"), "B"
			if c.Name == "" {
				c.Name = e.Arg("op")
			}
			open[l] = c.Name
		case (e.What == Preempt || e.What == End) && open[l] != "":
			c.Name, c.Phase = open[l], "E"
			delete(open, l)
		case e.What == End || e.What == Submit:
			return nil // of no length
		default:
			c.Name, c.Phase, c.Scope = e.What, "i", "t"
		}
		return put(c)
	})
	if err != nil {
		return err
	}
	end := "\n]\n"
	if first {
		end = "[]\n"
	}
	if _, err := b.WriteString(end); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}
