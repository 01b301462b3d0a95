// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wrapper

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]invocation{
		"":          {},
		"--version": {help: true},
		"-v":        {help: true},
		"state id":  {command: "state"},
		"--root /r --log /l --log-format json create --bundle /b --pid-file /p id": {
			root: "/r", log: "/l", logFormat: "json", command: "create", bundle: "/b", ids: []string{"id"}},
		"--root=/r --log=/l -log-format=text --systemd-cgroup --debug run -b /b -d --preserve-fds 2 id": {
			root: "/r", log: "/l", logFormat: "text", command: "run", bundle: "/b", ids: []string{"id"}, preserveFDs: 2},
		"--rootless auto --criu /c create id --bundle /b":    {command: "create", bundle: "/b", ids: []string{"id"}},
		"--root create delete --force run":                   {root: "create", command: "delete", ids: []string{"run"}, force: true},
		"delete -f id":                                       {command: "delete", ids: []string{"id"}, force: true},
		"delete --force=0 x":                                 {command: "delete", ids: []string{"x"}},
		"--log run --root /a --root /b state create":         {log: "run", root: "/b", command: "state"},
		"create --bundle=/b -- --odd":                        {command: "create", bundle: "/b", ids: []string{"--odd"}},
		"-- create id":                                       {command: "create", ids: []string{"id"}},
		"--help=0 create --help=F id":                        {command: "create", ids: []string{"id"}},
		"create --help":                                      {command: "create", help: true},
		"--cgroup-manager=systemd run --config /x -b /b id":  {command: "run", config: "/x", bundle: "/b", ids: []string{"id"}},
		"--new-flag=x create id":                             {command: "create", ids: []string{"id"}},
		"--new-flag create id":                               {command: "create", ids: []string{"id"}, unsure: "--new-flag"},
		"--new-flag x create id":                             {command: "create", ids: []string{"id"}, unsure: "--new-flag"},
		"--new-flag --debug create id":                       {command: "create", ids: []string{"id"}},
		"--new-flag state create id":                         {command: "create", unsure: "--new-flag"},
		"create --new-flag id":                               {command: "create", unsure: "--new-flag"},
		"create --new-flag=1 id":                             {command: "create", ids: []string{"id"}},
		"restore --image-path /i --bundle /b id":             {command: "restore", bundle: "/b", ids: []string{"id"}},
		"exec --preserve-fds=3 --process /p id create":       {command: "exec", preserveFDs: 3, ids: []string{"id", "create"}},
		"exec -e A=b -u 0 id sh --preserve-fds 9":            {command: "exec", ids: []string{"id", "sh", "--preserve-fds", "9"}},
		"create --preserve-fds -4 id":                        {command: "create", ids: []string{"id"}},
		"create --bundle":                                    {command: "create"},
		"kill --all create 9":                                {command: "kill"},
		"create a b":                                         {command: "create", ids: []string{"a", "b"}},
		"--root /r --log /l events --stats run":              {root: "/r", log: "/l", command: "events"},
		"create --console-socket /s --no-pivot --bundle / x": {command: "create", bundle: "/", ids: []string{"x"}},
	} {
		got := parse(strings.Fields(in))
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%q:\n got %+v\nwant %+v", in, *got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("--root /r create --bundle /b id")
	f.Add("--x state run id")
	f.Fuzz(func(t *testing.T, in string) {
		args := strings.Split(in, " ")
		inv := parse(args)
		// A command that makes a container is only ever overlooked where a
		// known flag takes it for its value, or another command is named first.
		for i, arg := range args {
			if !touches(arg) || touches(inv.command) || inv.command != "" {
				continue
			}
			if i == 0 {
				t.Errorf("%q: overlooked %s", in, arg)
			}
		}
	})
}
