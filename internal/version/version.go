// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package version holds the one version number of everything that is built
// from this repository.
package version

import (
	_ "embed"
	"strings"
)

//go:embed VERSION
var text string

// String is the version, for example "0.1.0".
func String() string { return strings.TrimSpace(text) }
