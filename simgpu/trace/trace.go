// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package trace is the record of what happened on a simulated node: one line an
// event, in an order that is the same whenever the same things happen. It owns
// the format and no file.
//
// A line is
//
//	TIME GPU CLIENT CONTEXT STREAM WHAT [KEY=VALUE…]
//
// with TIME in nanoseconds and - where something does not apply. Lines that
// begin with # are remarks. Values with a blank or a quote in them are quoted as
// in Go.
package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Header begins every trace.
const Header = "# simgpu trace 1: SIMULATED\n# time_ns gpu client context stream what key=value…\n"

// None stands for a GPU, context or stream that an event has not.
const None = -1

// What can happen.
const (
	Attach        = "attach"         // a client connects
	Detach        = "detach"         // and is gone, with all that it held
	ContextCreate = "context-create" //
	ContextEnd    = "context-end"    //
	Memory        = "memory"         // bytes, count: pieces taken, or given back if negative, one after the other
	Submit        = "submit"         // op, name, bytes, n: the operation of that number in its stream
	Begin         = "begin"          // it has an engine, at first or again
	Preempt       = "preempt"        // another context's turn
	End           = "end"            // it is complete
	HostDue       = "host"           // a host function may run
	Fault         = "fault"          // code: the context is broken
)

// Arg is one value of an event.
type Arg struct {
	Key, Value string
}

// Event is one line.
type Event struct {
	TimeNS               int64
	GPU, Context, Stream int
	Client, What         string
	Args                 []Arg
}

func appendIndex(b []byte, n int) []byte {
	b = append(b, ' ')
	if n == None {
		return append(b, '-')
	}
	return strconv.AppendInt(b, int64(n), 10)
}

// Append writes the event as a line.
func (e *Event) Append(b []byte) []byte {
	b = strconv.AppendInt(b, e.TimeNS, 10)
	b = appendIndex(b, e.GPU)
	b = append(b, ' ')
	if e.Client == "" {
		b = append(b, '-')
	}
	b = append(b, e.Client...)
	b = appendIndex(appendIndex(b, e.Context), e.Stream)
	b = append(append(b, ' '), e.What...)
	for _, a := range e.Args {
		b = append(append(append(b, ' '), a.Key...), '=')
		if plain(a.Value) {
			b = append(b, a.Value...)
		} else {
			b = strconv.AppendQuoteToASCII(b, a.Value)
		}
	}
	return append(b, '\n')
}

func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || c == '"' {
			return false
		}
	}
	return s != ""
}

// Arg returns a value of the event, "" if it has none of that key.
func (e *Event) Arg(key string) string {
	for _, a := range e.Args {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

var errLine = errors.New("not a line of a trace")

func index(s string) (int, error) {
	if s == "-" {
		return None, nil
	}
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err //nolint:wrapcheck // wrapped by Parse
}

// Parse reads a line.
func Parse(line string) (e Event, err error) {
	f := strings.SplitN(line, " ", 7)
	if len(f) < 6 {
		return e, fmt.Errorf("read %q: %w", line, errLine)
	}
	var errs [4]error
	e.TimeNS, errs[0] = strconv.ParseInt(f[0], 10, 64)
	e.GPU, errs[1] = index(f[1])
	e.Context, errs[2] = index(f[3])
	e.Stream, errs[3] = index(f[4])
	if err := errors.Join(errs[:]...); err != nil {
		return e, fmt.Errorf("read %q: %w", line, err)
	}
	e.Client, e.What = f[2], f[5]
	if e.Client == "-" {
		e.Client = ""
	}
	rest := ""
	if len(f) == 7 {
		rest = f[6]
	}
	for rest != "" {
		key, value, ok := strings.Cut(rest, "=")
		if !ok {
			return e, fmt.Errorf("read %q: %w", line, errLine)
		}
		if strings.HasPrefix(value, `"`) {
			q, err := strconv.QuotedPrefix(value)
			if err != nil {
				return e, fmt.Errorf("read %q: %w", line, err)
			}
			rest = strings.TrimPrefix(value[len(q):], " ")
			value, _ = strconv.Unquote(q)
		} else {
			value, rest, _ = strings.Cut(value, " ")
		}
		e.Args = append(e.Args, Arg{key, value})
	}
	return e, nil
}

// Each calls f with every event of a trace.
func Each(r io.Reader, f func(Event) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		e, err := Parse(sc.Text())
		if err != nil {
			return err
		}
		if err := f(e); err != nil {
			return err
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("read trace: %w", err)
	}
	return nil
}
