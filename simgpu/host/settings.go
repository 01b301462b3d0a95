// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gpushare/gpushare/internal/suggest"
)

// Setting is something about a GPU that the operator can set while it runs.
type Setting struct {
	Key   string
	Unit  string // of its values, or the values themselves
	Help  string
	Mock  string // the same thing in NVIDIA's NVML mock, also accepted
	apply func(h *Host, i int, value string) error
}

// auto is the value that hands a setting back to the model.
const auto = "auto"

// Settings lists what can be set, in the order in which help shows it.
func Settings() []Setting { return slices.Clone(settings) }

var settings []Setting

func init() { settings = makeSettings() } // the table refers to functions that refer to it

// pin replaces a value of the model by a number.
func pin(key, unit, help, mock string, lo, hi, scale int64) Setting {
	return Setting{Key: key, Unit: unit + ", or auto", Help: help, Mock: mock, apply: func(h *Host, i int, v string) error {
		m := &h.gpus[i].nvml
		if v == auto {
			delete(m.pins, key)
			return nil
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < lo || n > hi {
			return fmt.Errorf("want a number from %d to %d (%s), or auto", lo, hi, unit)
		}
		m.pins[key] = n * scale
		return nil
	}}
}

// choice sets one of several states.
func choice(key, help, mock string, apply func(h *Host, i, index int) error, values ...string) Setting {
	list := strings.Join(values, ", ")
	return Setting{Key: key, Unit: list, Help: help, Mock: mock, apply: func(h *Host, i int, v string) error {
		k := slices.Index(values, v)
		if k < 0 {
			if near := suggest.Nearest(v, values); near != "" {
				return fmt.Errorf("want one of %s; did you mean %s?", list, near)
			}
			return fmt.Errorf("want one of %s", list)
		}
		return apply(h, i, k)
	}}
}

func mode(to func(m *management) *uint32) func(*Host, int, int) error {
	return func(h *Host, i, k int) error {
		*to(&h.gpus[i].nvml) = uint32(k) //nolint:gosec // an index
		return nil
	}
}

// Set changes settings of GPU i, all of them or, if one cannot be, none of the
// later ones: each is "key=value".
func (h *Host) Set(i int, values []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i < 0 || i >= len(h.gpus) {
		return fmt.Errorf("GPU %d: the node has GPUs 0 to %d", i, len(h.gpus)-1)
	}
	type change struct {
		s Setting
		v string
	}
	var todo []change
	for _, kv := range values {
		k, v, ok := strings.Cut(kv, "=")
		if !ok {
			return fmt.Errorf("%q: want KEY=VALUE, for example temp=95", kv)
		}
		s, err := findSetting(strings.TrimSpace(k))
		if err != nil {
			return err
		}
		todo = append(todo, change{s, strings.TrimSpace(v)})
	}
	h.catchUp()
	h.sense(h.gpus[i]) // what was until now follows the old settings
	for _, c := range todo {
		if err := c.s.apply(h, i, c.v); err != nil {
			return fmt.Errorf("set %s to %q: %w", c.s.Key, c.v, err)
		}
	}
	return nil
}

func findSetting(key string) (Setting, error) {
	var keys []string
	for _, s := range settings {
		if s.Key == key || (s.Mock != "" && s.Mock == key) {
			return s, nil
		}
		keys = append(keys, s.Key)
	}
	if near := suggest.Nearest(key, keys); near != "" {
		return Setting{}, fmt.Errorf("nothing is called %q; did you mean %s?", key, near)
	}
	return Setting{}, fmt.Errorf("nothing is called %q; simgpu set --help lists what can be set", key)
}

// find returns the index of the GPU called name: an index or a UUID; "all" is
// not one.
func (h *Host) find(name string) (int, error) {
	if i, err := strconv.Atoi(name); err == nil {
		return i, nil
	}
	for i, g := range h.gpus {
		if g.uuid == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("GPU %q: want an index, a UUID or all", name)
}

// SetNamed does the same for a GPU by index, UUID, or all GPUs by "all".
func (h *Host) SetNamed(name string, values []string) error {
	if name == "all" {
		for i := range h.gpus {
			if err := h.Set(i, values); err != nil {
				return fmt.Errorf("GPU %d: %w", i, err)
			}
		}
		return nil
	}
	i, err := h.find(name)
	if err != nil {
		return err
	}
	return h.Set(i, values)
}

func parseDelay(v string) (int64, error) {
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 || d > 10*time.Second {
		return 0, errors.New("want a time up to 10s, like 700ms")
	}
	return d.Nanoseconds(), nil
}

// setSamples is the setting "samples".
func setSamples(h *Host, i int, v string) error {
	s := &h.gpus[i].nvml.sampling
	switch name, arg, _ := strings.Cut(v, ":"); name {
	case auto:
		*s = sampling{batchNS: h.gpus[i].nvml.batch(), deflated: s.deflated}
	case "missing":
		s.missing = true
	case "zero":
		s.zero = true
	case "late", "batch":
		d, err := parseDelay(arg)
		if err != nil {
			return err
		}
		if name == "late" {
			s.lateNS = d
		} else {
			s.batchNS = d
		}
	default:
		return errors.New("want auto, missing, zero, late:TIME or batch:TIME")
	}
	return nil
}

// batch is how long samples are held back together on this card.
func (m *management) batch() int64 { return int64(m.facts.SampleBatchMS) * int64(time.Millisecond) }

// setMismatch makes libraries and driver look as after an upgrade without a
// reload: nvmlInit and cuInit fail, on all GPUs.
func setMismatch(h *Host, _, k int) error {
	atomic.StoreUint32(&h.node.Mismatch, uint32(k)) //nolint:gosec // 0 or 1
	return nil
}

func setXID(h *Host, i int, v string) error {
	n, err := strconv.ParseUint(v, 10, 32)
	if err != nil || n == 0 {
		return errors.New("want the number of an XID, for example 79")
	}
	h.xid(i, uint32(n))
	return nil
}

func setPower(h *Host, i int, v string) error {
	m := &h.gpus[i].nvml
	if v == auto {
		m.powerLimit = m.facts.Power.DefaultLimitMW
		return nil
	}
	n, err := strconv.ParseUint(v, 10, 32)
	if p := &m.facts.Power; err != nil || n*1000 < uint64(p.MinLimitMW) || n*1000 > uint64(p.MaxLimitMW) {
		return fmt.Errorf("want a limit from %d to %d W", p.MinLimitMW/1000, p.MaxLimitMW/1000)
	}
	m.powerLimit = uint32(n * 1000) //nolint:gosec // checked
	return nil
}
