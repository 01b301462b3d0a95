// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
)

// maxMaps bounds what is read of a process's list of mappings in bytes.
const maxMaps = 16 << 20

// Command is the name that a process gives itself, with what is not printable
// replaced; empty if the process has ended.
func Command(pid int) string {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == '\uFFFD' { // C1 and what turns text around too
			return '?'
		}
		return r
	}, strings.ToValidUTF8(strings.TrimSuffix(string(raw), "\n"), "?"))
}

// InnerPID is the PID of a process in its own namespace, 0 if it has ended.
func InnerPID(pid int) int {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if list, ok := strings.CutPrefix(line, "NSpid:"); ok {
			f := strings.Fields(list)
			if len(f) == 0 {
				return 0
			}
			inner, _ := strconv.Atoi(f[len(f)-1])
			return inner
		}
	}
	return 0
}

// maxMapped is how many files MappedFiles looks at.
const maxMapped = 16

// MappedFiles returns the files that the process has mapped whose names, where it
// sees them, begin with name; the first few. It looks at the mappings themselves:
// at the path there may be another file by now.
func MappedFiles(pid int, name string) ([]os.FileInfo, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	f, err := os.Open(dir + "/maps")
	if err != nil {
		return nil, fmt.Errorf("list mappings: %w", err)
	}
	defer f.Close()
	var found []os.FileInfo
	seen := make(map[string]bool)
	lines := bufio.NewScanner(io.LimitReader(f, maxMaps))
	for lines.Scan() && len(found) < maxMapped {
		// start-end perms offset device inode path
		fields := strings.SplitN(lines.Text(), " ", 6)
		if len(fields) < 6 {
			continue
		}
		path := strings.TrimSuffix(strings.TrimSpace(fields[5]), " (deleted)")
		file := fields[3] + " " + fields[4]
		if seen[file] || !strings.HasPrefix(filepath.Base(path), name) {
			continue
		}
		seen[file] = true
		if info, err := os.Stat(dir + "/map_files/" + fields[0]); err == nil {
			found = append(found, info)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("list mappings: %w", err)
	}
	return found, nil
}
