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

// hook is one HOOK row with its parameters' types.
type hook struct {
	base, symbol, since, flavour, class, body string
	params                                    []string
}

// table is one .def file.
type table struct {
	lib   library
	hooks []hook
	uses  []string
}

var (
	hookRow = regexp.MustCompile(`^HOOK\((\w+), (\w+), (\d+), (ANY|LEGACY|PER_THREAD), (\w+), (\w+)\)$`)
	usesRow = regexp.MustCompile(`^USES\((\w+)\)$`)
	classes = []string{"charge", "release", "lifecycle", "view", "gate", "capture", "lookup"}
)

func readTable(root string, lib library) (table, error) {
	t := table{lib: lib}
	protos, err := readPrototypes(filepath.Join(root, lib.header), lib.result)
	if err != nil {
		return t, err
	}
	text, err := os.ReadFile(filepath.Join(root, lib.def))
	if err != nil {
		return t, fmt.Errorf("read table: %w", err)
	}
	seen := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		where := fmt.Sprintf("%s:%d", lib.def, i+1)
		symbol := ""
		if m := hookRow.FindStringSubmatch(line); m != nil {
			h := hook{base: m[1], symbol: m[2], since: m[3], flavour: m[4], class: m[5], body: m[6]}
			h.params = protos[h.symbol]
			if !slices.Contains(classes, h.class) {
				return t, fmt.Errorf("%s: unknown class %q", where, h.class)
			}
			if strings.HasSuffix(h.symbol, "_ptsz") != (h.flavour == "PER_THREAD") {
				return t, fmt.Errorf("%s: %s is not of flavour %s", where, h.symbol, h.flavour)
			}
			t.hooks = append(t.hooks, h)
			symbol = h.symbol
		} else if m := usesRow.FindStringSubmatch(line); m != nil {
			symbol = m[1]
			t.uses = append(t.uses, symbol)
		} else if line == "" || strings.HasPrefix(line, "//") {
			continue
		} else {
			return t, fmt.Errorf("%s: neither HOOK, USES nor comment: %q", where, line)
		}
		if _, ok := protos[symbol]; !ok {
			return t, fmt.Errorf("%s: %s has no prototype in %s", where, symbol, lib.header)
		}
		if seen[symbol] {
			return t, fmt.Errorf("%s: %s is there twice", where, symbol)
		}
		seen[symbol] = true
	}
	return t, nil
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
