// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package commandline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/internal/suggest"
)

// Flag says what is wrong with a flag, for cli's OnUsageError: err is cli's own
// error. Prefixes may be missing from what was typed.
func Flag(c *cli.Context, err error, prefixes ...string) error {
	help := c.App.Name + " --help"
	if c.Command != nil && c.Command.Name != "" && c.Command.Name != c.App.Name {
		help = full(c) + " --help"
	}
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if value, flag, ok := badValue(err.Error()); ok && c.Command != nil {
		return fmt.Errorf("--%s %s: want %s; see: %s", flag, value, wanted(flag, c.Command.Flags), help)
	}
	if !unknown {
		return fmt.Errorf("%w; see: %s", err, help)
	}
	var known []string
	if c.Command != nil {
		for _, f := range c.Command.Flags {
			known = append(known, f.Names()[0])
		}
	}
	near := suggest.Nearest(name, known)
	for _, p := range prefixes {
		if near == "" {
			near = suggest.Nearest(p+name, known)
		}
	}
	return fmt.Errorf("unknown flag --%s%s", name, DidYouMean(near, "--", help))
}

// badValue takes cli's error apart: invalid value "5" for flag -slice: parse error.
func badValue(text string) (value, flag string, ok bool) {
	rest, ok := strings.CutPrefix(text, "invalid value ")
	if !ok {
		return "", "", false
	}
	at := strings.LastIndex(rest, " for flag -")
	if at < 0 {
		return "", "", false
	}
	flag, _, _ = strings.Cut(rest[at+len(" for flag -"):], ":")
	return rest[:at], flag, true
}

// wanted says what the flag takes.
func wanted(name string, flags []cli.Flag) string {
	for _, f := range flags {
		if !slices.Contains(f.Names(), name) {
			continue
		}
		switch f.(type) {
		case *cli.DurationFlag:
			return "a time with a unit, for example 5ms"
		case *cli.IntFlag:
			return "a whole number"
		case *cli.UintFlag, *cli.Uint64Flag:
			return "a whole number, not negative"
		}
	}
	return "another value"
}

// full returns the words of a command, "simgpu mig create".
func full(c *cli.Context) string {
	if strings.HasPrefix(c.Command.HelpName, c.App.Name+" ") {
		return c.Command.HelpName
	}
	return c.App.Name + " " + c.Command.Name
}

// Command says that no command of the program, or of its command parent, has that
// name.
func Command(parent, name string, commands []*cli.Command) error {
	var known []string
	for _, c := range commands {
		if !c.Hidden {
			known = append(known, c.Name)
		}
	}
	return fmt.Errorf("unknown command %q%s", name, DidYouMean(suggest.Nearest(name, known), parent+" ", parent+" --help"))
}

// DidYouMean ends an error with what is near, or else with where to read.
func DidYouMean(near, before, help string) string {
	if near == "" {
		return "; see: " + help
	}
	return ": did you mean " + before + near + "?"
}
