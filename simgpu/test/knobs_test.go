// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/simgpu/fault"
	"github.com/gpushare/gpushare/simgpu/host"
)

// knobs names for each flag of the commands a test that uses it, and for words of
// files likewise. TestEveryKnobHasATest finds the knobs by asking the program, so
// a new one without a row here is an error, as is a row whose test does not have
// the flag in its text. Settings (simgpu set) have host.TestSettings, fields of
// profiles host.TestEveryFieldOfAProfile: both find them by themselves.
var knobs = map[string]map[string]string{
	"up": {
		"--profile": "TestProfileReachesPrograms", "--gpus": "TestNVML", "--memory": "TestAccountOfMemory",
		"--model": "TestFlagsOverrideProfile", "--sms": "TestFlagsOverrideProfile", "--slice": "TestSliceFlag",
		"--switch-cost": "TestSwitchCost", "--context-overhead": "TestAccountOfMemory", "--kernel-time": "TestKernelRules",
		"--condition": "TestPrograms", "--kernel-times": "TestKernelRules", "--watchdog": "TestFaultsStayInTheirContext",
		"--sharing": "TestSharingByMPS", "--lib-dir": "TestUpRefuses", "--mig": "TestMIG", "--detach": "TestDetach",
		"--driver": "TestDrivers", "--absent": "TestAbsentNames", "--faults": "TestFaultFile", "--clock": "TestClockCommand",
		"--start": "TestClockCommand", "--lenient": "TestALenientClockGoesOn", "--grace": "TestAProgramThatDoesNotComeBackIsNamed",
		"--call-cost": "TestCallCost", "--query-cost": "TestAKilledProgramDoesNotStopTheClock", "--read-cost": "TestReadCost",
		"--trace": "TestTraceCommand",
	},
	"fail": {
		"--call": "TestFaultWhen", "--rc": "TestFaultWhen", "--outputs": "TestFaultOutputs", "--nth": "TestFaultWhen",
		"--every": "TestFaultWhen", "--count": "TestFaultWhen", "--gpu": "TestFaultWhose", "--pid": "TestFaultWhose",
		"--cgroup": "TestFaultWhose", "--per-process": "TestFaultWhose", "--delay": "TestFaultDelay",
		"--list": "TestFaultFile", "--clear": "TestFaultFile",
	},
	"set":         {"--gpu": "TestManagement"},
	"mig":         {},
	"mig create":  {"--gpu": "TestMIG"},
	"mig list":    {},
	"mig destroy": {"--gpu": "TestMIG"},
	"engine": {
		"--gpu": "TestEngineCommand", "--slice": "TestEngineCommand", "--timeslice": "TestEngineCommand",
		"--switch-cost": "TestSwitchCost", "--watchdog": "TestWatchdogCommand",
	},
	"kernel-time": {"--file": "TestKernelTimeCommand"},
	"condition":   {},
	"kill-gpu":    {"--gpu": "TestKillGPU", "--xid": "TestKillGPUByXID", "--rc": "TestKillGPUByXID"},
	"revive-gpu":  {"--gpu": "TestKillGPU"},
	"clock":       {"-o": "TestClockCommand"},
	"clock step":  {"--patience": "TestClockCommand"},
	"clock run": {
		"--patience": "TestClockCommand", "--until": "TestClockCommand", "--idle": "TestClockCommand",
	},
	"clock hold":    {},
	"clock release": {},
	"trace":         {"--chrome": "TestTraceCommand"},
	"status":        {"-o": "TestStatusCommand", "--reset": "TestStatusReset"},
	"down":          {},
	"profiles":      {},
}

