// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wire

// faultNumbers are compared with the C header by TestHeader.
var faultNumbers = map[string]uint64{
	"SG_OP_FAULT_NAMES":  OpFaultNames,
	"SG_OP_FAULT":        OpFault,
	"SG_KIND_FAULTS":     KindFaults,
	"SG_FAULT_NONE":      FaultNone,
	"SG_FAULT_UNTOUCHED": FaultUntouched,
	"SG_FAULT_GARBAGE":   FaultGarbage,
	"SG_FAULT_WRITTEN":   FaultWritten,
	"SG_FAULT_ANY_GPU":   FaultAnyGPU,
}
