// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/packaging/engine"
)

func TestEngineErrors(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		err    error
		status int
		code   string
	}{
		"refused":     {context.Background(), fmt.Errorf("x (%w)", engine.ErrRefused), exitRefused, codeEngineRefused},
		"undone":      {context.Background(), fmt.Errorf("x (%w)", engine.ErrRolledBack), exitFailed, codeEngineUndone},
		"daemon down": {context.Background(), fmt.Errorf("%w (%w)", v1.Errorf(0, v1.CodeDaemonDown, "x"), engine.ErrRolledBack), exitDaemon, v1.CodeDaemonDown},
		"interrupted": {cancelled, fmt.Errorf("x (%w)", engine.ErrRolledBack), exitInterrupted, "interrupted"},
		"other":       {context.Background(), errors.New("x"), exitFailed, ""},
	} {
		err := engineError(c.ctx, c.err)
		if got := status(err); got != c.status || !strings.Contains(err.Error(), c.code) {
			t.Errorf("%s: status %d (want %d): %v", name, got, c.status, err)
		}
	}
}

func TestEngineArguments(t *testing.T) {
	for args, want := range map[string]string{
		"install":                                          "which engine?",
		"install --engine podman":                          "podman and CRI-O are configured by hand",
		"install --engine docker x":                        `unexpected argument "x"`,
		"uninstall --engine docker --dryrun":               "dryrun",
		"uninstall --engine docker,containerd --config /x": "name one engine",
		"doctor x":       `unexpected argument "x"`,
		"doctor -o yaml": "write one of table, json",
	} {
		var out, said bytes.Buffer
		term := &terminal{out: &out, err: &said}
		if got := term.run(append([]string{"gpushare"}, strings.Fields(args)...)); got != exitUsage || !strings.Contains(said.String(), want) {
			t.Errorf("%s: status %d, said %q, want %q", args, got, said.String(), want)
		}
	}
}

// Every code that these commands add is explained.
func TestEngineCodesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/install.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{codeEngineRefused, codeEngineUndone} {
		if !strings.Contains(string(text), "`"+code+"`") {
			t.Errorf("%s is not in docs/reference/install.md", code)
		}
	}
}
