// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command mutation takes wrappers of the interception libraries out, one at a time,
// and wants the test that docs/reference/coverage.md names for each to fail.
//
//	go run ./tests/mutation [-n 10|all] [-seed N] [-match REGEXP] [-record FILE]
//
// It works on a copy of the repository; the tree is only read, once. The exit
// status is 1 if a test passed without its wrapper.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	n := flag.String("n", "10", "how many rows, or all")
	seed := flag.Uint64("seed", 0, "of the choice; 0 takes the time")
	match := flag.String("match", "", "only wrappers whose names match this")
	record := flag.String("record", "", "write the table to this file, too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	if err := run(ctx, *n, *seed, *match, *record); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

// result is what became of one row.
type result struct {
	row
	red  bool
	said string // the first line of the failure
}

func run(ctx context.Context, n string, seed uint64, match, record string) (err error) {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	all, err := readRows(root)
	if err != nil {
		return err
	}
	named, err := regexp.Compile(match)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(r row) bool { return !named.MatchString(r.symbol) })
	rows, err := choose(all, n, seed)
	if err != nil {
		return err
	}
	t, err := copyTree(ctx, root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.remove()) }()
	// With every wrapper in place the tests pass, or their failing means nothing.
	if err := t.build(ctx, ""); err != nil {
		return err
	}
	for _, test := range tests(rows) {
		if out, err := t.test(ctx, test); err != nil {
			return fmt.Errorf("with every wrapper in place %s: %w\n%s", test, err, out)
		}
	}
	var results []result
	for _, r := range rows {
		res, err := t.mutate(ctx, r)
		if err != nil {
			return err
		}
		results = append(results, res)
		fmt.Println(res.line())
	}
	return report(results, len(all), seed, record)
}

// choose picks n rows at random, the same ones for the same seed.
func choose(all []row, n string, seed uint64) ([]row, error) {
	if len(all) == 0 {
		return nil, errors.New("no wrapper has such a name")
	}
	if n == "all" {
		return all, nil
	}
	count, err := strconv.Atoi(n)
	if err != nil || count < 1 {
		return nil, fmt.Errorf("%q is not a number of rows", n)
	}
	rows := append([]row{}, all...)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] }) //nolint:gosec // no secret
	return rows[:min(count, len(rows))], nil
}

func tests(rows []row) []string {
	var names []string
	for _, r := range rows {
		if !slices.Contains(names, r.test) {
			names = append(names, r.test)
		}
	}
	return names
}

func (r result) line() string {
	verdict := "red"
	if !r.red {
		verdict = "GREEN"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s |", r.symbol, r.state, r.test, verdict, strings.ReplaceAll(r.said, "|", "/"))
}

func report(results []result, all int, seed uint64, record string) error {
	red, green := 0, 0
	for _, r := range results {
		if r.red {
			red++
		} else {
			green++
		}
	}
	summary := fmt.Sprintf("%d of %d wrappers taken out, one at a time: %d tests failed, %d passed (seed %d)", len(results), all, red, green, seed)
	fmt.Println(summary)
	if record != "" {
		f, err := os.Create(record) //nolint:gosec // named by the caller
		if err != nil {
			return fmt.Errorf("record: %w", err)
		}
		write(f, results, summary)
		if err := f.Close(); err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
	if green > 0 {
		return fmt.Errorf("%d tests do not notice that their wrapper is gone", green)
	}
	return nil
}

func write(w io.Writer, results []result, summary string) {
	fmt.Fprintf(w, "# Wrappers taken out, %s\n\n`make mutation`: %s. A test counts as failed if it\nfails twice. What it said first is beside it.\n\n", time.Now().Format("2006-01-02"), summary)
	fmt.Fprint(w, "| wrapper | state | test | without it | first line |\n|---|---|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintln(w, r.line())
	}
}
