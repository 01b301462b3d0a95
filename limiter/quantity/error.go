// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package quantity

import (
	"fmt"
	"strings"
)

// Code is the searchable code of every error of this package.
const Code = "GS-UNIT"

// Error is a quantity that was refused.
type Error struct {
	Text       string // as written, at most 64 bytes of it
	At, Len    int    // the bad part, in bytes of Text
	Reason     string
	Suggestion string // what to write instead
}

// shown bounds what of a hostile text is repeated.
const shown = 64

func newError(text string, at, n int, reason, format string, args ...any) *Error {
	suggestion := fmt.Sprintf(format, args...)
	if len(text) > shown {
		text = text[:shown] + "…"
	}
	if len(suggestion) > 2*shown || strings.ContainsFunc(suggestion, unprintable) {
		suggestion = "a plain number with a unit"
	}
	at = min(at, len(text))
	n = min(n, len(text)-at)
	return &Error{Text: text, At: at, Len: n, Reason: reason, Suggestion: suggestion}
}

// unprintable reports what may not reach a terminal or a log line: suggestions
// repeat parts of a text that a tenant wrote.
func unprintable(r rune) bool { return r < ' ' || r > '~' }

// Error says on one line what was written, what is wrong and what to write.
func (e *Error) Error() string {
	verb := "write "
	if strings.HasPrefix(e.Suggestion, "did you mean") {
		verb = ""
	}
	return fmt.Sprintf("%q: %s; %s%s  [%s]", e.Text, e.Reason, verb, e.Suggestion, Code)
}

// Caret returns two lines for a terminal: the text, and a mark under the bad part.
// Control characters are shown as blanks.
func (e *Error) Caret() string {
	clean := strings.Map(func(r rune) rune {
		if unprintable(r) {
			return ' '
		}
		return r
	}, e.Text)
	return clean + "\n" + strings.Repeat(" ", e.At) + "^" + strings.Repeat("~", max(e.Len-1, 0))
}
