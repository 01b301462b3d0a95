// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package commandline

import (
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

// try runs a program as it was typed and returns what its command was given.
func try(t *testing.T, line string) (got string, err error) {
	t.Helper()
	usage := func(c *cli.Context, err error, _ bool) error { return Flag(c, err, "gpu-") }
	flags := []cli.Flag{
		&cli.StringFlag{Name: "dir"}, &cli.DurationFlag{Name: "slice"}, &cli.BoolFlag{Name: "all"},
		&cli.UintFlag{Name: "count"}, &cli.StringFlag{Name: "gpu-memory"},
	}
	action := func(c *cli.Context) error {
		got = strings.Join(append([]string{c.Command.Name, c.String("dir"), c.Duration("slice").Round(time.Millisecond).String()}, c.Args().Slice()...), " ")
		return nil
	}
	app := &cli.App{
		Name: "prog", OnUsageError: usage, ExitErrHandler: func(*cli.Context, error) {},
		Commands: []*cli.Command{
			{Name: "set", Flags: flags, Action: action, OnUsageError: usage},
			{Name: "run", Flags: flags, Action: action, OnUsageError: usage},
			{Name: "mig", Subcommands: []*cli.Command{{Name: "create", Flags: flags, Action: action, OnUsageError: usage}}},
		},
	}
	return got, app.Run(Reorder(strings.Fields("prog "+line), app, "run"))
}

func TestReorder(t *testing.T) {
	for line, want := range map[string]string{
		"set a=1 --dir d b=2 --slice 5ms": "set d 5ms a=1 b=2",
		"set --all a --dir d":             "set d 0s a",
		"set a -- --dir d":                "set  0s a --dir d",
		"mig create 3g --dir d 2g":        "create d 0s 3g 2g",
		"run image --dir d":               "run  0s image --dir d",
	} {
		if got, err := try(t, line); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", line, got, err, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"set --dri d":           "unknown flag --dri: did you mean --dir?",
		"set --memory d":        "unknown flag --memory: did you mean --gpu-memory?",
		"set --nothing-like-it": "unknown flag --nothing-like-it; see: prog set --help",
		"set --slice 5":         `--slice "5": want a time with a unit, for example 5ms; see: prog set --help`,
		"set --count -1":        `--count "-1": want a whole number, not negative; see: prog set --help`,
		"mig create --slise 5s": "unknown flag --slise: did you mean --slice?",
		"mig create --wwwwwwww": "unknown flag --wwwwwwww; see: prog mig create --help",
		"set a --dir":           "flag needs an argument: -dir; see: prog set --help",
	} {
		if _, err := try(t, line); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	commands := []*cli.Command{{Name: "status"}, {Name: "createSymlinks", Hidden: true}}
	for word, want := range map[string]string{
		"stat":            `unknown command "stat": did you mean prog status?`,
		"createSymlinkss": `unknown command "createSymlinkss"; see: prog --help`,
	} {
		if err := Command("prog", word, commands); err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
