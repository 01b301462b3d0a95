// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each code has an entry in the reference, and the reference none that does not
// exist.
func TestCodesAreDocumented(t *testing.T) {
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../../docs/reference/daemon.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`"(GS-[A-Z-]+)"`)
	known := make(map[string]bool)
	for _, m := range code.FindAllStringSubmatch(string(source), -1) {
		known[m[1]] = true
		if !strings.Contains(string(doc), "| `"+m[1]+"` |") {
			t.Errorf("%s has no entry", m[1])
		}
	}
	if len(known) < 10 {
		t.Fatalf("%d codes found in doc.go", len(known))
	}
	for _, m := range regexp.MustCompile("\\| `(GS-[A-Z-]+)` \\|").FindAllStringSubmatch(string(doc), -1) {
		if !known[m[1]] {
			t.Errorf("%s is documented and does not exist", m[1])
		}
	}
}
