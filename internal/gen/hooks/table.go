// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// row is what every row says of its name.
type row struct {
	base, symbol, since, flavour, class string
	why                                 string // key of a reason; empty for a HOOK
}

// hook is a name that the library defines: a HOOK or REFUSE row with its
// parameters' types.
type hook struct {
	row
	body   string // empty for a REFUSE
	params []string
	gone   bool // taken out, for tests
}

// table is one .def file.
type table struct {
	lib     library
	hooks   []hook
	forward []row             // FORWARD
	later   []row             // LATER
	uses    []string          // USES
	reasons map[string]string // WHY, by key
	tests   map[string]string // TEST, by body or class: directory and function
}

const named = `(\w+), (\w+), (\d+), (ANY|LEGACY|PER_THREAD), `

var (
	hookRow    = regexp.MustCompile(`^HOOK\(` + named + `(\w+), (\w+)\)$`)
	refuseRow  = regexp.MustCompile(`^REFUSE\(` + named + `(\w+)\)$`)
	forwardRow = regexp.MustCompile(`^FORWARD\(` + named + `(\w+)\)$`)
	laterRow   = regexp.MustCompile(`^LATER\(` + named + `(\w+), (\w+)\)$`)
	usesRow    = regexp.MustCompile(`^USES\((\w+)\)$`)
	whyRow     = regexp.MustCompile(`^WHY\((\w+), (.+)\)$`)
	testRow    = regexp.MustCompile(`^TEST\((\w+), ([\w/-]+), (Test\w+)\)$`)
	classes    = []string{"charge", "release", "lifecycle", "view", "gate", "capture", "lookup", "share"}
)

