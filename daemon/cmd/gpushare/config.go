// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/internal/config"
)

func (t *terminal) configCommand() *cli.Command {
	return &cli.Command{
		Name: "config", Usage: "check config.toml and show what is in force",
		UsageText: "gpushare config check [FILE]",
		Subcommands: []*cli.Command{{
			Name: "check", Usage: "say all that is wrong with config.toml, or print it with the defaults filled in",
			ArgsUsage: "[FILE]",
			UsageText: "gpushare config check\ngpushare config check /etc/gpushare/config.toml",
			Action:    t.checkConfig,
		}},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("unknown command %q; see: gpushare config --help", "config "+c.Args().First())
			}
			return cli.ShowSubcommandHelp(c)
		},
	}
}

// checkConfig writes one line for each problem, FILE:LINE: what, and fails; or what
// is in force, as a config.toml.
func (t *terminal) checkConfig(c *cli.Context) error {
	if c.NArg() > 1 {
		return usagef("unexpected argument %q; see: gpushare config check --help", c.Args().Get(1))
	}
	path := c.Args().First()
	if path == "" {
		path = c.String("config")
	}
	if path == "" {
		var err error
		if path, err = config.Path(); err != nil {
			return err
		}
	}
	cfg, head := config.Default(), "# there is no config.toml; in force are the defaults:"
	if path != "" {
		path, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("read configuration: %w", err)
		}
		var problems []config.Problem
		if cfg, problems, err = config.CheckFile(path); err != nil {
			return err
		}
		for _, p := range problems {
			place := path
			if p.Line > 0 {
				place += fmt.Sprintf(":%d", p.Line)
			}
			fmt.Fprintf(t.out, "%s: %s\n", place, oneLine(p.Text))
		}
		if n := len(problems); n > 0 {
			return fmt.Errorf("%s cannot be used: %d %s", path, n, plural(n, "problem"))
		}
		head = "# " + oneLine(path) + " is good; in force are, with the defaults:"
	}
	text, err := cfg.Effective()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.out, "%s\n%s", head, text)
	return err
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
