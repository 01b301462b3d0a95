// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// step is one entry of a list. Its run counts into t.
type step struct {
	name string
	run  func(ctx context.Context, t *tally)
}

// fuzzTime is how many inputs `check` and `test` try on each fuzz target. A count,
// not a time: a run that is cut off by the clock while it makes an input smaller
// fails without a finding.
const fuzzTime = "2000x"

var lists = map[string]func() ([]step, error){
	// What takes long over the interceptor is left to test.
	"check": func() ([]step, error) { return quick("-short") },
	"e2e":   func() ([]step, error) { return e2e("."), nil },
	"engines": func() ([]step, error) {
		return append(e2e("TestMemoryLimit", "-engines", "-record", "docs/measurements"), everyEngine()), nil
	},
	"clients":     func() ([]step, error) { return clients("-full", "-record", "docs/measurements"), nil },
	"real-driver": func() ([]step, error) { return realDriver(), nil },
	"lint":        func() ([]step, error) { return lint(), nil },
}

// quick are the checks of daily work; flags go to the interceptor's tests.
func quick(flags ...string) ([]step, error) {
	steps := []step{
		script("format", 60*time.Second, "sh", "-c", formatted),
		script("go vet", 4*time.Minute, "go", "vet", "./..."),
		script("go vet, container tests", 2*time.Minute, "go", "vet", "-tags", "e2e clients", "./tests/e2e/...", "./tests/clients/..."),
	}
	unit, err := unitPackages()
	if err != nil {
		return nil, err
	}
	steps = append(steps, goTest("unit and golden tests", 8*time.Minute, unit...),
		goTest("interceptor", 16*time.Minute, append(flags, "-timeout", "15m", "./tests/intercept")...))
	steps = append(steps, cTests()...)
	fuzz, err := fuzzSteps()
	return append(steps, fuzz...), err
}

func init() {
	// Not in the literal above: it refers to the other lists.
	lists["test"] = func() ([]step, error) {
		steps, err := quick()
		if err != nil {
			return nil, err
		}
		steps = append(steps, goTest("race detector", 12*time.Minute, "-race", "./limiter/...", "./hook", "./hook/node/...", "./hook/wrapper/...", "./daemon/...", "./internal/...", "./simgpu/..."))
		steps = append(steps, sanitizers()...)
		steps = append(steps, lint()...)
		steps = append(steps, script("generated code is current", 4*time.Minute, "make", "check-generate"))
		steps = append(steps, script("ten wrappers taken out", 5*time.Minute, "go", "run", "./tests/mutation"))
		steps = append(steps, compute()...)
		steps = append(steps, e2e(".")...)
		steps = append(steps, clients()...)
		return append(steps, realDriver()...), nil
	}
}

const formatted = `files=$(gofmt -l $(git ls-files '*.go')); [ -z "$files" ] || { echo "not gofmt'ed: $files"; exit 1; }`

// slow are packages that are steps of their own.
var slow = []string{"/tests/compute", "/tests/realdriver", "/tests/intercept"}

func unitPackages() ([]string, error) {
	out, err := exec.Command("go", "list", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(p string) bool {
		return slices.ContainsFunc(slow, func(s string) bool { return strings.Contains(p, s) })
	}), nil
}

func cTests() []step {
	return []step{script("launch gate on a virtual clock", 6*time.Minute, "make", "-C", "cuda-intercept/test/gate", "test")}
}

func sanitizers() []step {
	return []step{
		script("simgpu, sanitizers", 8*time.Minute, "make", "-C", "simgpu", "test-asan"),
		script("simgpu, thread sanitizer", 8*time.Minute, "make", "-C", "simgpu", "test-tsan"),
		script("interceptor, sanitizers", 16*time.Minute, "make", "-C", "cuda-intercept", "test-asan"),
		script("interceptor, thread sanitizer", 16*time.Minute, "make", "-C", "cuda-intercept", "test-tsan"),
		script("launch gate, sanitizers", 8*time.Minute, "make", "-C", "cuda-intercept/test/gate", "asan"),
	}
}