func readTable(root string, lib library) (table, error) {
	t := table{lib: lib, reasons: map[string]string{}, tests: map[string]string{}}
	protos, err := readPrototypes(filepath.Join(root, lib.header), lib.result)
	if err != nil {
		return t, err
	}
	text, err := os.ReadFile(filepath.Join(root, lib.def))
	if err != nil {
		return t, fmt.Errorf("read table: %w", err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if err := t.line(line); err != nil {
			return t, fmt.Errorf("%s:%d: %w", lib.def, i+1, err)
		}
	}
	for i, h := range t.hooks {
		t.hooks[i].params = protos[h.symbol]
	}
	for _, s := range t.symbols() {
		if _, ok := protos[s]; !ok {
			return t, fmt.Errorf("%s: %s has no prototype in %s", lib.def, s, lib.header)
		}
	}
	return t, t.check()
}

// line takes one line of the file into the table.
func (t *table) line(line string) error {
	if line == "" || strings.HasPrefix(line, "//") {
		return nil
	}
	if m := hookRow.FindStringSubmatch(line); m != nil {
		t.hooks = append(t.hooks, hook{row: row{m[1], m[2], m[3], m[4], m[5], ""}, body: m[6]})
	} else if m := refuseRow.FindStringSubmatch(line); m != nil {
		t.hooks = append(t.hooks, hook{row: row{m[1], m[2], m[3], m[4], "refuse", m[5]}})
	} else if m := forwardRow.FindStringSubmatch(line); m != nil {
		t.forward = append(t.forward, row{m[1], m[2], m[3], m[4], "forward", m[5]})
	} else if m := laterRow.FindStringSubmatch(line); m != nil {
		t.later = append(t.later, row{m[1], m[2], m[3], m[4], m[5], m[6]})
	} else if m := usesRow.FindStringSubmatch(line); m != nil {
		t.uses = append(t.uses, m[1])
	} else if m := whyRow.FindStringSubmatch(line); m != nil {
		if t.reasons[m[1]] != "" {
			return fmt.Errorf("reason %s is there twice", m[1])
		}
		t.reasons[m[1]] = m[2]
	} else if m := testRow.FindStringSubmatch(line); m != nil {
		t.tests[m[1]] = m[2] + " " + m[3]
	} else {
		return fmt.Errorf("no row and no comment: %q", line)
	}
	return nil
}

// rows returns every row that classes a name.
func (t table) rows() []row {
	var all []row
	for _, h := range t.hooks {
		all = append(all, h.row)
	}
	return append(append(all, t.forward...), t.later...)
}

// test returns the test that fails without the wrapper of h.
func (t table) test(h hook) string {
	if h.body == "" {
		return t.tests[h.class]
	}
	return t.tests[h.body]
}

// unhook makes a wrapper do nothing and takes it off the exported names: a program
// reaches the real function, as if there were no wrapper, and the real pointers
// keep their order.
func (t *table) unhook(symbol string) {
	for i, h := range t.hooks {
		t.hooks[i].gone = h.symbol == symbol
	}
}

// check refuses what no single row shows.
func (t table) check() error {
	seen, used := map[string]bool{}, map[string]bool{}
	for _, r := range t.rows() {
		if seen[r.symbol] {
			return fmt.Errorf("%s: %s is there twice", t.lib.def, r.symbol)
		}
		seen[r.symbol] = true
		if r.class != "forward" && r.class != "refuse" && !slices.Contains(classes, r.class) {
			return fmt.Errorf("%s: %s: unknown class %q", t.lib.def, r.symbol, r.class)
		}
		perThread := strings.HasSuffix(r.symbol, "_ptsz") || strings.HasSuffix(r.symbol, "_ptds")
		if perThread != (r.flavour == "PER_THREAD") {
			return fmt.Errorf("%s: %s is not of flavour %s", t.lib.def, r.symbol, r.flavour)
		}
		if !strings.HasPrefix(r.symbol, r.base) {
			return fmt.Errorf("%s: %s is not known as %s", t.lib.def, r.symbol, r.base)
		}
		if r.why != "" && t.reasons[r.why] == "" {
			return fmt.Errorf("%s: %s: no reason %s", t.lib.def, r.symbol, r.why)
		}
		used[r.why] = true
	}
	for key := range t.reasons {
		if !used[key] {
			return fmt.Errorf("%s: reason %s is of no row", t.lib.def, key)
		}
	}
	for _, h := range t.hooks {
		if t.test(h) == "" {
			return fmt.Errorf("%s: no TEST for %s, body %q", t.lib.def, h.symbol, h.body)
		}
		if h.class == "refuse" && t.lib.refusal == "" {
			return fmt.Errorf("%s: %s: nothing to refuse with in %s", t.lib.def, h.symbol, t.lib.document)
		}
	}
	for _, u := range t.uses {
		if !seen[u] {
			return fmt.Errorf("%s: %s is used and has no row", t.lib.def, u)
		}
	}
	return nil
}

// readPrototypes returns the parameters' types of every function in a header
// that returns result.
func readPrototypes(path, result string) (map[string][]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read prototypes: %w", err)
	}
	proto := regexp.MustCompile(`(?m)^` + result + ` (\w+)\(([^;{]*)\);`)
	out := map[string][]string{}
	for _, m := range proto.FindAllStringSubmatch(string(text), -1) {
		params := []string{}
		for _, p := range strings.Split(m[2], ",") {
			p = strings.Join(strings.Fields(p), " ")
			if p != "void" {
				params = append(params, typeOf(p))
			}
		}
		out[m[1]] = params
	}
	return out, nil
}

var (
	trailingName = regexp.MustCompile(`^(.*[ *])([a-z]\w*)$`)
	typeWords    = []string{"char", "short", "int", "long", "unsigned", "signed", "float", "double", "size_t", "void"}
)

// typeOf takes the parameter's name off, if it has one.
func typeOf(param string) string {
	m := trailingName.FindStringSubmatch(param)
	if m == nil || slices.Contains(typeWords, m[2]) || strings.HasSuffix(m[2], "_t") {
		return param
	}
	return strings.TrimSpace(m[1])
}
