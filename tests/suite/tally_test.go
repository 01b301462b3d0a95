// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestReadGoTest(t *testing.T) {
	const run = `{"Action":"run","Package":"p","Test":"A"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"B","Output":"    b_test.go:9: needs a GPU\n"}
{"Action":"skip","Package":"p","Test":"B"}
{"Action":"fail","Package":"p","Test":"C"}
{"Action":"fail","Package":"p"}
{"Action":"pass","Package":"q"}
{"ImportPath":"r","Action":"build-output","Output":"r.go:1: broken\n"}
{"ImportPath":"r","Action":"build-fail"}
{"Action":"fail","Package":"r","FailedBuild":"r"}
{"Action":"fail","Package":"s"}
`
	var got tally
	var shown strings.Builder
	readGoTest(strings.NewReader(run), &shown, &got)
	if got.passed != 1 || !slices.Equal(got.failed, []string{"p C", "r", "s"}) ||
		!slices.Equal(got.skipped, []string{"p B: needs a GPU"}) {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(shown.String(), "broken") {
		t.Errorf("a build error was not shown: %q", shown.String())
	}
}

func TestReadScript(t *testing.T) {
	ended := errors.New("exit status 1")
	for _, c := range []struct {
		name, out               string
		err                     error
		passed, failed, skipped int
	}{
		{"closing line", "ok a\nskipped: no b\n3 passed, 0 failed, 1 skipped\n", nil, 3, 0, 1},
		{"failures", "2 passed, 2 failed\n", ended, 2, 2, 0},
		{"bad end after a good line", "2 passed, 0 failed\n", ended, 2, 1, 0},
		{"no line", "fine\n", nil, 1, 0, 0},
		{"no line, bad end", "", ended, 0, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got tally
			readScript("s", c.out, c.err, &got)
			if got.passed != c.passed || len(got.failed) != c.failed || len(got.skipped) != c.skipped {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestEveryListIsNotEmpty(t *testing.T) {
	t.Chdir("../..")
	for name, list := range lists {
		steps, err := list()
		if err != nil || len(steps) == 0 {
			t.Errorf("%s: %d steps, %v", name, len(steps), err)
		}
	}
}