// words are those of a file of rules, of a kernel's length, and commands without
// flags, with the test that uses each.
var words = map[string]string{
	"call": "TestFaultFile", "rc": "TestFaultFile", "count": "TestFaultFile", "nth": "TestFaultFile", "outputs": "TestFaultFile",
	"every": "TestFaultWords", "gpu": "TestFaultWords", "pid": "TestFaultWords", "cgroup": "TestFaultWords",
	"per_process": "TestFaultWords", "delay": "TestFaultWords",
	"/wave": "TestKernelTimeCommand", "~30%": "TestKernelTimeCommand", "+trap": "TestKernelTimeCommand",
	"illegal-address": "TestKernelTimeCommand", "hang": "TestKernelTimeCommand",
	"mig\", args[0]": "TestMIG", "list\"": "TestMIG", "destroy\"": "TestMIG", "condition\"": "TestPrograms",
	"revive-gpu": "TestKillGPU", "hold\"": "TestClockCommand", "release\"": "TestClockCommand", "profiles\"": "TestProfilesCommand",
	"down\"": "TestDetach", "xid=": "TestEventsAndLoss", "library-version=": "TestLibraryOfAnotherRelease",
}

// texts holds the functions of this package's tests by name, each with those that
// it calls.
func texts(t *testing.T) map[string]string {
	t.Helper()
	own, refers := map[string]string{}, map[string][]string{}
	set := token.NewFileSet()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if path == "knobs_test.go" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := fn.Name.Name
			own[name] += string(text[set.Position(fn.Pos()).Offset:set.Position(fn.End()).Offset])
			ast.Inspect(fn, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && id.Name != name {
					refers[name] = append(refers[name], id.Name)
				}
				return true
			})
		}
	}
	out := map[string]string{}
	for name := range own {
		for _, other := range append(refers[name], name) {
			if !strings.HasPrefix(other, "Test") || other == name {
				out[name] += own[other]
			}
		}
	}
	return out
}

var (
	optionLine  = regexp.MustCompile(`(?m)^   (--[a-z-]+|-o)\b`)
	commandLine = regexp.MustCompile(`(?m)^   ([a-z-]+)(, [a-z]+)?  `)
)

// flagsOf asks a command, and those below it, for their flags.
func flagsOf(t *testing.T, into map[string][]string, command ...string) {
	t.Helper()
	out, err := simgpu(t, append(command, "--help")...)
	if err != nil {
		t.Fatalf("%v --help: %v %s", command, err, out)
	}
	_, options, _ := strings.Cut(out, "\nOPTIONS:\n")
	if len(command) > 0 {
		name := strings.Join(command, " ")
		into[name] = []string{}
		for _, m := range optionLine.FindAllStringSubmatch(options, -1) {
			if m[1] != "--help" && m[1] != "--dir" {
				into[name] = append(into[name], m[1])
			}
		}
	}
	_, commands, has := strings.Cut(out, "\nCOMMANDS:\n")
	commands, _, _ = strings.Cut(commands, "\n\n")
	for _, m := range commandLine.FindAllStringSubmatch(commands, -1) {
		if has && m[1] != "help" {
			flagsOf(t, into, append(append([]string{}, command...), m[1])...)
		}
	}
}

// Every flag, every word of a rule and every command of simgpu is used by a test.
func TestEveryKnobHasATest(t *testing.T) {
	text := texts(t)
	used := func(what, test string, needle *regexp.Regexp) {
		t.Helper()
		if test == "" {
			t.Errorf("%s: no test uses it", what)
		} else if !needle.MatchString(text[test]) {
			t.Errorf("%s: %s does not use it", what, test)
		}
	}
	found := map[string][]string{}
	flagsOf(t, found)
	if len(found) < 20 || len(found["up"]) < 25 {
		t.Fatalf("the help was not understood: %v", found)
	}
	for command, flags := range found {
		if knobs[command] == nil {
			t.Errorf("command %s: no test uses it", command)
		}
		for _, flag := range flags {
			used(command+" "+flag, knobs[command][flag], regexp.MustCompile(`[" ]`+flag+`\b`))
		}
	}
	for word, test := range words {
		used(word, test, regexp.MustCompile(regexp.QuoteMeta(word)))
	}
	spec := reflect.TypeFor[fault.Spec]()
	for i := range spec.NumField() {
		word, _, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
		used("rule's "+word, words[word], regexp.MustCompile(`\b`+word+`:`))
	}
	if len(host.Settings()) < 38 { // TestSettings goes through them
		t.Errorf("%d settings", len(host.Settings()))
	}
}
