// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// printer writes the demo's text; bold and colour only to a terminal that wants them.
type printer struct {
	w         io.Writer
	colour    bool
	step      int
	good, bad int
}

func newPrinter(f *os.File) *printer {
	info, err := f.Stat()
	tty := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &printer{w: f, colour: tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (p *printer) paint(code, s string) string {
	if !p.colour {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *printer) line(s string)          { fmt.Fprintln(p.w, s) }
func (p *printer) note(s string)          { p.line(p.paint("2", s)) }
func (p *printer) title(name, say string) { p.line(p.paint("1", name)); p.line(p.paint("33", say)) }

func (p *printer) heading(s string) {
	p.step++
	p.line("")
	p.line(p.paint("1", fmt.Sprintf("%d. %s", p.step, s)))
}

// command shows what is run, as a person would type it.
func (p *printer) command(s string) { p.line("   " + p.paint("36", "$ "+s)) }

// output shows what a program printed.
func (p *printer) output(s string) {
	for l := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
		p.line(strings.TrimRight("   "+l, " "))
	}
}

// check is one point that the demo makes.
func (p *printer) check(ok bool, format string, args ...any) {
	mark := p.paint("32", "ok    ")
	if ok {
		p.good++
	} else {
		p.bad++
		mark = p.paint("31", "NOT OK")
	}
	p.line("   " + mark + " " + fmt.Sprintf(format, args...))
}

// comma writes a number with separators.
func comma(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
