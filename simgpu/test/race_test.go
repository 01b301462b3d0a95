// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package test

// raceDetector says that these tests, and with them the simulator, are built
// with the race detector.
const raceDetector = true
