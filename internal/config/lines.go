// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// lines returns the line of each key of a file, by the key's full name.
func lines(data []byte) map[string]int {
	out := make(map[string]int)
	var p unstable.Parser
	p.Reset(data)
	at := func(n *unstable.Node) int { return 1 + bytes.Count(data[:n.Raw.Offset], []byte("\n")) }
	name := func(prefix string, n *unstable.Node) (string, int) {
		parts, line := []string(nil), 0
		if prefix != "" {
			parts = append(parts, prefix)
		}
		for key := n.Key(); key.Next(); {
			parts = append(parts, string(key.Node().Data))
			line = at(key.Node())
		}
		return strings.Join(parts, "."), line
	}
	var value func(prefix string, n *unstable.Node)
	value = func(prefix string, n *unstable.Node) {
		key, line := name(prefix, n)
		note(out, key, line)
		if v := n.Value(); v.Kind == unstable.InlineTable {
			for child := v.Children(); child.Next(); {
				value(key, child.Node())
			}
		}
	}
	table := ""
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			var line int
			table, line = name("", e)
			note(out, table, line)
		case unstable.KeyValue:
			value(table, e)
		}
	}
	return out
}

// note remembers the line of a key and, where they have none yet, of the tables
// around it.
func note(out map[string]int, key string, line int) {
	out[key] = line
	for i := strings.LastIndexByte(key, '.'); i > 0; i = strings.LastIndexByte(key, '.') {
		key = key[:i]
		if _, known := out[key]; !known {
			out[key] = line
		}
	}
}
