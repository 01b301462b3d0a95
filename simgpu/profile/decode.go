// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpushare/gpushare/internal/suggest"
	"github.com/gpushare/gpushare/limiter/quantity"
)

// units tells what a number of a field is, by the end of the field's name.
var units = []struct{ suffix, unit, example string }{
	{"_bytes", "bytes", "85899345920 or 80GiB"},
	{"_mw", "milliwatts", "700000"},
	{"_c", "degrees Celsius", "85"},
	{"_mbps", "megabytes a second", "26562"},
	{"_id", "a PCI id with its vendor", "0x233010DE"},
}

// decoder fills Go values from decoded YAML. It collects nothing: the first
// error ends it, and says which field it is about.
type decoder struct {
	// ignored are fields of NVIDIA's mock that nothing simulates, by path;
	// those that were met are kept in met.
	ignored map[string]bool
	met     []string
}

func fieldError(path string, format string, args ...any) error {
	return fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...))
}

// join makes the path of a field.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// object fills the fields of v, a struct, that in names; the others stay.
func (d *decoder) object(path string, in any, v reflect.Value) error {
	m, ok := in.(map[string]any)
	if !ok {
		return fieldError(path, "%s: want a group of fields", show(in))
	}
	fields := map[string]int{}
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("yaml"); name != "" {
			fields[name] = i
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		at := join(path, name)
		i, ok := fields[name]
		if !ok {
			if d.ignored[at] {
				d.met = append(d.met, at)
				continue
			}
			known := slices.Sorted(maps.Keys(fields))
			if s := suggest.Nearest(name, known); s != "" {
				return fieldError(at, "no such field; did you mean %s?", s)
			}
			return fieldError(at, "no such field; there are %s", strings.Join(known, ", "))
		}
		f := v.Type().Field(i)
		if m[name] == nil {
			return fieldError(at, "no value")
		}
		if err := d.value(at, m[name], v.Field(i), f.Tag); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) value(path string, in any, v reflect.Value, tag reflect.StructTag) error {
	if v.Type() == reflect.TypeFor[time.Duration]() {
		return duration(path, in, v, tag)
	}
	switch v.Kind() { //nolint:exhaustive // the kinds that profiles have
	case reflect.Struct:
		return d.object(path, in, v)
	case reflect.Interface:
		v.Set(reflect.ValueOf(in))
		return nil
	case reflect.String:
		return text(path, in, v, tag)
	case reflect.Bool:
		b, ok := in.(bool)
		if !ok {
			return fieldError(path, "%s: want true or false", show(in))
		}
		v.SetBool(b)
		return nil
	case reflect.Map:
		m, ok := in.(map[string]any)
		if !ok {
			return fieldError(path, "%s: want a group of fields", show(in))
		}
		out := reflect.MakeMapWithSize(v.Type(), len(m))
		for _, k := range slices.Sorted(maps.Keys(m)) {
			e := reflect.New(v.Type().Elem()).Elem()
			if err := d.value(join(path, k), m[k], e, tag); err != nil {
				return err
			}
			out.SetMapIndex(reflect.ValueOf(k), e)
		}
		v.Set(out)
		return nil
	case reflect.Slice:
		list, ok := in.([]any)
		if !ok {
			return fieldError(path, "%s: want a list", show(in))
		}
		out := reflect.MakeSlice(v.Type(), len(list), len(list))
		for i := range list {
			if err := d.value(fmt.Sprintf("%s[%d]", path, i), list[i], out.Index(i), tag); err != nil {
				return err
			}
		}
		v.Set(out)
		return nil
	case reflect.Float64:
		return fraction(path, in, v, tag)
	}
	return number(path, in, v, tag)
}

func text(path string, in any, v reflect.Value, tag reflect.StructTag) error {
	s, ok := in.(string)
	if n, isNumber := in.(json.Number); isNumber { // a serial without quotes
		s, ok = n.String(), true
	}
	if !ok {
		return fieldError(path, "%s: want text", show(in))
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fieldError(path, "%q: want printable ASCII", s)
	}
	if one := tag.Get("oneof"); one != "" {
		words := strings.Split(one, ",")
		if !slices.Contains(words, s) {
			words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
			return fieldError(path, "%q: want %s%s", s, strings.Join(words, ", "), didYouMean(s, words))
		}
	}
	if most, err := strconv.Atoi(tag.Get("max")); err == nil && len(s) > most {
		return fieldError(path, "%q: want at most %d characters", s, most)
	}
	v.SetString(s)
	return nil
}

func duration(path string, in any, v reflect.Value, tag reflect.StructTag) error {
	s, _ := in.(string)
	t, err := time.ParseDuration(s)
	if err != nil {
		return fieldError(path, "%s: want a time with its unit, for example 10us or 2ms", show(in))
	}
	least, _ := time.ParseDuration(tag.Get("min"))
	most, _ := time.ParseDuration(tag.Get("max"))
	if t < least || most > 0 && t > most {
		return fieldError(path, "%s: want %v to %v", s, least, most)
	}
	v.SetInt(int64(t))
	return nil
}

func fraction(path string, in any, v reflect.Value, tag reflect.StructTag) error {
	n, _ := in.(json.Number)
	x, err := n.Float64()
	if err != nil {
		return fieldError(path, "%s: want a number", show(in))
	}
	least, most := float64(0), math.MaxFloat64
	if f, err := strconv.ParseFloat(tag.Get("min"), 64); err == nil {
		least = f
	}
	if f, err := strconv.ParseFloat(tag.Get("max"), 64); err == nil {
		most = f
	}
	if x < least || x > most {
		return fieldError(path, "%v: want %v to %v", x, least, most)
	}
	v.SetFloat(x)
	return nil
}

// number takes whole numbers; a number of bytes may have a unit.
func number(path string, in any, v reflect.Value, tag reflect.StructTag) error {
	unit, example := "a whole number", ""
	for _, u := range units {
		if strings.HasSuffix(path, u.suffix) {
			unit, example = "a whole number of "+u.unit, ", for example "+u.example
			if u.suffix == "_id" {
				unit = u.unit
			}
		}
	}
	var x int64
	switch t := in.(type) {
	case json.Number:
		n, err := t.Int64()
		if err != nil {
			return fieldError(path, "%s: want %s%s", t, unit, example)
		}
		x = n
	case string:
		q, err := quantity.ParseMemory(t, quantity.Strict)
		if !strings.HasSuffix(path, "_bytes") || err != nil || q.IsPercent() || q.Bytes(0) > math.MaxInt64 {
			return fieldError(path, "%q: want %s%s", t, unit, example)
		}
		x = int64(q.Bytes(0)) //nolint:gosec // bounded above
	default:
		return fieldError(path, "%s: want %s%s", show(in), unit, example)
	}
	least, most := int64(0), int64(math.MaxInt64)
	if v.CanUint() && v.Type().Bits() == 32 {
		most = math.MaxUint32
	}
	if n, err := strconv.ParseInt(tag.Get("min"), 10, 64); err == nil {
		least = n
	}
	if n, err := strconv.ParseInt(tag.Get("max"), 10, 64); err == nil {
		most = n
	}
	if x < least || x > most {
		return fieldError(path, "%d: want %d to %d", x, least, most)
	}
	if v.CanUint() {
		v.SetUint(uint64(x))
	} else {
		v.SetInt(x)
	}
	return nil
}

// show repeats a value in an error, shortened.
func show(in any) string {
	b, err := json.Marshal(in)
	if err != nil {
		return "this"
	}
	if len(b) > 60 {
		return string(b[:60]) + "…"
	}
	return string(b)
}

func didYouMean(name string, candidates []string) string {
	if s := suggest.Nearest(name, candidates); s != "" {
		return fmt.Sprintf("; did you mean %s?", s)
	}
	return ""
}
