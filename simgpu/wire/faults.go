// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wire

// What a client asks about calls that are to fail, and what it is told.
const (
	OpFaultNames = 40
	OpFault      = 41

	KindFaults = 4

	FaultNone      = 0
	FaultUntouched = 1
	FaultGarbage   = 2
	FaultWritten   = 3
	FaultAnyGPU    = 0xffffffff
)
