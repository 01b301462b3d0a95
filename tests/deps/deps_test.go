// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package deps holds the rules on what may depend on what, and on the sizes of
// files, as tests: a rule that nothing checks is a wish.
package deps

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/gpushare/gpushare/"

type pkg struct {
	ImportPath string
	Dir        string
	Imports    []string
	Deps       []string
	CgoFiles   []string
	Standard   bool
}

func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Imports,Deps,CgoFiles,Standard"}, args...)...)
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func under(path, dir string) bool {
	path = strings.TrimPrefix(path, module)
	return path == dir || strings.HasPrefix(path, dir+"/")
}

// limiter is imported by all and imports none: the standard library, itself, and
// golang.org/x/sys in the package of the shared memory.
func TestLimiterStandsAlone(t *testing.T) {
	packages := list(t, "./limiter/...")
	if len(packages) == 0 {
		t.Fatal("no package found")
	}
	for _, p := range packages {
		for _, i := range p.Imports {
			switch {
			case standard(i), under(i, "limiter"):
			case strings.HasPrefix(i, "golang.org/x/sys/") && under(p.ImportPath, "limiter/region"):
			default:
				t.Errorf("%s imports %s", p.ImportPath, i)
			}
		}
	}
}

// The binaries that run as root at every container start carry no RPC framework,
// no engine, no NVML and no eBPF, and no C.
func TestWrapperIsSmall(t *testing.T) {
	banned := []string{"google.golang.org/grpc", "github.com/containerd/", "github.com/NVIDIA/", "github.com/cilium/ebpf",
		"github.com/urfave/cli", module + "simgpu", module + "daemon/"}
	for _, p := range list(t, "./hook/...") {
		for _, d := range p.Deps {
			for _, b := range banned {
				if strings.HasPrefix(d, b) && !under(d, "daemon/api") {
					t.Errorf("%s depends on %s", p.ImportPath, d)
				}
			}
		}
		if slices.Contains(p.Deps, "runtime/cgo") && under(p.ImportPath, "hook/cmd") {
			// net and os/user bring it in unless the build says CGO_ENABLED=0, as ours does.
			t.Logf("%s must be built without cgo", p.ImportPath)
		}
	}
}

// cgo only where a driver library has to be called.
func TestCgoOnlyWhereNeeded(t *testing.T) {
	for _, p := range list(t, "./...") {
		if len(p.CgoFiles) > 0 && !under(p.ImportPath, "daemon/nvml") && !under(p.ImportPath, "daemon/calibrate") {
			t.Errorf("%s uses cgo in %v", p.ImportPath, p.CgoFiles)
		}
	}
}

// To everything but simgpu and the tests the simulator is an installed driver.
func TestOnlyTestsImportTheSimulator(t *testing.T) {
	for _, p := range list(t, "./...") {
		if under(p.ImportPath, "simgpu") || under(p.ImportPath, "tests") {
			continue
		}
		for _, i := range p.Imports {
			if under(i, "simgpu") || under(i, "tests") {
				t.Errorf("%s imports %s", p.ImportPath, i)
			}
		}
	}
}

func files(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("git ls-files: %v; the file rules need a git checkout", err)
	}
	return strings.Fields(string(out))
}

// Nothing that ships names a path of the simulator.
func TestNoSimulatorPaths(t *testing.T) {
	words := regexp.MustCompile(`SIMGPU_|/run/simgpu|simgpu\.sock|build/simgpu`)
	for _, f := range files(t) {
		top, _, nested := strings.Cut(f, "/")
		if !nested || slices.Contains([]string{"simgpu", "tests", "docs", "examples"}, top) {
			continue
		}
		// Tests run on the simulator and may name what they like.
		if strings.HasSuffix(f, "_test.go") || strings.HasPrefix(f, "cuda-intercept/test/") || f == "cuda-intercept/Makefile" {
			continue
		}
		data, err := os.ReadFile(path.Join("../..", f))
		if err != nil {
			continue // deleted, not yet committed
		}
		if m := words.Find(data); m != nil {
			t.Errorf("%s mentions %s", f, m)
		}
	}
}

// longest is the most lines that a source file may have.
const longest = 500

func TestFileLengths(t *testing.T) {
	for _, f := range files(t) {
		switch path.Ext(f) {
		case ".go", ".c", ".h", ".sh", ".py":
		default:
			continue
		}
		data, err := os.ReadFile(path.Join("../..", f))
		if err != nil || bytes.Contains(data[:min(len(data), 400)], []byte("DO NOT EDIT")) {
			continue
		}
		// Declarations of a foreign interface, one line a name.
		if strings.HasSuffix(f, "_abi.h") {
			continue
		}
		if n := bytes.Count(data, []byte("\n")); n > longest {
			t.Errorf("%s has %d lines, more than %d", f, n, longest)
		}
		if !bytes.Contains(data[:min(len(data), 300)], []byte("SPDX-License-Identifier: Apache-2.0")) {
			t.Errorf("%s has no SPDX header", f)
		}
	}
}
