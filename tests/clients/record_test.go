// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build clients

package clients

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

type row struct {
	client
	outcome
	way    string
	limit  uint64
	failed bool
	// skipped is why it was not run.
	skipped string
}

const preface = `# CUDA clients on a SIMULATED GPU, %s

Unmodified packages as published (tests/clients/py/requirements*.txt), %s, %d CPUs.
There was no GPU: every figure is of the SIMULATED one (%s). Written by ` + "`make test-clients`" + `;
docs/simgpu/clients.md says what a row does and what cannot be run.

"bare" is the client on the host over the simulated driver with all of the GPU; "limited" the same in a Docker
container under gpushare with a share of 4 GiB and half of the compute. In each run that works, the size that NVML and
cuMemGetInfo gave was that in the third column, used + free was that size, and the only process that NVML listed was
the client's own. The client copied, launched kernels on streams, timed them by events where it has them, allocated
until its own out-of-memory error, gave all back, did so twenty times more where it was limited, and allocated and
launched again; gpustat and nvitop were only shown
a program that holds 1 GiB, Triton compiled and launched, and numba-cuda's own tests do as they do. "Most in use" is the
simulator's account, a context's own bytes included; on two GPUs it is the sum. Nothing was printed but what the client
itself prints. All sizes are bytes; "s" is how long the run took on the wall, with the start of a process and, limited,
of a container.

| client | run | size it saw | held at the error | most in use | free after | its own error | s | |
|---|---|---|---|---|---|---|---|---|
`

// longest is how much of a client's error the table shows.
const longest = 260

// write makes the table of what was seen and returns its file.
func write(dir string, rows []row) (string, error) {
	day := time.Now().UTC().Format(time.DateOnly)
	device := "none answered"
	for _, r := range rows {
		if r.Device != "" {
			device = r.Device
			break
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, preface, day, runtime.GOOS+"/"+runtime.GOARCH, runtime.NumCPU(), device)
	for _, r := range rows {
		name, verdict := r.Client, "works"
		if name == "" {
			name = r.name()
		}
		switch {
		case r.skipped != "":
			verdict = "not run: " + r.skipped
		case r.failed:
			verdict = "FAILED"
		}
		text := strings.ReplaceAll(r.Error, "|", "/")
		if len(text) > longest {
			text = text[:longest] + " …"
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | %s | %s | %.0f | %s |\n", name, r.way, r.limit,
			bytes(r.Held), bytes(r.high), bytes(r.FreeAfter), text, r.took.Seconds(), verdict)
	}
	for _, r := range rows {
		if len(r.Outcomes) > 0 {
			fmt.Fprintf(&b, "\n%s, %s: %s.", r.Client, r.way, tally(r.Outcomes))
		}
	}
	b.WriteString("\nThose that fail check what a kernel computed, or what the compiler put into it; no test may end otherwise limited\n" +
		"than bare. Errors of the kind Skipped and ModuleNotFoundError are packages that were not installed.\n")
	for _, r := range rows {
		for _, what := range slices.Sorted(maps.Keys(r.Notes)) {
			fmt.Fprintf(&b, "\n%s, %s, %s: %s\n", r.Client, r.way, what, r.Notes[what])
		}
	}
	file := filepath.Join(dir, "clients-"+day+".md")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("record: %w", err)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		return "", fmt.Errorf("record: %w", err)
	}
	return file, nil
}

// tally counts outcomes by their kind.
func tally(outcomes map[string]string) string {
	count := map[string]int{}
	for _, o := range outcomes {
		count[o]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d %s", count[kind], kind))
	}
	return fmt.Sprintf("%d tests, %s", len(outcomes), strings.Join(parts, ", "))
}

// bytes shows a count, or that there was none.
func bytes(n uint64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}
