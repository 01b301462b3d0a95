// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package inject

// raceDetector says whether the tests are built with Go's race detector.
const raceDetector = false
