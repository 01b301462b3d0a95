// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command coverage adds up which lines of cuda-intercept/src were run, over all
// programs that were built to count them, and prints a table. It needs gcov.
//
//	go run ./tests/coverage [-lines] [-record FILE] DIRECTORY…
//
// The directories hold what gcc and the programs wrote (.gcno, .gcda).
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	lines := flag.Bool("lines", false, "list the lines that were not run")
	record := flag.String("record", "", "write the table to this file, too")
	flag.Parse()
	if err := run(*lines, *record, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

// file is what became of the lines of one source.
type file struct {
	name string
	runs map[int]uint64 // by line; only those with code
	text map[int]string
}

func (f *file) run() (n int) {
	for _, c := range f.runs {
		if c > 0 {
			n++
		}
	}
	return n
}

func run(lines bool, record string, dirs []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	source := filepath.Join(root, "cuda-intercept/src") + "/"
	files := map[string]*file{}
	for _, dir := range dirs {
		notes, err := find(filepath.Join(root, strings.TrimPrefix(dir, root)))
		if err != nil {
			return err
		}
		for _, note := range notes {
			if err := read(root, source, note, files); err != nil {
				return err
			}
		}
	}
	if len(files) == 0 {
		return errors.New("nothing was counted")
	}
	all := slices.SortedFunc(maps.Values(files), func(a, b *file) int { return cmp.Compare(a.name, b.name) })
	write(os.Stdout, all)
	if lines {
		list(os.Stdout, all)
	}
	if record == "" {
		return nil
	}
	f, err := os.Create(record) //nolint:gosec // named by the caller
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	fmt.Fprintf(f, "# Lines of the interception libraries that the tests run, %s\n\n`make -C cuda-intercept coverage`: gcc -O0 over `tests/intercept` and the tests of the\nlaunch gate. A process that is killed counts nothing.\n\n", time.Now().Format("2006-01-02"))
	write(f, all)
	return f.Close()
}

// find lists the notes that gcc wrote.
func find(dir string) (notes []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		// Without those of the test programs' own sources.
		if own, _ := filepath.Match("*-test[0-9]*.gcno", filepath.Base(path)); err == nil && strings.HasSuffix(path, ".gcno") && !own {
			notes = append(notes, path)
		}
		return err
	})
	return notes, err
}

// read adds one object's counts. The text of gcov has a line "count:number:source" for
// each line of a source, "-" without code and "#####" or "=====" if it never ran.
func read(root, source, note string, files map[string]*file) error {
	cmd := exec.Command("gcov", "--stdout", "--all-blocks", note) //nolint:gosec // gcc's own files
	dir := filepath.Join(root, "cuda-intercept")                  // where the compiler ran: gcov looks for sources from there
	if filepath.Base(filepath.Dir(note)) == "gate" {
		dir = filepath.Join(dir, "test/gate")
	}
	cmd.Dir = dir
	var msg bytes.Buffer
	cmd.Stderr = &msg
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		return fmt.Errorf("gcov %s: %w: %s", note, err, msg.Bytes())
	}
	if err != nil { // counts of a program that was killed while it wrote them
		fmt.Fprintf(os.Stderr, "coverage: left out: %s", msg.Bytes())
	}
	var f *file
	for _, line := range strings.Split(string(out), "\n") {
		part := strings.SplitN(line, ":", 3)
		if len(part) < 3 {
			continue
		}
		number, _ := strconv.Atoi(strings.TrimSpace(part[1]))
		if number == 0 {
			if path, is := strings.CutPrefix(part[2], "Source:"); is {
				f = of(dir, source, path, files)
			}
			continue
		}
		count := strings.TrimRight(strings.TrimSpace(part[0]), "*")
		if f == nil || count == "-" {
			continue
		}
		n, err := strconv.ParseUint(count, 10, 64)
		if err != nil && !strings.HasPrefix(count, "#") && !strings.HasPrefix(count, "=") {
			continue // of a block
		}
		f.runs[number] += n
		f.text[number] = part[2]
	}
	return nil
}

// of is the file of that path, nil if it is not ours to count.
func of(dir, source, path string, files map[string]*file) *file {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	name, is := strings.CutPrefix(filepath.Clean(path), source)
	if !is {
		return nil
	}
	if files[name] == nil {
		files[name] = &file{name: name, runs: map[int]uint64{}, text: map[int]string{}}
	}
	return files[name]
}

func write(w io.Writer, all []*file) {
	fmt.Fprint(w, "| file | lines | run | % |\n|---|---:|---:|---:|\n")
	sum, ran := 0, 0
	for _, f := range all {
		fmt.Fprintf(w, "| `%s` | %d | %d | %.1f |\n", f.name, len(f.runs), f.run(), percent(f.run(), len(f.runs)))
		sum += len(f.runs)
		ran += f.run()
	}
	fmt.Fprintf(w, "| all | %d | %d | %.1f |\n", sum, ran, percent(ran, sum))
}

func list(w io.Writer, all []*file) {
	for _, f := range all {
		for _, n := range slices.Sorted(maps.Keys(f.runs)) {
			if f.runs[n] == 0 {
				fmt.Fprintf(w, "%s:%d:%s\n", f.name, n, f.text[n])
			}
		}
	}
}

func percent(a, b int) float64 {
	if b == 0 {
		return 100
	}
	return 100 * float64(a) / float64(b)
}
