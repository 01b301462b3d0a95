// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command suite runs a list of test steps, prints what failed and why tests were
// skipped, and ends with one line "N passed, N failed, N skipped". Its exit status
// is 1 if a test failed, and also if no test ran at all.
//
//	go run ./tests/suite check|test|e2e|engines|clients|real-driver|lint
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	if len(args) != 1 || lists[args[0]] == nil {
		fmt.Fprintln(os.Stderr, "usage: suite check|test|e2e|engines|clients|real-driver|lint")
		return 2
	}
	steps, err := lists[args[0]]()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		return 1
	}
	started := time.Now()
	var total tally
	for _, s := range steps {
		if ctx.Err() != nil {
			total.fail(s.name, "interrupted")
			continue
		}
		begin := time.Now()
		var t tally
		s.run(ctx, &t)
		fmt.Printf("%-34s %5d passed %3d failed %3d skipped  %6.1fs\n",
			s.name, t.passed, len(t.failed), len(t.skipped), time.Since(begin).Seconds())
		total.add(t)
	}
	for _, reason := range total.skipped {
		fmt.Println("skipped:", reason)
	}
	for _, f := range total.failed {
		fmt.Println("failed:", f)
	}
	fmt.Printf("%.0f seconds\n", time.Since(started).Seconds())
	// The closing line: nothing may follow it, so a caller that prints more takes it in a file.
	line := fmt.Sprintf("%d passed, %d failed, %d skipped\n", total.passed, len(total.failed), len(total.skipped))
	if file := os.Getenv("GPUSHARE_TALLY"); file == "" {
		fmt.Print(line)
	} else if err := os.WriteFile(file, []byte(line), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		return 1
	}
	if len(total.failed) > 0 || total.passed == 0 {
		return 1
	}
	return 0
}
