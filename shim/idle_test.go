// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

func rssFile(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(regexp.MustCompile(`RssFile:\s*(\d+)`).FindSubmatch(data)[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The program's pages go and come back: what it is made of still works.
func TestUnmapProgram(t *testing.T) {
	maps, err := programMaps()
	if err != nil || len(maps) < 3 {
		t.Fatalf("mappings of the program: %+v, %v", maps, err)
	}
	before := rssFile(t)
	for range 3 {
		if err := unmapProgram(); err != nil {
			t.Fatal(err)
		}
		if after := rssFile(t); after > before/2 {
			t.Errorf("%d KiB of files in memory, were %d", after, before)
		}
		TestRuncOptions(t)
	}
}
