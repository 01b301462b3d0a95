// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package quantity

import "fmt"

// None is the word for "no ceiling", valid for compute-max alone.
const None = "none"

// wholeMilli is one GPU's time in milli-GPU.
const wholeMilli = 1000

// ParseShare reads a part of a GPU's time and returns it in milli-GPU, 1 to 1000.
// The error is always an *Error.
func ParseShare(text string) (uint32, error) {
	if text == None {
		return 0, newError(text, 0, len(text), "only compute-max can be none", "a percentage like 30%%, or leave it out")
	}
	num, rest, err := splitNumber(text, "30%")
	if err != nil {
		return 0, err
	}
	perUnit := uint64(wholeMilli)
	switch rest {
	case "":
	case "%":
		perUnit = wholeMilli / 100
	case "m":
		return 0, newError(text, len(num.text), 1, "milli is not understood here", "a percentage like 30%%")
	default:
		return 0, newError(text, len(num.text), len(rest), "trailing text", "%s%%", num.text)
	}
	milli, exact, over := num.scaled(perUnit)
	switch {
	case over || milli > wholeMilli || milli == wholeMilli && !exact:
		if rest == "" && num.frac == "" && len(num.whole) <= 2 {
			return 0, newError(text, 0, len(text), "more than one GPU", "did you mean %s%%?", num.whole)
		}
		return 0, newError(text, 0, len(num.text), "more than one GPU", "at most 100%%")
	case milli == 0 && exact:
		return 0, newError(text, 0, len(num.text), "zero is no share", "at least 0.1%%, or leave it out")
	case !exact:
		return 0, newError(text, 0, len(num.text), "finer than 0.1 %", "a multiple of 0.1%%")
	}
	return uint32(milli), nil
}

// ParseCeiling reads a ceiling of GPU time in milli-GPU. The word none is the
// whole GPU, that is no ceiling.
func ParseCeiling(text string) (uint32, error) {
	if text == None {
		return wholeMilli, nil
	}
	return ParseShare(text)
}

// FormatShare writes milli-GPU as a percentage, for example "33.3%".
func FormatShare(milli uint32) string {
	if milli%10 == 0 {
		return fmt.Sprintf("%d%%", milli/10)
	}
	return fmt.Sprintf("%d.%d%%", milli/10, milli%10)
}
