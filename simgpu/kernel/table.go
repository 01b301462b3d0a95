// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Rule is NAME=SPEC.
type Rule struct {
	Name string
	Spec Spec
}

// ParseRule reads NAME=SPEC.
func ParseRule(text string) (Rule, error) {
	i := strings.LastIndex(text, "=")
	if i <= 0 {
		return Rule{}, fmt.Errorf("kernel time %q: want NAME=TIME, for example k=50us", text)
	}
	s, err := ParseSpec(strings.TrimSpace(text[i+1:]))
	return Rule{Name: strings.TrimSpace(text[:i]), Spec: s}, err
}

// ParseRules reads rules in order.
func ParseRules(texts []string) ([]Rule, error) {
	var rules []Rule
	for _, t := range texts {
		r, err := ParseRule(t)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// ReadRules reads one rule a line; empty lines and those that begin with # are
// skipped.
func ReadRules(r io.Reader) ([]Rule, error) {
	var rules []Rule
	sc := bufio.NewScanner(r)
	for n := 1; sc.Scan(); n++ {
		text := strings.TrimSpace(sc.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		rule, err := ParseRule(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		rules = append(rules, rule)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read kernel times: %w", err)
	}
	return rules, nil
}

// maxPatterns bounds what a look-up may cost.
const maxPatterns = 4096

// Table finds the rule for a function: the one of its very name, else the
// pattern with most letters that fits, of several the newest.
type Table struct {
	exact    map[string]Spec
	patterns []Rule // oldest first
}

// Set adds a rule or replaces the one of the same name. It fails when there
// are too many patterns.
func (t *Table) Set(r Rule) error {
	if !strings.Contains(r.Name, "*") {
		if t.exact == nil {
			t.exact = map[string]Spec{}
		}
		t.exact[r.Name] = r.Spec
		return nil
	}
	kept := t.patterns[:0]
	for _, o := range t.patterns {
		if o.Name != r.Name {
			kept = append(kept, o)
		}
	}
	t.patterns = kept
	if len(t.patterns) >= maxPatterns {
		return fmt.Errorf("set kernel time of %q: more than %d patterns", r.Name, maxPatterns)
	}
	t.patterns = append(t.patterns, r)
	return nil
}

// Find returns the spec of a function, and whether a rule says one.
func (t *Table) Find(name string) (best Spec, ok bool) {
	if s, ok := t.exact[name]; ok {
		return s, true
	}
	letters := -1
	for _, r := range t.patterns {
		if n := len(r.Name) - strings.Count(r.Name, "*"); n >= letters && fits(r.Name, name) {
			best, letters = r.Spec, n
		}
	}
	return best, letters >= 0
}

// fits reports whether name is what pattern says, * being any text.
func fits(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	name = name[len(first) : len(name)-len(last)]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(name, p)
		if i < 0 {
			return false
		}
		name = name[i+len(p):]
	}
	return true
}
