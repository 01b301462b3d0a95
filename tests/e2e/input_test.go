// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// malformed are values that must be refused, each with what to write instead.
var malformed = []struct{ word, value string }{
	{"MEMORY", "8"}, {"MEMORY", "8G"}, {"MEMORY", "8g"}, {"MEMORY", "8GB"}, {"MEMORY", "8Gb"}, {"MEMORY", "512Mb"},
	{"MEMORY", "512m"}, {"MEMORY", "8 Gi B"}, {"MEMORY", "-8Gi"}, {"MEMORY", "+8Gi"}, {"MEMORY", "0"}, {"MEMORY", "0Gi"},
	{"MEMORY", "0B"}, {"MEMORY", "none"}, {"MEMORY", "unlimited"}, {"MEMORY", "NaN"}, {"MEMORY", "infGi"}, {"MEMORY", "1e3Gi"},
	{"MEMORY", "0x10Gi"}, {"MEMORY", "010Gi"}, {"MEMORY", "8Gi8"}, {"MEMORY", "8Gi;rm"}, {"MEMORY", "8,5Gi"}, {"MEMORY", "1.2.3Gi"},
	{"MEMORY", "99999999999999999999Gi"}, {"MEMORY", "101%"}, {"MEMORY", "0%"}, {"MEMORY", "%"}, {"MEMORY", "Gi"}, {"MEMORY", "8Xi"},
	{"MEMORY", "1024"}, {"MEMORY", "eight"}, {"MEMORY", "8\u00a0Gi"},
	{"COMPUTE", "30"}, {"COMPUTE", "1.5"}, {"COMPUTE", "0"}, {"COMPUTE", "0%"}, {"COMPUTE", "101%"}, {"COMPUTE", "-5%"},
	{"COMPUTE", "30.05%"}, {"COMPUTE", "0.0001"}, {"COMPUTE", "none"}, {"COMPUTE", "half"}, {"COMPUTE", "50%%"}, {"COMPUTE", "1e-1"},
	{"COMPUTE_MAX", "150%"}, {"COMPUTE_MAX", "0"}, {"COMPUTE_MAX", "nonee"}, {"COMPUTE_MAX", "70"},
}

// Bad input starts nothing, says what is wrong and what to write.
func TestMalformedValues(t *testing.T) {
	if len(malformed) < 40 {
		t.Fatalf("only %d values", len(malformed))
	}
	n := up(t, node.Options{})
	for _, m := range malformed {
		t.Run(m.word+" "+m.value, func(t *testing.T) {
			args := []string{"run", "--rm", "--runtime", node.Runtime, "--network", "none", "-e", "GPUSHARE_" + m.word + "=" + m.value}
			if m.word != "MEMORY" {
				args = append(args, "-e", "GPUSHARE_MEMORY=1Gi")
			}
			r := n.Docker(within(t), append(args, "small", "echo", "started")...)
			refused(t, r)
			suggests := false
			for _, w := range []string{"write", "Write", "did you mean", "Did you mean", "for example"} {
				suggests = suggests || strings.Contains(r.Stderr, w)
			}
			if !suggests {
				t.Errorf("no suggestion in %q", r.Stderr)
			}
		})
	}
	if r := n.CLI(within(t), "ps", "-q"); strings.TrimSpace(r.Stdout) != "" || r.Err != nil {
		t.Errorf("after refusals there are shares: %q %v", r.Stdout, r.Err)
	}
	if r := n.Docker(within(t), "ps", "-q"); strings.TrimSpace(r.Stdout) != "" {
		t.Errorf("a container runs: %s", r.Stdout)
	}
}