func compute() []step {
	return []step{goTest("shares without containers", 12*time.Minute, "-count=1", "./tests/compute/...")}
}

func lint() []step {
	return []step{script("golangci-lint", 10*time.Minute, "sh", "-c",
		"go tool -modfile=tests/tools/go.mod golangci-lint run ./...")}
}

func e2e(pattern string, flags ...string) []step {
	args := []string{"-count=1", "-tags", "e2e", "-timeout", "24m", "-run", pattern, "./tests/e2e/...", "-args"}
	return []step{goTest("containers", 25*time.Minute, append(args, flags...)...)}
}

// everyEngine runs what is about Docker, installing, Kubernetes and images under
// all engines that are built, nothing left out.
func everyEngine() step {
	return goTest("docker, install, kubernetes, images", 25*time.Minute, "-count=1", "-tags", "e2e", "-timeout", "24m",
		"-run", "^(TestDocker|TestCtr|TestKubernetes$|TestImagesOwnLibcuda|TestForeignCode|TestNothingIsFree|TestRightsAndRestart)", "./tests/e2e/...", "-args", "-engines")
}

// clients runs the Python clients that must work, and others if flags say so.
func clients(flags ...string) []step {
	args := []string{"-count=1", "-tags", "clients", "-timeout", "24m", "./tests/clients/...", "-args"}
	return []step{goTest("python clients", 25*time.Minute, append(args, flags...)...)}
}

func realDriver() []step {
	return []step{goTest("real driver libraries", 10*time.Minute, "-count=1", "./tests/realdriver/...")}
}

var fuzzName = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// fuzzSteps finds every fuzz target in the repository.
func fuzzSteps() ([]step, error) {
	out, err := exec.Command("git", "ls-files", "*_test.go").Output()
	if err != nil {
		return nil, fmt.Errorf("list test files: %w", err)
	}
	var steps []step
	for file := range strings.FieldsSeq(string(out)) {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // deleted, not yet committed
		}
		for _, m := range fuzzName.FindAllStringSubmatch(string(data), -1) {
			pkg := "./" + filepath.Dir(file)
			steps = append(steps, fuzz("fuzz "+strings.TrimPrefix(pkg, "./")+" "+strings.TrimPrefix(m[1], "Fuzz"), m[1], pkg))
		}
	}
	return steps, nil
}

// fuzz runs one fuzz target, and fails also if go found nothing to fuzz.
func fuzz(name, target, pkg string) step {
	return step{name, func(ctx context.Context, t *tally) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		out, err := command(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+target+"$", "-fuzztime", fuzzTime,
			"-fuzzminimizetime", "20x", pkg).CombinedOutput()
		if err == nil && !bytes.Contains(out, []byte("execs: ")) {
			err = errors.New("nothing was fuzzed")
		}
		if err != nil {
			os.Stdout.Write(out)
			t.fail(name, err.Error())
			return
		}
		t.passed++
	}}
}

// goTest runs `go test -json` with args.
func goTest(name string, limit time.Duration, args ...string) step {
	return step{name, func(ctx context.Context, t *tally) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		cmd := command(ctx, "go", append([]string{"test", "-json"}, args...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		pipe, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.fail(name, err.Error())
			return
		}
		before := len(t.failed)
		readGoTest(pipe, os.Stdout, t)
		if err := cmd.Wait(); err != nil && len(t.failed) == before {
			os.Stdout.Write(stderr.Bytes())
			t.fail(name, err.Error())
		}
		if ctx.Err() != nil {
			t.fail(name, fmt.Sprintf("not done within %v", limit))
		}
	}}
}

// script runs a program; its output is shown only if it failed.
func script(name string, limit time.Duration, argv ...string) step {
	return step{name, func(ctx context.Context, t *tally) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		out, err := command(ctx, argv[0], argv[1:]...).CombinedOutput()
		if ctx.Err() != nil {
			err = fmt.Errorf("not done within %v", limit)
		}
		before := len(t.failed)
		readScript(name, string(out), err, t)
		if len(t.failed) > before {
			os.Stdout.Write(out)
		}
	}}
}

// command ends its whole process group when ctx does.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}
