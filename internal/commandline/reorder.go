// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package commandline makes commands of urfave/cli kinder to who types them: flags
// may stand after arguments, and a misspelt word gets a suggestion instead of a
// page of help.
package commandline

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Reorder moves the flags of a command before its other arguments, so that
// `gpushare set NAME --gpu-memory 8Gi` works. Commands named in except are left
// alone: what follows an image in `gpushare run` is the container's.
func Reorder(args []string, app *cli.App, except ...string) []string {
	at, command := find(args, app)
	if command == nil || slices.Contains(except, command.Name) {
		return args
	}
	var flags, rest []string
	tail := args[at+1:]
	for i := 0; i < len(tail); i++ {
		a := tail[i]
		if a == "--" {
			rest = slices.Concat(tail[i:i+1], rest, tail[i+1:]) // in front, where it is understood
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

// find returns where the name of the innermost command is and which one it is.
func find(args []string, app *cli.App) (at int, command *cli.Command) {
	flags, commands := app.Flags, app.Commands
	for i := 1; i < len(args); i++ {
		if args[i] == "--" {
			break
		}
		if strings.HasPrefix(args[i], "-") {
			if takesValue(args[i], flags) {
				i++
			}
			continue
		}
		next := named(args[i], commands)
		if next == nil {
			break
		}
		at, command = i, next
		flags, commands = next.Flags, next.Subcommands
	}
	return at, command
}

func named(name string, commands []*cli.Command) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
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
