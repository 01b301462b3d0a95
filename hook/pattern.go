// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first needed:
// most starts of the wrapper need none, and all of them wait for it.
type pattern func() *regexp.Regexp

func newPattern(text string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

func (p pattern) matches(s string) bool { return p().MatchString(s) }
