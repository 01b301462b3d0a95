// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// reorder moves the flags of a command before its other arguments, so that
// `gpushare set NAME --gpu-memory 8Gi` works. run is left alone: what follows the
// image there is the container's.
func reorder(args []string, app *cli.App) []string {
	at, command := findCommand(args, app)
	if command == nil || command.Name == "run" {
		return args
	}
	var flags, rest []string
	tail := args[at+1:]
	for i := 0; i < len(tail); i++ {
		a := tail[i]
		if a == "--" {
			rest = append(rest, tail[i:]...)
			break
		}
		if len(a) < 2 || a[0] != '-' {
			rest = append(rest, a)
			continue
		}
		flags = append(flags, a)
		if takesValue(a, command.Flags) {
			if i++; i == len(tail) { // no argument may become its value
				return slices.Concat(args[:at+1], flags)
			}
			flags = append(flags, tail[i])
		}
	}
	return slices.Concat(args[:at+1], flags, rest)
}

// findCommand returns where the command's name is and which command it is.
func findCommand(args []string, app *cli.App) (int, *cli.Command) {
	for i := 1; i < len(args); i++ {
		if strings.HasPrefix(args[i], "-") {
			if takesValue(args[i], app.Flags) {
				i++
			}
			continue
		}
		return i, app.Command(args[i])
	}
	return 0, nil
}

// takesValue reports whether the argument is a flag whose value is the next one.
func takesValue(arg string, flags []cli.Flag) bool {
	name := strings.TrimLeft(arg, "-")
	if strings.Contains(name, "=") {
		return false
	}
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			_, isBool := f.(*cli.BoolFlag)
			return !isBool
		}
	}
	return false
}
