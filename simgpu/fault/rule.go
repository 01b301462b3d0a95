// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package fault decides which calls of the simulated driver fail, are slow, or
// leave their results unwritten: the rules, how they are written, and the exact
// count of the calls that they match. Its user says which process calls what.
package fault

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/gpushare/gpushare/internal/suggest"
	"github.com/gpushare/gpushare/simgpu/api"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// Text is a value that may be written as a number or as a word.
type Text string

// UnmarshalJSON takes a number or a string.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err == nil {
		*t = Text(s)
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(b, &n); err != nil {
		return fmt.Errorf("%s: want a number or a name", b)
	}
	*t = Text(n)
	return nil
}

// Spec is a rule as an operator writes it, on the command line or in a file.
type Spec struct {
	Call       string  `json:"call"`              // a name, all forms of it; exactly one with "=" before it
	Nth        uint64  `json:"nth,omitempty"`     // the first call that it is about, from 1
	Every      uint64  `json:"every,omitempty"`   // and each so-manieth from there on
	Count      uint64  `json:"count,omitempty"`   // calls in all; 0: any number, one with nth alone
	RC         Text    `json:"rc,omitempty"`      // what they return, number or name; "": what they return by themselves
	Outputs    string  `json:"outputs,omitempty"` // untouched (the default), written or garbage
	GPU        *uint32 `json:"gpu,omitempty"`     // only calls about this GPU
	PID        uint32  `json:"pid,omitempty"`     // only of this process, as the host numbers it
	Cgroup     string  `json:"cgroup,omitempty"`  // only of processes whose control group's path has this in it
	PerProcess bool    `json:"per_process,omitempty"`
	Delay      string  `json:"delay,omitempty"` // wall time before the call, such as 50ms; at most a minute
}

// Rule is a Spec that has been understood, and its account.
type Rule struct {
	ID int `json:"id"`
	Spec
	Names []string `json:"names"`           // exported names that it is about
	Code  int32    `json:"code,omitempty"`  // of RC
	Calls uint64   `json:"calls,omitempty"` // that it was about, until now
	Hits  uint64   `json:"hits,omitempty"`  // of them that failed or were delayed

	nvml   bool
	action uint64
	delay  time.Duration
	counts map[uint32]*count
}

type count struct{ calls, hits uint64 }

const maxDelay = time.Minute

// newRule understands a Spec for a driver.
func newRule(d api.Driver, s Spec) (*Rule, error) {
	r := &Rule{Spec: s, counts: map[uint32]*count{}}
	var err error
	if r.Names, r.nvml, err = Names(d, s.Call); err != nil {
		return nil, err
	}
	if r.delay, err = delay(s.Delay); err != nil {
		return nil, err
	}
	switch s.Outputs {
	case "", "untouched":
		r.action = wire.FaultUntouched
	case "written":
		r.action = wire.FaultWritten
	case "garbage":
		r.action = wire.FaultGarbage
	default:
		return nil, fmt.Errorf("outputs %q: want untouched, written or garbage", s.Outputs)
	}
	if s.RC == "" {
		if s.Outputs != "" {
			return nil, errors.New("outputs: say with rc what the call returns")
		}
		if r.delay == 0 {
			return nil, errors.New("rc: say what the call returns, or with delay how slow it is")
		}
		r.action = wire.FaultNone
	} else if r.Code, err = Code(string(s.RC), r.nvml); err != nil {
		return nil, err
	}
	if s.RC != "" && slices.Contains(r.Names, "nvmlErrorString") {
		return nil, errors.New("nvmlErrorString returns no number: it can only be slow")
	}
	if s.RC != "" && r.Code == 0 && r.action == wire.FaultUntouched {
		return nil, errors.New("rc 0: a call that succeeds must be made: add outputs written or garbage")
	}
	return r, nil
}

func delay(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > maxDelay {
		return 0, fmt.Errorf("delay %q: want a time such as 50ms, at most %v", s, maxDelay)
	}
	return d, nil
}

