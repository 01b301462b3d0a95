// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package fault

import "strings"

// suggest names the known word that is nearest to a misspelt one, as the end of
// a message; "" if none is near.
func suggest(word string, known []string) string {
	best, distance := "", len(word)/3+1
	for _, k := range known {
		if d := edits(strings.ToLower(word), strings.ToLower(k), distance); d < distance || (d == distance && k < best) {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// edits counts the letters to insert, remove or replace, or says limit + 1.
func edits(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
