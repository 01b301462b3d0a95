// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package quantity

import (
	"math/big"
	"strings"
)

// number is the digits of a quantity before they meet their unit. Kept as text,
// so that no value is ever rounded through a float.
type number struct {
	text        string // as written
	whole, frac string // digits before and after the point
}

const maxDigits = 20 // as many as a uint64 can have

// splitNumber cuts text into its number and what follows. example is what to
// suggest when there is no number at all.
func splitNumber(text, example string) (number, string, error) {
	if text == "" {
		return number{}, "", newError(text, 0, 0, "empty", "%s", example)
	}
	switch text[0] {
	case '-':
		return number{}, "", newError(text, 0, 1, "negative", "%s", example)
	case '+':
		return number{}, "", newError(text, 0, 1, "no sign is wanted", "%s", example)
	}
	whole := leadingDigits(text)
	if whole == "" {
		return number{}, "", newError(text, 0, len(text), "not a number", "%s", example)
	}
	rest := text[len(whole):]
	if len(whole) > 1 && whole[0] == '0' {
		return number{}, "", newError(text, 0, len(whole), "leading zero", "%s%s", orZero(strings.TrimLeft(whole, "0")), rest)
	}
	num := number{text: whole, whole: whole}
	if strings.HasPrefix(rest, ".") {
		num.frac = leadingDigits(rest[1:])
		if num.frac == "" {
			return number{}, "", newError(text, len(whole), 1, "no digits after the point", "%s%s", whole, rest[1:])
		}
		num.text = text[:len(whole)+1+len(num.frac)]
		rest = text[len(num.text):]
	}
	if len(num.whole) > maxDigits || len(num.frac) > maxDigits {
		return number{}, "", newError(text, 0, len(num.text), "too many digits", "%s", example)
	}
	if err := checkTail(text, num, rest); err != nil {
		return number{}, "", err
	}
	return num, rest, nil
}

// checkTail refuses what can follow a number in other notations but not here,
// each with its own reason.
func checkTail(text string, num number, rest string) error {
	if rest == "" {
		return nil
	}
	at := len(num.text)
	switch {
	case strings.TrimSpace(rest) != rest:
		return newError(text, at, len(rest)-len(strings.TrimLeft(rest, " \t")), "blank inside", "%s", strings.Join(strings.Fields(text), ""))
	case rest[0] == '.' || rest[0] == ',':
		return newError(text, at, 1, "one point at most", "%s%s", num.text, strings.TrimLeft(rest, ".,0123456789"))
	case len(rest) > 1 && (rest[0] == 'e' || rest[0] == 'E') && strings.ContainsAny(rest[1:2], "+-0123456789"):
		return newError(text, at, len(rest), "no exponents", "the plain number with a unit")
	case num.text == "0" && (rest[0] == 'x' || rest[0] == 'X'):
		return newError(text, 0, len(text), "not a decimal number", "the plain number with a unit")
	}
	return nil
}

func leadingDigits(s string) string {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i]
}

func orZero(s string) string {
	if s == "" {
		return "0"
	}
	return s
}

// scaled returns the number times unit, rounded down, whether that is exact, and
// whether it overflows.
func (n number) scaled(unit uint64) (value uint64, exact, overflow bool) {
	v, ok := new(big.Int).SetString(n.whole+n.frac, 10)
	if !ok {
		return 0, false, true
	}
	v.Mul(v, new(big.Int).SetUint64(unit))
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(n.frac))), nil)
	rem := new(big.Int)
	v.QuoRem(v, scale, rem)
	return v.Uint64(), rem.Sign() == 0, !v.IsUint64()
}
