// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// generated is the directory of the generated code under test.
func generated(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("GPUSHARE_TEST_GEN"); dir != "" {
		return dir
	}
	return filepath.Join(root(t), "cuda-intercept/gen")
}

// wrapped is a row with a wrapper and the test that it names.
type wrapped struct{ symbol, test string }

func wrappedRows(t *testing.T) []wrapped {
	t.Helper()
	var all []wrapped
	for _, table := range []string{"cuda.def", "nvml.def"} {
		text, err := os.ReadFile(filepath.Join(root(t), "cuda-intercept/hooks", table))
		if err != nil {
			t.Fatal(err)
		}
		tests := map[string]string{}
		for _, m := range regexp.MustCompile(`(?m)^TEST\((\w+), tests/intercept, (\w+)\)`).FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = m[2]
		}
		for _, m := range regexp.MustCompile(`(?m)^(?:HOOK\(\w+, (\w+), .*, (\w+)\)|REFUSE\(\w+, (\w+),)`).FindAllStringSubmatch(string(text), -1) {
			if m[1] != "" {
				all = append(all, wrapped{m[1], tests[m[2]]})
			} else {
				all = append(all, wrapped{m[3], tests["refuse"]})
			}
		}
	}
	return all
}

// The test that a row names fails when the row's wrapper is taken out: for as many
// rows, chosen at random, as GPUSHARE_TEST_ROWS says, or "all".
func TestRowsAreTested(t *testing.T) {
	rows := wrappedRows(t)
	rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	switch n, err := strconv.Atoi(os.Getenv("GPUSHARE_TEST_ROWS")); {
	case err == nil:
		rows = rows[:min(n, len(rows))]
	case os.Getenv("GPUSHARE_TEST_ROWS") != "all":
		t.Skip("takes 2 seconds a row: set GPUSHARE_TEST_ROWS to a number or to all")
	}
	dir := t.TempDir()
	hooks := filepath.Join(dir, "hooks")
	run(t, root(t), nil, "go", "build", "-o", hooks, "./internal/gen/hooks")
	gen, build := filepath.Join(dir, "cuda-intercept/gen"), filepath.Join(dir, "build")
	env := append(os.Environ(), "GPUSHARE_TEST_GEN="+gen, "GPUSHARE_TEST_LIB="+filepath.Join(build, "lib"), "GPUSHARE_TEST_ROWS=")
	// With every wrapper in place the tests pass, or their failing means nothing.
	for i, r := range append([]wrapped{{"", "TestWrappers|TestLaunches|TestNVMLGuard|TestRefusals|TestLookups|TestExportTables|TestABIs"}}, rows...) {
		run(t, root(t), nil, hooks, "-root", ".", "-out", dir, "-without", r.symbol)
		run(t, filepath.Join(root(t), "cuda-intercept"), nil, "make", "x86_64", "GEN="+gen, "BUILD="+build)
		// Twice: a loaded machine may fail a test once.
		for range 2 {
			cmd := exec.Command(os.Args[0], "-test.run", "^("+r.test+")$", "-test.timeout", "60s")
			cmd.Env = env
			if out, err := cmd.CombinedOutput(); (err == nil) != (i == 0) {
				t.Errorf("without %q: %s: %v\n%s", r.symbol, r.test, err, out)
				break
			}
		}
	}
	t.Logf("tried without %d of %d wrappers", len(rows), len(wrappedRows(t)))
}

func run(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}
