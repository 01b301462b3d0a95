// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// member is a key of a JSON object with its value, by offsets into the text.
type member struct {
	name       string
	key        int // of the opening quote
	value, end int // value's first byte, and the byte after its last
}

// object is a JSON object by offsets.
type object struct {
	open, close int // of the brackets
	members     []member
}

func (o object) find(name string) (member, int, bool) {
	for i, m := range o.members {
		if m.name == name {
			return m, i, true
		}
	}
	return member{}, -1, false
}

// parseObject reads data, all of which must be one JSON object without a duplicate
// key at any level. Errors name line and column.
func parseObject(data []byte) (object, error) {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return object{}, fmt.Errorf("%s: not valid JSON: %w", position(data, int(syntax.Offset)-1), err)
		}
		return object{}, fmt.Errorf("not valid JSON: %w", err)
	}
	if _, ok := v.(map[string]any); !ok {
		return object{}, fmt.Errorf("%s: not a JSON object", position(data, skipSpace(data, 0)))
	}
	s := scanner{data: data, at: skipSpace(data, 0)}
	o := s.object()
	return o, s.err
}

// position is an offset for people. Columns count bytes.
func position(data []byte, offset int) string {
	offset = max(0, min(offset, len(data)))
	line := 1 + bytes.Count(data[:offset], []byte("\n"))
	return fmt.Sprintf("line %d, column %d", line, offset-bytes.LastIndexByte(data[:offset], '\n'))
}

// scanner walks over text that is known to be valid JSON.
type scanner struct {
	data []byte
	at   int
	err  error // the first duplicate key
}

func skipSpace(data []byte, at int) int {
	for at < len(data) && strings.IndexByte(" \t\r\n", data[at]) >= 0 {
		at++
	}
	return at
}

func (s *scanner) space() { s.at = skipSpace(s.data, s.at) }

func (s *scanner) object() object {
	o := object{open: s.at}
	s.at++
	for s.space(); s.data[s.at] != '}'; s.space() {
		if s.data[s.at] == ',' {
			s.at++
			continue
		}
		m := member{key: s.at}
		s.text()
		// Valid, so it decodes; escapes in a key mean the same as the letters.
		_ = json.Unmarshal(s.data[m.key:s.at], &m.name)
		if _, _, twice := o.find(m.name); twice && s.err == nil {
			s.err = fmt.Errorf("%s: key %q is there twice", position(s.data, m.key), m.name)
		}
		s.space()
		s.at++ // the colon
		s.space()
		m.value = s.at
		s.any()
		m.end = s.at
		o.members = append(o.members, m)
	}
	o.close = s.at
	s.at++
	return o
}

func (s *scanner) text() {
	for s.at++; s.data[s.at] != '"'; s.at++ {
		if s.data[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
}

func (s *scanner) any() {
	switch s.data[s.at] {
	case '{':
		s.object()
	case '"':
		s.text()
	case '[':
		for s.at++; ; {
			s.space()
			if s.data[s.at] == ']' {
				s.at++
				return
			}
			if s.data[s.at] == ',' {
				s.at++
				continue
			}
			s.any()
		}
	default: // number, true, false, null
		for s.at < len(s.data) && strings.IndexByte(",]} \t\r\n", s.data[s.at]) < 0 {
			s.at++
		}
	}
}

// layout is how a file is written: what a level is indented by, and how lines end.
type layout struct{ indent, newline string }

func layoutOf(data []byte, top object) layout {
	l := layout{indent: "    ", newline: "\n"}
	if bytes.Contains(data, []byte("\r\n")) {
		l.newline = "\r\n"
	}
	if len(top.members) > 0 {
		if in, own := indentation(data, top.members[0].key); own && in != "" {
			l.indent = in
		}
	}
	return l
}

// indentation returns the white space before an offset, and whether there is
// nothing else on the line before it.
func indentation(data []byte, at int) (string, bool) {
	before := data[bytes.LastIndexByte(data[:at], '\n')+1 : at]
	if !bytes.Contains(data[:at], []byte("\n")) || len(bytes.TrimLeft(before, " \t")) > 0 {
		return "", false
	}
	return string(before), true
}

// insert returns data with a member added at the end of object o. The value is
// written over several lines by render, which is given the member's indentation, or
// on one line if o's own members share a line.
func insert(data []byte, o object, l layout, depth int, name string, render func(indent string, l layout) string) []byte {
	var text string
	at := o.open + 1
	to := o.close
	indent := strings.Repeat(l.indent, depth)
	if n := len(o.members); n > 0 {
		last := o.members[n-1]
		at, to = last.end, last.end
		own, alone := indentation(data, last.key)
		if !alone {
			text = fmt.Sprintf(", %q: %s", name, render("", layout{}))
			return slices.Concat(data[:at], []byte(text), data[to:])
		}
		text = "," + l.newline + own + fmt.Sprintf("%q: ", name) + render(own, l)
	} else {
		text = l.newline + indent + fmt.Sprintf("%q: ", name) + render(indent, l) + l.newline + strings.Repeat(l.indent, depth-1)
	}
	return slices.Concat(data[:at], []byte(text), data[to:])
}

// remove returns data without member i of o.
func remove(data []byte, o object, i int) []byte {
	switch {
	case i > 0:
		return slices.Concat(data[:o.members[i-1].end], data[o.members[i].end:])
	case len(o.members) > 1:
		return slices.Concat(data[:o.members[0].key], data[o.members[1].key:])
	default:
		return slices.Concat(data[:o.open+1], data[o.close:])
	}
}

// nested renders {"key": value} at an indentation; a layout without a line end is
// for one line.
func nested(key string, value func(indent string, l layout) string) func(string, layout) string {
	return func(indent string, l layout) string {
		if l.newline == "" {
			return fmt.Sprintf("{%q: %s}", key, value("", l))
		}
		in := indent + l.indent
		return "{" + l.newline + in + fmt.Sprintf("%q: ", key) + value(in, l) + l.newline + indent + "}"
	}
}

// quoted renders a string.
func quoted(s string) func(string, layout) string {
	return func(string, layout) string {
		text, _ := json.Marshal(s) // a string always encodes
		return string(text)
	}
}
