// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// tally counts tests: passed ones, failed ones by name, skipped ones with their reason.
type tally struct {
	passed          int
	failed, skipped []string
}

func (t *tally) add(o tally) {
	t.passed += o.passed
	t.failed = append(t.failed, o.failed...)
	t.skipped = append(t.skipped, o.skipped...)
}

func (t *tally) fail(name, why string) {
	if why = firstLine(why); why != "" {
		name += ": " + why
	}
	t.failed = append(t.failed, name)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// event is a line of `go test -json`.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	FailedBuild string
}

// readGoTest counts the events of a `go test -json` run and copies the output of
// failed tests to w. A test with subtests counts as well as they do.
func readGoTest(r io.Reader, w io.Writer, t *tally) {
	output := map[string][]string{}
	broken := map[string]bool{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(w, lines.Text()) // not from the test runner: show it
			continue
		}
		if e.Package == "" {
			e.Package = e.ImportPath
		}
		name := strings.TrimPrefix(e.Package, "github.com/gpushare/gpushare/")
		if e.Test != "" {
			name += " " + e.Test
		}
		switch e.Action {
		case "output", "build-output":
			output[name] = append(output[name], e.Output)
		case "pass":
			if e.Test != "" {
				t.passed++
			}
			delete(output, name)
		case "skip":
			if e.Test != "" {
				t.skipped = append(t.skipped, name+": "+reason(output[name]))
			}
			delete(output, name)
		case "fail", "build-fail":
			text := strings.Join(output[name], "")
			fmt.Fprint(w, text)
			// A package fails with its tests; by itself only if it did not build or crashed.
			if e.Action == "fail" && (e.Test != "" || !broken[e.Package]) {
				t.fail(name, "")
			}
			broken[e.Package] = broken[e.Package] || e.Action == "fail"
			delete(output, name)
		}
	}
}

var skipLine = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)`)

// reason finds what a skipped test said.
func reason(output []string) string {
	for _, line := range output {
		if m := skipLine.FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	return "no reason given"
}

var closing = regexp.MustCompile(`^(?:\w+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$`)

// readScript counts a program that reports on its own: by its closing line
// "N passed, N failed", else the program as a whole is one test.
func readScript(name, output string, err error, t *tally) {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		m := closing.FindStringSubmatch(strings.TrimSpace(lines[i]))
		if m == nil {
			continue
		}
		passed, _ := strconv.Atoi(m[1])
		failed, _ := strconv.Atoi(m[2])
		skipped, _ := strconv.Atoi(m[3])
		t.passed += passed
		for range failed {
			t.fail(name, "")
		}
		for _, l := range lines {
			if r, ok := strings.CutPrefix(l, "skipped: "); ok && skipped > 0 {
				t.skipped = append(t.skipped, name+": "+r)
				skipped--
			}
		}
		for range skipped {
			t.skipped = append(t.skipped, name+": no reason given")
		}
		if err != nil && failed == 0 {
			t.fail(name, err.Error())
		}
		return
	}
	if err != nil {
		t.fail(name, err.Error())
		return
	}
	t.passed++
}
