// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each reason of an event has an entry in the reference.
func TestEventsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/reference/daemon.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("events.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`Event[A-Za-z]+ += "([A-Za-z]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(found) < 10 {
		t.Fatalf("%d reasons found", len(found))
	}
	for _, m := range found {
		if !strings.Contains(string(doc), "`"+m[1]+"`") {
			t.Errorf("%s has no entry", m[1])
		}
	}
}

// sources are the files that define the codes: of the daemon and its clients, of
// the runtime, of the createContainer hook.
var sources = []string{"doc.go", "../../../hook/errors.go", "../../../hook/inject/options.go"}

// Each code has an entry in the reference, and the reference none that does not
// exist.
func TestCodesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/reference/daemon.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`"(GS-[A-Z-]+)"`)
	known := make(map[string]bool)
	for _, name := range sources {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := code.FindAllStringSubmatch(string(source), -1)
		if len(found) < 3 {
			t.Fatalf("%d codes found in %s", len(found), name)
		}
		for _, m := range found {
			known[m[1]] = true
			if !strings.Contains(string(doc), "`"+m[1]+"`") {
				t.Errorf("%s has no entry", m[1])
			}
		}
	}
	for _, m := range regexp.MustCompile("`(GS-[A-Z-]+)`").FindAllStringSubmatch(string(doc), -1) {
		if !known[m[1]] {
			t.Errorf("%s is documented and does not exist", m[1])
		}
	}
}
