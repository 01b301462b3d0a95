// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"

	"github.com/gpushare/gpushare/simgpu/sim"
	"github.com/gpushare/gpushare/simgpu/trace"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// traceBytes bounds a trace: beyond it, what was written becomes FILE.1, in the
// place of an older one, and FILE begins again.
const traceBytes = 256 << 20

// tracer writes a trace. Host.mu guards it; a nil one writes nothing.
//
// Lines of one moment are kept until it has passed and put in the order of the
// clients' names: when several begin or end at a moment, the machine decides who
// is first.
type tracer struct {
	path    string
	f       *os.File
	w       *bufio.Writer
	written int64
	limit   int64
	at      int64
	lines   []tracedLine
	memory  tracedMemory // what the last line says, if it is of memory
	text    []byte
	log     *slog.Logger
}

type tracedLine struct {
	key      string
	from, to int // in text
}

// tracedMemory is memory that a client took, or gave back, one piece after the
// other: they are one line, since their order may be that of addresses.
type tracedMemory struct {
	c            *client
	gpu          int
	bytes, count int64
}

// tracedOp is what a trace calls an operation that is queued.
type tracedOp struct {
	op, name string
	bytes    int64
	n        uint64
}

func newTracer(path string, log *slog.Logger) (*tracer, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // a nil tracer writes nothing
	}
	t := &tracer{path: path, limit: traceBytes, log: log}
	return t, t.open()
}

func (t *tracer) open() (err error) {
	t.f, err = os.OpenFile(t.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644) //nolint:gosec // the operator's file
	if err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	t.w = bufio.NewWriterSize(t.f, 1<<16)
	t.written = 0
	_, err = t.w.WriteString(trace.Header)
	return err //nolint:wrapcheck // a buffer
}

// add notes an event of c.
func (t *tracer) add(c *client, e *trace.Event) {
	if e.TimeNS != t.at {
		t.flush()
		t.at = e.TimeNS
	}
	t.memory = tracedMemory{}
	e.Client = c.key
	from := len(t.text)
	t.text = e.Append(t.text)
	t.lines = append(t.lines, tracedLine{key: c.key, from: from, to: len(t.text)})
}

// flush writes what is noted of the moment.
func (t *tracer) flush() {
	if t == nil || len(t.lines) == 0 {
		return
	}
	t.memory = tracedMemory{}
	slices.SortStableFunc(t.lines, func(a, b tracedLine) int { return cmp.Compare(a.key, b.key) })
	for _, l := range t.lines {
		_, _ = t.w.Write(t.text[l.from:l.to])
	}
	t.written += int64(len(t.text))
	t.lines, t.text = t.lines[:0], t.text[:0]
	if t.written > t.limit {
		t.rotate()
	}
}

func (t *tracer) rotate() {
	t.close()
	err := os.Rename(t.path, t.path+".1")
	if err == nil {
		err = t.open()
	}
	if err != nil {
		t.log.Error("the trace ends here", "err", err)
		t.w.Reset(discard{})
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// sync makes the file hold what has been traced.
func (t *tracer) sync() {
	if t == nil {
		return
	}
	t.flush()
	if err := t.w.Flush(); err != nil {
		t.log.Error("the trace ends here", "err", err)
		t.w.Reset(discard{})
	}
}

func (t *tracer) close() {
	if t == nil {
		return
	}
	t.sync()
	_ = t.f.Close()
}

func arg(key string, n int64) trace.Arg { return trace.Arg{Key: key, Value: strconv.FormatInt(n, 10)} }

// client notes that c came, went or asked for something on a GPU.
func (t *tracer) client(c *client, at int64, what string, gpu, context int, args ...trace.Arg) {
	if t != nil {
		t.add(c, &trace.Event{TimeNS: at, GPU: gpu, Context: context, Stream: trace.None, What: what, Args: args})
	}
}

// tracedMemory notes memory taken or given back; what a client held at its end is
// given back without words.
func (h *Host) tracedMemory(c *client, gpu int, bytes int64) {
	t := h.trace
	if c.gone || t == nil {
		return
	}
	now, m := h.clock.now(), tracedMemory{c, gpu, bytes, 1}
	if o := t.memory; o.c == c && o.gpu == gpu && (o.bytes < 0) == (bytes < 0) && t.at == now {
		last := len(t.lines) - 1
		t.text, t.lines = t.text[:t.lines[last].from], t.lines[:last]
		m.bytes += o.bytes
		m.count += o.count
	}
	t.client(c, now, trace.Memory, gpu, trace.None, arg("bytes", m.bytes), arg("count", m.count))
	t.memory = m
}

func (t *tracer) stream(s *stream, at int64, what string, args ...trace.Arg) {
	t.add(s.c, &trace.Event{
		TimeNS: at, GPU: s.ctx.gpu, Context: int(s.ctx.id), Stream: int(s.slot), What: what, Args: args,
	})
}

func (o *tracedOp) args() []trace.Arg {
	a := []trace.Arg{{Key: "op", Value: o.op}}
	if o.name != "" {
		a = append(a, trace.Arg{Key: "name", Value: o.name})
	}
	if o.bytes != 0 {
		a = append(a, arg("bytes", o.bytes))
	}
	return append(a, arg("n", int64(o.n))) //nolint:gosec // a count
}

var copyNames = map[uint32]string{
	wire.CopyHtoD: "copy-htod", wire.CopyDtoH: "copy-dtoh", wire.CopyDtoD: "copy-dtod", wire.CopyPeer: "copy-peer",
	wire.CopyHost: "copy-host",
}

// submitted notes an operation of s before the model is told of it.
func (h *Host) submitted(s *stream, e *wire.Entry) {
	if h.trace == nil {
		return
	}
	o := tracedOp{n: s.done + uint64(s.sim.Len()) + 1} //nolint:gosec // a length
	switch e.Kind {
	case wire.EntryKernel:
		o.op, o.name = "kernel", cmp.Or(h.names.of(e.Arg).name, "?")
	case wire.EntryGraph:
		o.op = "graph"
	case wire.EntryEvent:
		o.op, o.name = "event", strconv.FormatUint(uint64(e.Arg), 10)
	case wire.EntryWait:
		o.op, o.name = "wait", strconv.FormatUint(uint64(e.Arg), 10)
	case wire.EntryHost:
		o.op = "host"
	case wire.EntryCopy:
		o.op, o.bytes = cmp.Or(copyNames[e.Arg&wire.CopyWay], "copy"), int64(e.Arg64) //nolint:gosec // shown only
	case wire.EntryFill:
		o.op, o.bytes = "fill", int64(e.Arg64) //nolint:gosec // shown only
	default:
		o.op = "other"
	}
	s.traced = append(s.traced, o)
	h.trace.stream(s, h.machine.Now(), trace.Submit, o.args()...)
}

// refused takes the newest operation back, which the model did not accept.
func (h *Host) refused(s *stream) {
	if n := len(s.traced); h.trace != nil && n > 0 {
		s.traced = s.traced[:n-1]
	}
}

// head notes what becomes of the operation at the head of a stream.
func (t *tracer) head(s *stream, what string, at sim.Time) {
	if t != nil && len(s.traced) > 0 {
		t.stream(s, at, what, s.traced[0].args()...)
	}
}

// ended notes that operations up to position are complete.
func (t *tracer) ended(s *stream, position uint64, at sim.Time) {
	if t == nil {
		return
	}
	for len(s.traced) > 0 && s.traced[0].n <= position {
		t.head(s, trace.End, at)
		s.traced = s.traced[1:]
	}
}
