// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/internal/commandline"
	"github.com/gpushare/gpushare/internal/suggest"
	"github.com/gpushare/gpushare/limiter"
	"github.com/gpushare/gpushare/limiter/quantity"
)

const runHelp = `gpushare run: start a container with a share of a GPU

   gpushare run --gpu-memory SIZE [--gpu-compute SHARE] [--gpu-compute-max SHARE] [--gpu-host-memory SIZE] [--gpu GPU] [--print] DOCKER-RUN-ARGUMENTS…
   gpushare run --gpu-profile NAME [--gpu-host-memory SIZE] [--gpu GPU] [--print] DOCKER-RUN-ARGUMENTS…

Examples:
   gpushare run --gpu-memory 8Gi --rm pytorch/pytorch python train.py
   gpushare run --gpu-memory 25% --gpu-compute 30% --gpu-compute-max none -it IMAGE
   gpushare run --gpu-profile 1of4 --rm IMAGE
   gpushare run --gpu-memory 8Gi --print IMAGE     (show the docker command, run nothing)

   --gpu-memory SIZE         limit of device memory: 8Gi, 512Mi, 25%; 8g means 8Gi here, as in docker
   --gpu-compute SHARE       guaranteed share of the GPU's time: 30% or 0.3; without it there is no guarantee
   --gpu-compute-max SHARE   most GPU time that it may use; default: the guarantee, none if there is none
   --gpu-profile NAME        memory and compute by name: 1of2, 1of4, 1of6 (N of 1ofN fit on a GPU) or slice-4g
   --gpu-host-memory SIZE    host memory for what does not fit into the limit: far slower, and only where the node lends it
   --gpu GPU                 auto (default), an index or a UUID; several with commas
   --print                   print the docker command instead of running it

Everything else, and everything from the image on, is docker run's. The exit status is docker run's.
`

// runRequest is what `gpushare run` was asked for.
type runRequest struct {
	words limiter.Words
	gpu   string
	print bool
	help  bool
	args  []string // docker's own, the image included
}

func (t *terminal) runCommand() *cli.Command {
	return &cli.Command{
		Name: "run", Usage: "start a container with a share of a GPU, through docker",
		SkipFlagParsing: true, HideHelp: true,
		Action: func(c *cli.Context) error {
			err := t.start(c.Args().Slice())
			if err != nil && !errors.As(err, &statusError{}) {
				// As docker does: its own mistakes are 125, so that the container's
				// statuses stay its own.
				err = statusError{err, exitRun}
			}
			return err
		},
	}
}

func (t *terminal) start(args []string) error {
	r, err := parseRun(args)
	if err != nil {
		return err
	}
	if r.help {
		_, err := fmt.Fprint(t.out, runHelp)
		return err
	}
	argv, echo, err := r.command()
	if err != nil {
		return err
	}
	if r.print {
		_, err := fmt.Fprintln(t.out, quote(argv))
		return err
	}
	fmt.Fprintf(t.err, "gpushare: %s\n", echo)
	return t.exec(argv)
}

// bools are docker run's flags that take no value; all others do.
var bools = map[string]bool{
	"detach": true, "disable-content-trust": true, "help": true, "init": true, "interactive": true,
	"no-healthcheck": true, "oom-kill-disable": true, "privileged": true, "publish-all": true, "quiet": true,
	"read-only": true, "rm": true, "sig-proxy": true, "tty": true, "use-api-socket": true,
}

// shortBools are the letters of docker run's short flags that take no value.
const shortBools = "ditPq"

// parseRun takes our flags out of docker run's. It ends at the image: what
// follows is the container's.
func parseRun(args []string) (runRequest, error) {
	var r runRequest
	own := map[string]*string{"gpu-memory": &r.words.Memory, "gpu-compute": &r.words.Compute, "gpu-compute-max": &r.words.ComputeMax, "gpu-profile": &r.words.Profile, "gpu-host-memory": &r.words.HostMemory, "gpu": &r.gpu}
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" || len(a) < 2 || a[0] != '-' {
			r.args = append(r.args, args[i:]...)
			return r, nil
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-"), "=")
		long := strings.HasPrefix(a, "--")
		switch target := own[name]; {
		case long && target != nil:
			if !hasValue {
				if i++; i == len(args) {
					return r, usagef("--%s: a value is missing; see: gpushare run --help", name)
				}
				value = args[i]
			}
			if *target != "" {
				return r, usagef("--%s is given twice; give it once", name)
			}
			if value == "" {
				return r, usagef("--%s is empty; see: gpushare run --help", name)
			}
			*target = value
			continue
		case long && name == "print" && !hasValue:
			r.print = true
			continue
		case long && name == "help" || a == "-h":
			r.help = true
			return r, nil
		case long && strings.HasPrefix(name, "gpu-"): // docker has none that begins so
			near := suggest.Nearest(name, slices.Sorted(maps.Keys(own)), "gpu-")
			return r, usagef("unknown flag --%s%s", name, commandline.DidYouMean(near, "--", "gpushare run --help"))
		case long && (name == "runtime" || name == "gpus"):
			return r, usagef("--%s: gpushare run chooses it; leave it out, or write docker run yourself (see --print)", name)
		}
		r.args = append(r.args, a)
		if dockerWantsValue(a) && i+1 < len(args) {
			i++
			r.args = append(r.args, args[i])
		}
	}
	return r, nil
}

