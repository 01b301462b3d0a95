// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package symbols reads what a shared library exports.
package symbols

import (
	"debug/elf"
	"fmt"
)

// Exported returns the names of the functions that the library at path defines
// for others, and with data those of its variables.
func Exported(path string, data bool) ([]string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open library: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	all, err := f.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("read symbols of %s: %w", path, err)
	}
	var names []string
	for _, s := range all {
		kind := elf.ST_TYPE(s.Info)
		if s.Section != elf.SHN_UNDEF && (kind == elf.STT_FUNC || data && kind == elf.STT_OBJECT) {
			names = append(names, s.Name)
		}
	}
	return names, nil
}
