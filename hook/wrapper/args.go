// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wrapper

import (
	"strconv"
	"strings"
)

// invocation is a low-level runtime's command line, as far as we must know it.
type invocation struct {
	root, log, logFormat string
	command              string // empty if there is none
	bundle               string
	ids                  []string // the command's plain arguments
	config               string   // crun's --config: the spec in another file
	preserveFDs          int
	help, force          bool
	// unsure is a flag that could be read in two ways; empty if none.
	unsure string
}

// flags maps the flags of one command, without dashes, to whether they take a
// value. The runtimes accept one dash and two.
type flags map[string]bool

// globalFlags are those of runc, crun and youki together.
var globalFlags = flags{
	"root": true, "log": true, "log-format": true, "criu": true, "rootless": true,
	"log-level": true, "cgroup-manager": true,
	"debug": false, "systemd-cgroup": false, "help": false, "h": false, "version": false, "v": false,
	"r": true, "l": true,
}

// commands maps every command of the runtimes to the flags that we must be able
// to read; nil for those whose arguments do not concern us.
var commands = map[string]flags{
	"create": createFlags, "run": createFlags,
	"restore": restoreFlags,
	"delete":  {"force": false, "f": false, "regex": false, "r": false, "help": false, "h": false},
	"exec": {
		"console-socket": true, "cwd": true, "env": true, "e": true, "user": true, "u": true,
		"additional-gids": true, "g": true, "process": true, "p": true, "pid-file": true,
		"process-label": true, "apparmor": true, "cap": true, "c": true, "preserve-fds": true,
		"cgroup": true, "tty": false, "t": false, "detach": false, "d": false,
		"no-new-privs": false, "ignore-paused": false, "help": false, "h": false,
	},
	"checkpoint": nil, "events": nil, "features": nil, "help": nil, "h": nil, "init": nil,
	"kill": nil, "list": nil, "ps": nil, "pause": nil, "resume": nil, "spec": nil,
	"start": nil, "state": nil, "update": nil, "mounts": nil, "info": nil, "completion": nil,
}

var createFlags = flags{
	"bundle": true, "b": true, "console-socket": true, "pid-file": true, "preserve-fds": true,
	"config": true, "f": true, "pidfd-socket": true,
	"no-pivot": false, "no-new-keyring": false, "no-subreaper": false, "subreaper": false,
	"detach": false, "d": false, "keep": false, "help": false, "h": false,
}

var restoreFlags = flags{
	"bundle": true, "b": true, "console-socket": true, "pid-file": true,
	"image-path": true, "work-path": true, "manage-cgroups-mode": true, "empty-ns": true,
	"lsm-profile": true, "lsm-mount-context": true, "config": true,
	"tcp-established": false, "ext-unix-sk": false, "shell-job": false, "file-locks": false,
	"detach": false, "d": false, "no-pivot": false, "no-subreaper": false, "auto-dedup": false,
	"lazy-pages": false, "leave-running": false, "help": false, "h": false,
}

// parse reads args, without the program's own name. It never fails: what it
// cannot read for certain is left in unsure.
func parse(args []string) *invocation {
	inv := &invocation{}
	rest := inv.scan(args, globalFlags, true)
	if len(rest) == 0 {
		return inv
	}
	inv.command = rest[0]
	if known := commands[inv.command]; known != nil {
		// What follows the id of exec is the program's own.
		own := inv.command == "exec"
		inv.ids = append(inv.ids, inv.scan(rest[1:], known, own)...)
	}
	if inv.unsure == "" {
		return inv
	}
	// A flag in doubt may have swallowed the command, or been one itself.
	for _, arg := range rest[1:] {
		if touches(arg) && !touches(inv.command) {
			inv.command = arg
		}
	}
	return inv
}

// touches says whether the command makes a container.
func touches(command string) bool {
	return command == "create" || command == "run" || command == "restore"
}

// scan reads flags into inv. With stop it ends at the first plain argument and
// returns it and what follows; else it collects plain arguments in ids.
func (inv *invocation) scan(args []string, known flags, stop bool) []string {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			if stop {
				return args[i+1:]
			}
			inv.ids = append(inv.ids, args[i+1:]...)
			return nil
		}
		if len(arg) < 2 || arg[0] != '-' {
			if stop {
				return args[i:]
			}
			inv.ids = append(inv.ids, arg)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		takesValue, ok := known[name]
		if !ok && !hasValue && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			inv.unsure = arg
			_, isCommand := commands[args[i+1]]
			takesValue = !stop || !isCommand
		}
		if takesValue && !hasValue {
			if i++; i >= len(args) {
				return nil
			}
			value = args[i]
		}
		inv.set(name, value)
	}
	return nil
}

func (inv *invocation) set(name, value string) {
	switch name {
	case "root":
		inv.root = value
	case "log":
		inv.log = value
	case "log-format":
		inv.logFormat = value
	case "bundle", "b":
		inv.bundle = value
	case "config":
		inv.config = value
	case "preserve-fds":
		if n, err := strconv.Atoi(value); err == nil && n > 0 {
			inv.preserveFDs = n
		}
	case "force", "f":
		on, _ := strconv.ParseBool(value)
		inv.force = inv.command == "delete" && (on || value == "")
	case "help", "h", "version", "v":
		// Not what the flag says, but what the runtime makes of it.
		on, err := strconv.ParseBool(value)
		inv.help = inv.help || on || err != nil
	}
}
