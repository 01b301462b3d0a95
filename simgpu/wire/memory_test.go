// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "unsafe"

// memoryNumbers are compared with the C header by TestHeader.
var memoryNumbers = map[string]uint64{
	"SG_OP_RESIZE":                   OpResize,
	"SG_OP_SHARE":                    OpShare,
	"SG_OP_EXPORT":                   OpExport,
	"SG_OP_KEY":                      OpKey,
	"SG_OP_IMPORT":                   OpImport,
	"SG_KEY_BYTES":                   KeyBytes,
	"SG_NOTE_BYTES":                  NoteBytes,
	"SG_USE_LINEAR":                  UseLinear,
	"SG_USE_POOL":                    UsePool,
	"SG_USE_PHYSICAL":                UsePhysical,
	"SG_USE_ARRAY":                   UseArray,
	"SG_USE_MANAGED":                 UseManaged,
	"SG_USE_MODULE":                  UseModule,
	"SG_USE_GROWTH":                  UseGrowth,
	"SG_USE_GRAPH":                   UseGraph,
	"SG_USE_TOKEN":                   UseToken,
	"SG_USE_CONTEXT":                 UseContext,
	"SG_USES":                        Uses,
	"sizeof(struct sg_memory_rules)": uint64(unsafe.Sizeof(MemoryRules{})),
	"__builtin_offsetof(struct sg_memory_rules, multicast)": uint64(unsafe.Offsetof(MemoryRules{}.Multicast)),
	"__builtin_offsetof(struct sg_gpu, memory)":             uint64(unsafe.Offsetof(GPU{}.Memory)),
}
