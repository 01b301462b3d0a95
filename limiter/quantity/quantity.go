// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package quantity reads and writes the quantities of a share: an amount of
// device memory, one of the host's memory and a part of a GPU's time.
//
// The grammar is strict, because every lenient reader among GPU-sharing systems
// has turned a typing mistake into an unlimited container. Nothing is guessed:
// what is not understood is an *Error that names the bad part and what to write
// instead.
//
//	memory  = number unit | percent
//	unit    = "Ki" | "Mi" | "Gi" | "Ti" [ "B" ]      powers of 1024, any case
//	        | "B"                                    whole bytes
//	percent = number "%"                             of the GPU's memory, 0 < p ≤ 100
//	host    = number unit                            0 is none
//	share   = number "%"                             0.1 % steps, 0 < p ≤ 100
//	        | number                                 a fraction, 0 < x ≤ 1
//	number  = digits [ "." digits ]                  no sign, no exponent, no leading zero
//
// On the command line (Docker mode) the spellings k, kb, m… of docker are read
// with docker's binary meaning for g, t, gb, tb, kb and mb; a caller must echo
// the value that was understood.
package quantity

import (
	"fmt"
	"math/bits"
	"strings"
)

// Mode says where the text was written.
type Mode int

const (
	// Strict is for annotations, environment variables, configuration and the API.
	Strict Mode = iota
	// Docker is for the command line, where docker's own sizes are understood too.
	Docker
)

// Memory is an amount of device memory: bytes, or a part of a GPU's memory.
type Memory struct {
	bytes uint64
	parts uint64 // of partsWhole; 0 if bytes is meant
}

// tooLarge is the reason of an amount that no machine has.
const tooLarge = "too large"

// partsWhole is 100 % in the steps in which a percentage of memory is kept.
const partsWhole = 100_000

// Bytes returns the amount in bytes on a GPU that has total bytes. A percentage
// is rounded down to the byte.
func (m Memory) Bytes(total uint64) uint64 {
	if m.parts == 0 {
		return m.bytes
	}
	hi, lo := bits.Mul64(total, m.parts)
	n, _ := bits.Div64(hi, lo, partsWhole)
	return n
}

// IsPercent reports whether the amount depends on the GPU.
func (m Memory) IsPercent() bool { return m.parts != 0 }

var binaryUnits = map[string]uint{"ki": 10, "mi": 20, "gi": 30, "ti": 40}

// dockerUnits are docker's spellings, all binary.
var dockerUnits = map[string]uint{"k": 10, "kb": 10, "mb": 20, "g": 30, "gb": 30, "t": 40, "tb": 40}

// ParseMemory reads an amount of memory. The error is always an *Error.
func ParseMemory(text string, mode Mode) (Memory, error) {
	num, rest, err := splitNumber(text, "8Gi")
	if err != nil {
		return Memory{}, err
	}
	unit := strings.ToLower(rest)
	switch {
	case rest == "":
		return Memory{}, newError(text, len(num.text), 0, "the unit is missing", "%sGi, %sMi or a percentage like 33%%", num.text, num.text)
	case rest == "%":
		return parsePercentMemory(text, num)
	case rest == "B" || rest == "b":
		if num.frac != "" {
			return Memory{}, newError(text, len(num.whole), len(num.frac)+1, "a fraction of a byte", "%sB", num.whole)
		}
		return finishMemory(text, num, 0)
	}
	if shift, ok := binaryUnits[strings.TrimSuffix(unit, "b")]; ok && strings.HasSuffix(strings.TrimSuffix(unit, "b"), "i") {
		return finishMemory(text, num, shift)
	}
	return parseForeignUnit(text, num, rest, mode)
}

// parseForeignUnit handles units of other tools: understood on the command line
// where docker gives them one meaning, refused with the candidates elsewhere.
func parseForeignUnit(text string, num number, rest string, mode Mode) (Memory, error) {
	at, n := len(num.text), len(rest)
	unit := strings.ToLower(rest)
	switch {
	case len(rest) == 2 && rest[1] == 'b' && strings.ContainsRune("KMGT", rune(rest[0])):
		return Memory{}, newError(text, at, n, "small b means bits", "%s%ci", num.text, rest[0])
	case unit == "m":
		return Memory{}, newError(text, at, n, "m is milli in Kubernetes and mebi in docker", "%sMi", num.text)
	}
	shift, ok := dockerUnits[unit]
	if !ok {
		return Memory{}, newError(text, at, n, "unknown unit", "%sGi or %sMi", num.text, num.text)
	}
	if mode == Docker {
		return finishMemory(text, num, shift)
	}
	letter := strings.ToUpper(rest[:1])
	if letter == "K" {
		letter = "k"
	}
	binary := strings.ToUpper(rest[:1]) + "i"
	decimal := decimalBytes(num, shift/10)
	if decimal == "" {
		return Memory{}, newError(text, at, n, letter+" is binary in docker and decimal in Kubernetes", "%s%s", num.text, binary)
	}
	return Memory{}, newError(text, at, n, letter+" is binary in docker and decimal in Kubernetes", "%s%s or %sB", num.text, binary, decimal)
}

func parsePercentMemory(text string, num number) (Memory, error) {
	parts, exact, over := num.scaled(partsWhole / 100)
	switch {
	case over || parts > partsWhole:
		return Memory{}, newError(text, 0, len(num.text), "more than the whole GPU", "100%%")
	case parts == 0 && exact:
		return Memory{}, zeroError(text, num)
	case !exact:
		return Memory{}, newError(text, 0, len(num.text), "finer than 0.001 %", "a whole percentage, or bytes like 512Mi")
	}
	return Memory{parts: parts}, nil
}

func finishMemory(text string, num number, shift uint) (Memory, error) {
	n, _, over := num.scaled(1 << shift)
	if over {
		return Memory{}, newError(text, 0, len(num.text), tooLarge, "at most the GPU's own memory, for example 100%%")
	}
	if n == 0 {
		return Memory{}, zeroError(text, num)
	}
	return Memory{bytes: n}, nil
}

func zeroError(text string, num number) *Error {
	return newError(text, 0, len(num.text), "zero is no share", "the smallest amount that the program needs, for example 1Gi")
}

// decimalBytes writes number·1000^power as an integer of bytes, or "" if it is
// none or too large.
func decimalBytes(num number, power uint) string {
	scale := uint64(1)
	for range power {
		scale *= 1000
	}
	n, exact, over := num.scaled(scale)
	if over || !exact {
		return ""
	}
	return fmt.Sprint(n)
}

// FormatBytes writes an amount for people: binary units, three significant
// digits, for example "7.91 GiB"; an exact number of a unit has no fraction.
func FormatBytes(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for i < len(units)-1 && n>>(10*(i+1)) != 0 {
		i++
	}
	whole := n >> (10 * i)
	if i == 0 || n == whole<<(10*i) {
		return fmt.Sprintf("%d %s", whole, units[i])
	}
	v := float64(n) / float64(uint64(1)<<(10*i))
	switch {
	case v < 9.995:
		return fmt.Sprintf("%.2f %s", v, units[i])
	case v < 99.95:
		return fmt.Sprintf("%.1f %s", v, units[i])
	default:
		return fmt.Sprintf("%.0f %s", v, units[i])
	}
}