// Code returns the number of a result of one interface, written as a number or a
// name.
func Code(s string, nvml bool) (int32, error) {
	if n, err := strconv.ParseInt(s, 0, 32); err == nil {
		if n < 0 {
			return 0, fmt.Errorf("rc %d: must not be negative", n)
		}
		return int32(n), nil
	}
	all := api.Errors(nvml)
	if n, ok := all[s]; ok {
		return n, nil
	}
	known := make([]string, 0, len(all))
	for k := range all {
		known = append(known, k)
	}
	return 0, fmt.Errorf("rc %q: no such result%s", s, cmp.Or(meant(s, known), ": want a number, or a name of cuda.h or nvml.h"))
}

// Names returns the exported names of a driver that a word means: all forms of
// a call, or with "=" before it the one of exactly that name.
func Names(d api.Driver, call string) (list []string, nvml bool, err error) {
	name, exact := strings.CutPrefix(call, "=")
	nvml = strings.HasPrefix(name, "nvml")
	all := api.CUDA()
	if nvml {
		all = api.NVML()
	}
	var known []string
	elsewhere := false
	for _, n := range all {
		if n.Data() {
			continue
		}
		known = append(known, n.Symbol)
		if n.Symbol != name && (exact || base(n) != name) {
			continue
		}
		if n.In(d.CUDA) {
			list = append(list, n.Symbol)
		} else {
			elsewhere = true
		}
	}
	switch {
	case name == "":
		return nil, false, errors.New("call: say which")
	case len(list) > 0:
		return list, nvml, nil
	case elsewhere:
		return nil, false, fmt.Errorf("call %q: driver %s does not have it", call, d.Version)
	}
	return nil, false, fmt.Errorf("call %q: no such name%s", call, meant(name, known))
}

// base is the name that all forms of a call share.
func base(n api.Name) string {
	if n.Base != "" {
		return n.Base
	}
	b := n.Symbol
	if i := strings.LastIndex(b, "_v"); i > 0 && strings.Trim(b[i+2:], "0123456789") == "" {
		b = b[:i]
	}
	return b
}

// ReadFile reads rules from a YAML file: a list under the word faults.
func ReadFile(path string) ([]Spec, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	var f struct {
		Faults []Spec `json:"faults"`
	}
	text, err := yaml.YAMLToJSONStrict(b)
	if err != nil {
		return nil, fmt.Errorf("read rules from %s: %w", path, err)
	}
	if err := strictly(text, &f); err != nil {
		return nil, fmt.Errorf("read rules from %s: %w", path, err)
	}
	return f.Faults, nil
}

// Decode reads one Spec as JSON, without words that it does not know.
func Decode(b []byte) (s Spec, err error) {
	if err := strictly(b, &s); err != nil {
		return s, fmt.Errorf("read rule: %w", err)
	}
	return s, nil
}

// words are those of a file.
var words = []string{"faults", "call", "nth", "every", "count", "rc", "outputs", "gpu", "pid", "cgroup", "per_process", "delay"}

// strictly reads JSON and says in the file's own words what is wrong with it.
func strictly(b []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if err == nil {
		return nil
	}
	if word, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("%s: no such word%s", word, meant(strings.Trim(word, `"`), words))
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		want := map[reflect.Kind]string{
			reflect.Uint64: "a whole number", reflect.Uint32: "a whole number", reflect.Bool: "true or false",
			reflect.String: "a text", reflect.Slice: "a list of rules", reflect.Struct: "{call: NAME, …}",
		}[wrong.Type.Kind()]
		field := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
		return fmt.Errorf("%s: %s: want %s", cmp.Or(field, "the file"), wrong.Value, cmp.Or(want, "another value"))
	}
	return err //nolint:wrapcheck // the callers say of what
}

// meant says what a misspelt word was meant to be, as the end of a message.
func meant(word string, known []string) string {
	if s := suggest.Nearest(word, known, "cuda_error_", "nvml_error_", "nvmldeviceget", "nvml", "cu"); s != "" {
		return "; did you mean " + s + "?"
	}
	return ""
}
