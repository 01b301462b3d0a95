// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"path"
	"strings"
)

// Program is the file name of the hook.
const Program = "gpushare-hook"

// What is done with an image's own copy of libcuda that would be chosen.
const (
	Route  = "route"  // it serves as the real one, below ours
	Host   = "host"   // the host's serves as the real one
	Refuse = "refuse" // the container is not started
)

// ContainerDir is where a container finds its limits, ledger and real driver.
const ContainerDir = "/run/gpushare"

// Codes of refusals.
const (
	CodeImage  = "GS-IMAGE"  // an image that cannot use our libraries
	CodeCompat = "GS-COMPAT" // an image with its own libcuda, and the policy to refuse it
	CodeLoader = "GS-LOADER" // the loader would go past our library
	CodeHook   = "GS-HOOK"   // the hook cannot do its work on this host
)

// Refusal is returned when the container must not be started. Its text is one
// line: what happened, why, what to do, and the code.
type Refusal struct{ Code, Message string }

func (r *Refusal) Error() string { return r.Message + "  [" + r.Code + "]" }

func refuse(code, format string, args ...any) error {
	return &Refusal{Code: code, Message: "GPU container refused: " + fmt.Sprintf(format, args...)}
}

// Options are all that the hook knows, handed over as its arguments.
type Options struct {
	// Root is the container's root file system on the host.
	Root string
	// CUDA and NVML are our libraries on the host. Without NVML the driver has none.
	CUDA, NVML string
	// CUDAReal is the host driver's libcuda.
	CUDAReal string
	// Compat is Route, Host or Refuse.
	Compat string
	// LibraryPath is the value of LD_LIBRARY_PATH in the container.
	LibraryPath string
	// Preload is the value of LD_PRELOAD in the container.
	Preload string
	// Arg0, SearchPath and WorkDir say what the entry point is: the first
	// argument, PATH and the working directory of the spec's process.
	Arg0, SearchPath, WorkDir string
}

func (o *Options) fields() []struct {
	name  string
	value *string
} {
	return []struct {
		name  string
		value *string
	}{
		{"root", &o.Root},
		{"cuda", &o.CUDA},
		{"nvml", &o.NVML},
		{"cuda-real", &o.CUDAReal},
		{"compat", &o.Compat},
		{"library-path", &o.LibraryPath},
		{"preload", &o.Preload},
		{"arg0", &o.Arg0},
		{"search-path", &o.SearchPath},
		{"work-dir", &o.WorkDir},
	}
}

// Args returns the options as arguments, the program's name not included.
func (o *Options) Args() []string {
	var args []string
	for _, f := range o.fields() {
		if *f.value != "" {
			args = append(args, "--"+f.name+"="+*f.value)
		}
	}
	return args
}

// Parse reads what Args wrote.
func Parse(args []string) (*Options, error) {
	o := &Options{}
	seen := map[string]bool{}
next:
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		for _, f := range o.fields() {
			if ok && name == "--"+f.name && !seen[name] {
				*f.value, seen[name] = value, true
				continue next
			}
		}
		return nil, refuse(CodeHook, "%s does not know the argument %q, or has it twice: runtime and hook must be of one version", Program, arg)
	}
	for _, p := range []string{o.Root, o.CUDA, o.CUDAReal} {
		if !path.IsAbs(p) {
			return nil, refuse(CodeHook, "%s needs --root, --cuda and --cuda-real with absolute paths and has %q", Program, p)
		}
	}
	if o.NVML != "" && !path.IsAbs(o.NVML) {
		return nil, refuse(CodeHook, "%s needs an absolute path for --nvml and has %q", Program, o.NVML)
	}
	if o.Compat != Route && o.Compat != Host && o.Compat != Refuse {
		return nil, refuse(CodeHook, "compat is %q: write route, host or refuse into config.toml", o.Compat)
	}
	return o, nil
}
