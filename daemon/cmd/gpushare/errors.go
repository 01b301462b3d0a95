// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter/quantity"
)

// Exit statuses. `gpushare run` becomes docker and has docker's.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitDaemon   = 3
	exitNoGPU    = 4
	exitNotFound = 5
	exitRefused  = 6
	exitTimeout  = 7
	exitRun      = 125 // run failed before docker did anything
)

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// statusError gives an error an exit status of its own.
type statusError struct {
	error
	status int
}

func (e statusError) Unwrap() error { return e.error }

// report writes what went wrong on one line, and for a quantity a mark under the
// bad part, and returns the exit status.
func (t *terminal) report(err error) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errSaid) {
		return status(err)
	}
	fmt.Fprintf(t.err, "gpushare: %s\n", oneLine(err.Error()))
	var q *quantity.Error
	if errors.As(err, &q) && q.Text != "" {
		for line := range strings.Lines(q.Caret()) {
			fmt.Fprintf(t.err, "  %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
	return status(err)
}

func status(err error) int {
	var own statusError
	if errors.As(err, &own) {
		return own.status
	}
	if errors.As(err, &usageError{}) {
		return exitUsage
	}
	switch v1.Code(err) {
	case v1.CodeDaemonDown:
		return exitDaemon
	case v1.CodeTimeout:
		return exitTimeout
	case v1.CodeNoGPU:
		return exitNoGPU
	case v1.CodeNotFound, v1.CodeGPUUnknown:
		return exitNotFound
	case v1.CodeUnit, v1.CodeRequest, v1.CodeNoMemory, v1.CodeAmbiguous:
		return exitUsage
	case v1.CodeNoFit, v1.CodeMemTooSmall, v1.CodeMemInUse, v1.CodeConflict, v1.CodeCap, v1.CodePolicy:
		return exitRefused
	}
	return exitFailed
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// json writes v for machines.
func (t *terminal) json(v any) error {
	e := json.NewEncoder(t.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// simulated says that the figures are not a real GPU's. It goes to stderr, so
// that whoever reads the output of a program still sees it.
func (t *terminal) simulated(yes bool) {
	if yes {
		fmt.Fprintln(t.err, "SIMULATED: this node's GPUs are simulated; no figure is a real GPU's")
	}
}