// dockerWantsValue reports whether docker run takes the argument after this flag
// as its value.
func dockerWantsValue(a string) bool {
	if name, long := strings.CutPrefix(a, "--"); long {
		return !strings.Contains(name, "=") && !bools[name]
	}
	// Short ones may stand together; the first that takes a value has the rest.
	for i, letter := range a[1:] {
		if !strings.ContainsRune(shortBools, letter) {
			return i+2 == len(a)
		}
	}
	return false
}

// command returns docker's command line and what was understood, for people.
func (r runRequest) command() (argv []string, echo string, err error) {
	if len(r.args) == 0 || strings.HasPrefix(r.args[len(r.args)-1], "-") && r.args[0] == r.args[len(r.args)-1] {
		return nil, "", usagef("which image? see: gpushare run --help")
	}
	if r.words.Memory == "" && r.words.Profile == "" {
		return nil, "", usagef("--gpu-memory is missing: how much device memory may it use? For example --gpu-memory 8Gi, or --gpu-profile 1of4")
	}
	req, err := limiter.Parse(r.words, quantity.Docker)
	if err != nil {
		return nil, "", flagError(err)
	}
	memory, shown := r.words.Memory, r.words.Memory+" of the GPU's memory"
	if r.words.Profile != "" {
		memory, shown = "", ""
	} else if !req.Memory.IsPercent() {
		shown = quantity.FormatBytes(req.Memory.Bytes(0))
		if _, err := quantity.ParseMemory(memory, quantity.Strict); err != nil {
			memory = strictMemory(req.Memory.Bytes(0))
		}
	}
	host := r.words.HostMemory
	if _, err := quantity.ParseHostMemory(host, quantity.Strict); host != "" && err != nil {
		host = strictMemory(req.HostBytes)
	}
	argv = []string{"docker", "run", "--runtime=gpushare"}
	var understood []string
	for _, w := range []struct{ name, value, text string }{
		{"GPUSHARE_MEMORY", memory, "memory " + shown}, {"GPUSHARE_PROFILE", r.words.Profile, "profile " + r.words.Profile},
		{"GPUSHARE_COMPUTE", r.words.Compute, "compute " + r.words.Compute}, {"GPUSHARE_COMPUTE_MAX", r.words.ComputeMax, "at most " + r.words.ComputeMax},
		{"GPUSHARE_HOST_MEMORY", host, "host memory " + quantity.FormatBytes(req.HostBytes)}, {"GPUSHARE_GPU", r.gpu, "GPU " + r.gpu},
	} {
		if w.value != "" {
			argv = append(argv, "-e", w.name+"="+w.value)
			understood = append(understood, w.text)
		}
	}
	echo = strings.Join(understood, ", ")
	return append(argv, r.args...), echo + " (--print shows the docker command)", nil
}

// flagError names the flag of a word that was refused.
func flagError(err error) error {
	var f *limiter.FieldError
	if errors.As(err, &f) {
		return usageError{fmt.Errorf("--gpu-%s %w", f.Field, f.Err)}
	}
	return usageError{err}
}

// strictMemory writes bytes as every surface understands them.
func strictMemory(bytes uint64) string {
	for _, u := range []struct {
		shift uint
		unit  string
	}{{30, "Gi"}, {20, "Mi"}, {10, "Ki"}} {
		if bytes%(1<<u.shift) == 0 {
			return fmt.Sprintf("%d%s", bytes>>u.shift, u.unit)
		}
	}
	return fmt.Sprintf("%dB", bytes)
}

// quote writes a command line for a shell.
func quote(argv []string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@%+"
	out := make([]string, len(argv))
	for i, a := range argv {
		if a == "" || strings.Trim(a, plain) != "" {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		out[i] = a
	}
	return strings.Join(out, " ")
}

// execve becomes another program.
func execve(argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return statusError{fmt.Errorf("docker is not on the PATH: install it, or write the command for your engine yourself (see --print)"), exitRun}
	}
	return fmt.Errorf("run %s: %w", path, syscall.Exec(path, argv, os.Environ()))
}
