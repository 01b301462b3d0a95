// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import "strings"

// nearest returns the candidate that name was probably meant to be, or nothing
// if none is close: at most a third of the letters off, or an abbreviation.
func nearest(name string, candidates []string) string {
	if len(name) > maxValue {
		return ""
	}
	folded := fold(name)
	best, least := "", 0
	for _, c := range candidates {
		target := fold(c)
		distance := editDistance(folded, target)
		if short, ok := strings.CutPrefix(folded, commonPrefix(target)); ok && len(short) >= 2 &&
			strings.HasPrefix(strings.TrimPrefix(target, commonPrefix(target)), short) {
			distance = 1
		}
		if best == "" || distance < least {
			best, least = c, distance
		}
	}
	if best == "" || least > max(1, (len(best)-len(commonPrefix(fold(best))))/3+1) {
		return ""
	}
	return best
}

// fold maps both spellings of a word, GPUSHARE_COMPUTE_MAX and
// gpushare.io/compute-max, to letters that can be compared.
func fold(s string) string {
	return strings.NewReplacer("_", "-").Replace(strings.ToLower(s))
}

func commonPrefix(folded string) string {
	for _, p := range []string{fold(EnvPrefix), AnnotationPrefix} {
		if strings.HasPrefix(folded, p) {
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
