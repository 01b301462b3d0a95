// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package quantity

import (
	"errors"
	"strings"
)

// ParseHostMemory reads an amount of the host's memory, in bytes. It is written as
// device memory is, but has no percentage: nobody would know of what. Zero with a
// unit is an amount too: it is how the memory is taken back. The error is always an
// *Error.
func ParseHostMemory(text string, mode Mode) (uint64, error) {
	num, rest, err := splitNumber(text, "8Gi")
	if err != nil {
		return 0, err
	}
	none := strings.Trim(num.whole+num.frac, "0") == ""
	switch {
	case rest == "" && none:
		return 0, newError(text, len(num.text), 0, "the unit is missing", "0B for none")
	case rest == "":
		return 0, newError(text, len(num.text), 0, "the unit is missing", "%sGi or %sMi", num.text, num.text)
	case rest == "%":
		return 0, newError(text, 0, len(text), "host memory is not counted in parts of anything", "bytes like 8Gi")
	}
	read := text
	if none { // the unit must be one, all the same
		read = "1" + rest
	}
	m, err := ParseMemory(read, mode)
	var e *Error
	switch {
	case none && err != nil:
		return 0, newError(text, len(num.text), len(rest), "unknown unit", "0B for none")
	case none:
		return 0, nil
	case errors.As(err, &e) && e.Reason == tooLarge:
		return 0, newError(text, 0, len(num.text), tooLarge, "less than the host has, for example 64Gi")
	}
	return m.bytes, err
}
