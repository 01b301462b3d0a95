// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"strings"

	"github.com/gpushare/gpushare/simgpu/api"
)

// Check reports the first of the rules that makes no sense for a driver.
func Check(d api.Driver, specs []Spec) error {
	for i, s := range specs {
		if _, err := newRule(d, s); err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return nil
}

// Result says what the calls return.
func (r Rule) Result() string {
	var parts []string
	if r.RC != "" {
		parts = append(parts, string(r.RC))
	}
	if r.Delay != "" {
		parts = append(parts, "after "+r.Delay)
	}
	return strings.Join(parts, " ")
}

// OutputsText says what becomes of their results.
func (r Rule) OutputsText() string {
	switch {
	case r.RC == "":
		return "-"
	case r.Outputs == "":
		return "untouched"
	}
	return r.Outputs
}

// When says which of the calls are meant.
func (r Rule) When() string {
	var parts []string
	if r.Nth != 0 {
		parts = append(parts, fmt.Sprintf("nth %d", r.Nth))
	}
	if r.Every != 0 {
		parts = append(parts, fmt.Sprintf("every %d", r.Every))
	}
	if r.Count != 0 {
		parts = append(parts, fmt.Sprintf("count %d", r.Count))
	}
	if len(parts) == 0 {
		return "always"
	}
	return strings.Join(parts, ", ")
}

// Whose says whose calls are meant.
func (r Rule) Whose() string {
	var parts []string
	if r.GPU != nil {
		parts = append(parts, fmt.Sprintf("gpu %d", *r.GPU))
	}
	if r.PID != 0 {
		parts = append(parts, fmt.Sprintf("pid %d", r.PID))
	}
	if r.Cgroup != "" {
		parts = append(parts, "cgroup "+r.Cgroup)
	}
	if r.PerProcess {
		parts = append(parts, "counted by process")
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, ", ")
}
