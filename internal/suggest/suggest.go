// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package suggest finds what a misspelt word was meant to be.
package suggest

import "strings"

// maxName bounds the length of a name that is compared, in bytes: the time grows
// with its square.
const maxName = 128

// Nearest returns the candidate that name was probably meant to be, or nothing
// if none is close: at most a third of the letters off, or an abbreviation. A
// prefix that many candidates have is not counted among the letters. Case, and the
// difference of - and _, do not matter.
func Nearest(name string, candidates []string, prefixes ...string) string {
	if len(name) > maxName {
		return ""
	}
	folded := fold(name)
	best, least := "", 0
	for _, c := range candidates {
		target := fold(c)
		distance := editDistance(folded, target)
		common := commonPrefix(target, prefixes)
		if short, ok := strings.CutPrefix(folded, common); ok && len(short) >= 2 &&
			strings.HasPrefix(strings.TrimPrefix(target, common), short) {
			distance = 1
		}
		if best == "" || distance < least {
			best, least = c, distance
		}
	}
	if best == "" || least > max(1, (len(best)-len(commonPrefix(fold(best), prefixes)))/3+1) {
		return ""
	}
	return best
}

// fold maps the spellings of a word, GPUSHARE_COMPUTE_MAX, compute_max and
// compute-max, to letters that can be compared.
func fold(s string) string {
	return strings.ReplaceAll(strings.ToLower(s), "_", "-")
}

func commonPrefix(folded string, prefixes []string) string {
	for _, p := range prefixes {
		if p = fold(p); strings.HasPrefix(folded, p) {
			return p
		}
	}
	return ""
}

// editDistance counts the letters to insert, delete or replace.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
