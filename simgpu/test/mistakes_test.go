// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What is typed wrong is answered in one line that says what would be right.
func TestMistakesAtTheCommandLine(t *testing.T) {
	n := up(t)
	dir := " --dir " + n.dir
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	for text, want := range map[string]string{
		"faults: [{cal: cuInit, rc: 3}]":              "did you mean call?",
		"faults: [{call: cuInit, rc: 3, nth: x}]":     "nth: string: want a whole number",
		"faults: [{call: cuInit, rc: nonsense}]":      "want a number, or a name",
		"faults: {call: cuInit}":                      "faults: object: want a list of rules",
		"fault: []":                                   "did you mean faults?",
		"faults: [{call: cuInit, rc: 3, outputs: no}": "read rules from",
	} {
		if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(binary, "up", "--dir", filepath.Join(t.TempDir(), "n"), "--faults", rules).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%s: %v, %s want one line with %q", text, err, out, want)
		}
	}
	for line, want := range map[string]string{
		"upp":                                         "did you mean simgpu up?",
		"status":                                      "write --dir DIR",
		"status " + n.dir:                             "write --dir " + n.dir,
		"status extra" + dir:                          "takes no such word",
		"up h100" + dir:                               "did you mean --profile h100?",
		"up --detahc" + dir:                           "did you mean --detach?",
		"up --slice 5" + dir:                          "want a time with a unit",
		"up --memory 24" + dir:                        "want bytes with a unit",
		"up --memory 50%" + dir:                       "want bytes with a unit",
		"mig creat" + dir:                             "did you mean simgpu mig create?",
		"mig create 9g.9gb" + dir:                     "this card has",
		"clock stp" + dir:                             "did you mean simgpu clock step?",
		"clock step 10" + dir:                         "want one time with a unit",
		"clock step 10ms" + dir:                       "start it with --clock virtual",
		"kill-gpu --xid 79" + dir:                     "write --gpu NUMBER",
		"condition k=1000001" + dir:                   "want at most 1000000",
		"set tmp=95" + dir:                            "did you mean temp?",
		"set temp=95 --gpu 7" + dir:                   "the node has GPUs 0 to 0",
		"status --dir /no/such/node":                  "start some with simgpu up",
		"trace" + dir:                                 "start it with --trace FILE",
		"fail --call cuMemAlloc --nth 0 --rc 2" + dir: "at least 1",
	} {
		out, err := exec.Command(binary, strings.Fields(line)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("simgpu %s: %v, %s want one line with %q", line, err, out, want)
		}
	}
	for line, want := range map[string]string{
		"set temp=95" + dir + " --gpu 0":          "", // flags may stand behind
		"set mig.mode=off fan=50 --gpu all" + dir: "",
		"mig list" + dir:                          "no MIG devices\n",
	} {
		out, err := exec.Command(binary, strings.Fields(line)...).CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("simgpu %s: %v, %q want %q", line, err, out, want)
		}
	}
}
