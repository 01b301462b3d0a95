// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

var recordDir = flag.String("record", "", "directory, from the checkout's root, for the table of engines and limits")

// recorded are the most that programs had in use, by engine and case.
var recorded []recordedRow

type recordedRow struct {
	engine string // with its version and the way to our code
	kind   string
	got    uint64
	failed bool
}

// called is how the table names an engine: its name, its version, and the way.
func called(e engine) string {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	first := func(r node.Result) string { return regexp.MustCompile(`\d+\.\d+\.\d+\S*`).FindString(r.Stdout) }
	switch e := e.(type) {
	case namedDocker:
		return fmt.Sprintf("docker | %s | runtime %s", strings.TrimSpace(e.n.Docker(ctx, "version", "--format", "{{.Server.Version}}").Stdout), e.runtime)
	case podman:
		return fmt.Sprintf("podman | %s | the wrapper as its runtime", first(e.n.Podman(ctx, "version")))
	case docker:
		return fmt.Sprintf("docker | %s | path", strings.TrimSpace(e.n.Docker(ctx, "version", "--format", "{{.Server.Version}}").Stdout))
	case bare:
		return fmt.Sprintf("runc | %s | the wrapper called as runc is", first(node.Run(ctx, nil, "runc", "--version")))
	case way:
		return fmt.Sprintf("containerd | %s | %s", e.containerd(), e.name)
	}
	return fmt.Sprintf("%T | | |", e)
}

// containerd is the version behind a way.
func (w way) containerd() string {
	switch e := w.engine.(type) {
	case ctrEngine:
		return e.c.Version
	case criEngine:
		return e.c.Version
	}
	return ""
}

const recordPreface = `# The memory limit under each container engine, on a SIMULATED GPU, %s

%s/%s, %d CPUs, runc %s where the engine brings none. There was no GPU: the figures are the
SIMULATED GPU's own account of the most that a container had in use, in bytes, contexts
included. Written by ` + "`make test-engines`" + `.

A program allocates in halving steps until not even 512 bytes are to be had. The limit is
3221225472 bytes in the first four columns, by the way in which the program finds the
driver's calls, and 3000000001 in the last, where 512-byte granules leave up to 511 unused.
"ctr" is ` + "`ctr run`" + `, "cri" a pod made by crictl; "shim" is containerd-shim-gpushare-v1,
"wrapper" the stock shim with gpushare-runtime as its BinaryName. Containerd before 1.6.21
ignores the key that names a shim by its path, so that way is not tried there.

| engine | version | way | %s | |
|---|---|---|%s---|
`

// writeRecord writes the table of what was seen, if -record asks for one.
func writeRecord() error {
	if *recordDir == "" || len(recorded) == 0 {
		return nil
	}
	day := time.Now().UTC().Format(time.DateOnly)
	var columns []string
	for _, c := range byLookup {
		columns = append(columns, c.name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	runc := regexp.MustCompile(`\d+\.\d+\.\d+\S*`).FindString(node.Run(ctx, nil, "runc", "--version").Stdout)
	var b strings.Builder
	fmt.Fprintf(&b, recordPreface, day, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runc,
		strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	var order []string
	rows := map[string]map[string]recordedRow{}
	for _, r := range recorded {
		if rows[r.engine] == nil {
			rows[r.engine] = map[string]recordedRow{}
			order = append(order, r.engine)
		}
		rows[r.engine][r.kind] = r
	}
	for _, engine := range order {
		cells, verdict := "", "holds"
		for _, c := range columns {
			r, tried := rows[engine][c]
			if r.failed || !tried {
				verdict = "FAILED"
			}
			cells += fmt.Sprintf(" %d |", r.got)
		}
		fmt.Fprintf(&b, "| %s |%s %s |\n", engine, cells, verdict)
	}
	dir := filepath.Join(root, *recordDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "engines-"+day+".md"), []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}
