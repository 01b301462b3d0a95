// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Our part of a file that is somebody else's stands between these lines.
const (
	markBegin = `# gpushare: begin; written by "gpushare install", taken out by "gpushare uninstall"`
	markEnd   = "# gpushare: end"
)

// CRI plugin ids, by version of the configuration file.
const (
	criV1      = "cri"
	criV2      = "io.containerd.grpc.v1.cri"
	criRuntime = "io.containerd.cri.v1.runtime"
)

// criPlugin is where a file of a version has the runtime handlers.
func criPlugin(version int64) string {
	switch {
	case version <= 1:
		return criV1
	case version == 2:
		return criV2
	}
	return criRuntime
}

// tree is a TOML table.
type tree = map[string]any

// at walks down tables; nil if one is not there.
func at(t tree, path ...string) tree {
	for _, p := range path {
		next, ok := t[p].(tree)
		if !ok {
			return nil
		}
		t = next
	}
	return t
}

// parseTOML reads a file. Errors name line and column.
func parseTOML(name string, data []byte) (tree, error) {
	t := tree{}
	if err := toml.Unmarshal(data, &t); err != nil {
		var decode *toml.DecodeError
		if errors.As(err, &decode) {
			line, column := decode.Position()
			return nil, refuse("%s: line %d, column %d: not valid TOML: %w", name, line, column, err)
		}
		return nil, refuse("%s: not valid TOML: %w", name, err)
	}
	return t, nil
}

// versionOf is the version that a file says, 1 if it says none.
func versionOf(t tree) int64 {
	if v, ok := t["version"].(int64); ok {
		return v
	}
	return 1
}

// table renders one table with the keys in order, and its options below it.
func table(plugin, name string, keys tree, l layout) string {
	var out strings.Builder
	head := fmt.Sprintf("plugins.%q.containerd.runtimes.%s", plugin, bare(name))
	section := func(head string, t tree) {
		out.WriteString("[" + head + "]" + l.newline)
		for _, k := range slices.Sorted(maps.Keys(t)) {
			if text, ok := value(t[k]); ok {
				out.WriteString("  " + bare(k) + " = " + text + l.newline)
			}
		}
	}
	section(head, keys)
	if options := at(keys, "options"); len(options) > 0 {
		section(head+".options", options)
	}
	return out.String()
}

func bare(key string) string {
	plain := key != ""
	for _, r := range key {
		plain = plain && (r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if plain {
		return key
	}
	return quote(key)
}

// quote writes a basic string of TOML.
func quote(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&out, "\\u%04X", r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
	return out.String()
}

// value renders what runtime tables have: strings, numbers, truth and lists of
// strings. Tables are not values.
func value(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return quote(v), true
	case bool, int64:
		return fmt.Sprint(v), true
	case []any:
		all := make([]string, len(v))
		for i, one := range v {
			text, ok := value(one)
			if !ok {
				return "", false
			}
			all[i] = text
		}
		return "[" + strings.Join(all, ", ") + "]", true
	}
	return "", false
}

// withBlock returns data with our block at its end.
func withBlock(data []byte, block string, l layout) []byte {
	var lead string
	if len(data) > 0 {
		lead = l.newline
		if data[len(data)-1] != '\n' {
			lead += l.newline
		}
	}
	return slices.Concat(data, []byte(lead+markBegin+l.newline+block+markEnd+l.newline))
}

// withoutBlock returns data without what is ours: what stands between the marks, or,
// where written is set and a program has dropped the comments since, the tables of
// our handler.
func withoutBlock(data []byte, written bool) (after []byte, found bool) {
	begin := bytes.Index(data, []byte(markBegin))
	if begin >= 0 && (begin == 0 || data[begin-1] == '\n') {
		if n := bytes.Index(data[begin:], []byte("\n"+markEnd)); n >= 0 {
			end := begin + n + 1 + len(markEnd)
			if nl := bytes.IndexByte(data[end:], '\n'); nl >= 0 {
				end += nl + 1
			} else {
				end = len(data)
			}
			for _, blank := range []string{"\r\n", "\n"} { // the empty line before it is ours
				if before, ok := bytes.CutSuffix(data[:begin], []byte(blank)); ok &&
					(len(before) == 0 || before[len(before)-1] == '\n') {
					return slices.Concat(before, data[end:]), true
				}
			}
			return slices.Concat(data[:begin], data[end:]), true
		}
	}
	if !written {
		return data, false
	}
	var out []byte
	ours := false
	for line := range bytes.Lines(data) {
		if trimmed := bytes.TrimSpace(line); bytes.HasPrefix(trimmed, []byte("[")) {
			ours = ourHeader(trimmed)
			found = found || ours
		}
		if !ours {
			out = append(out, line...)
		}
	}
	if !found {
		return data, false
	}
	return out, true
}

// ourHeader reports whether a line opens the table of our handler or one below it.
func ourHeader(line []byte) bool {
	t := tree{}
	if toml.Unmarshal(line, &t) != nil {
		return false
	}
	for _, plugin := range []string{criV1, criV2, criRuntime} {
		if at(t, "plugins", plugin, "containerd", "runtimes", Handler) != nil {
			return true
		}
	}
	return false
}
