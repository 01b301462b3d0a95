// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command gen writes the shared-memory layout of package region as a C header.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"os"
	"reflect"
	"strings"
	"unicode"

	"github.com/gpushare/gpushare/limiter/region"
)

func main() {
	out := flag.String("out", "region.h", "header to write")
	flag.Parse()
	if err := os.WriteFile(*out, Header(), 0o644); err != nil {
		log.Fatal(err)
	}
}

// Header returns the C header for the layout.
func Header() []byte {
	var b bytes.Buffer
	b.WriteString("// SPDX-FileCopyrightText: The gpushare authors\n" +
		"// SPDX-License-Identifier: Apache-2.0\n" +
		"// Code generated from limiter/region by its gen command; DO NOT EDIT.\n\n" +
		"#ifndef GS_REGION_H\n#define GS_REGION_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n")
	for _, c := range []struct {
		name  string
		value uint64
	}{
		{"VERSION", region.Version},
		{"LIMITS_MAGIC", region.LimitsMagic},
		{"LEDGER_MAGIC", region.LedgerMagic},
		{"DOORBELL_MAGIC", region.DoorbellMagic},
		{"MAX_GPUS", region.MaxGPUs},
		{"LIMITS_SIZE", region.LimitsSize},
		{"LEDGER_HEADER_SIZE", region.LedgerHeaderSize},
		{"SLOT_SIZE", region.SlotSize},
		{"SLOT_COUNT", region.SlotCount},
		{"LOCK_BASE", region.LockBase},
		{"SHARE_COUNT", region.ShareCount},
		{"SHARE_SIZE", region.ShareSize},
		{"SHARE_LOCK_BASE", region.ShareLockBase},
		{"SHARE_FREE", region.ShareFree},
		{"SHARE_USED", region.ShareUsed},
		{"SHARE_MOVING", region.ShareMoving},
		{"SHARE_STANDBY", region.ShareStandby},
		{"SHARE_TAGGED", region.ShareTagged},
		{"SHARE_ANY_FILE", region.ShareAnyFile},
		{"SHARE_OBJECT", region.ShareObject},
		{"HOLDER_COUNT", region.HolderCount},
		{"TAG_GRACE", region.TagGrace},
		{"GUESS_PENDING", region.GuessPending},
		{"MILLI_GPU", region.MilliGPU},
		{"CHARGE_GRANULE", region.ChargeGranule},
		{"SWEEP_INTERVAL", region.SweepInterval},
		{"SWEEP_MAX", region.SweepMax},
		{"REAP_GRACE", region.ReapGrace},
		{"HOLD_MAX", region.HoldMax},
		{"BURST_NS", region.BurstNs},
		{"DEBT_MAX", region.DebtMax},
		{"SLOT_FREE", region.SlotFree},
		{"SLOT_USED", region.SlotUsed},
		{"DOORBELL_PRICE", region.DoorbellPrice},
		{"DOORBELL_DONE", region.DoorbellDone},
		{"DOORBELL_SETTLE", region.DoorbellSettle},
		{"SETTLE_RING", region.SettleRing},
	} {
		fmt.Fprintf(&b, "#define GS_%s %#xULL\n", c.name, c.value)
	}
	for _, t := range []any{
		region.LimitsHeader{}, region.GPULimit{}, region.LimitsPage{},
		region.GPUAccount{}, region.LedgerHeader{}, region.Slot{}, region.Share{}, region.Doorbell{},
	} {
		writeStruct(&b, reflect.TypeOf(t))
	}
	b.WriteString("\n#endif\n")
	return b.Bytes()
}

func writeStruct(b *bytes.Buffer, t reflect.Type) {
	fmt.Fprintf(b, "\nstruct %s {\n", cName(t.Name()))
	pads := 0
	for i := range t.NumField() {
		f := t.Field(i)
		name := snake(f.Name)
		if f.Name == "_" {
			name = fmt.Sprintf("pad%d", pads)
			pads++
		}
		if f.Type.Kind() == reflect.Array {
			fmt.Fprintf(b, "\t%s %s[%d];\n", cType(f.Type.Elem()), name, f.Type.Len())
			continue
		}
		fmt.Fprintf(b, "\t%s %s;\n", cType(f.Type), name)
	}
	b.WriteString("};\n")
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name != "_" {
			fmt.Fprintf(b, "_Static_assert(offsetof(struct %s, %s) == %d, \"layout\");\n",
				cName(t.Name()), snake(f.Name), f.Offset)
		}
	}
	fmt.Fprintf(b, "_Static_assert(sizeof(struct %s) == %d, \"layout\");\n", cName(t.Name()), t.Size())
}

func cType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Uint8:
		return "uint8_t"
	case reflect.Uint16:
		return "uint16_t"
	case reflect.Uint32:
		return "uint32_t"
	case reflect.Uint64:
		return "uint64_t"
	case reflect.Struct:
		return "struct " + cName(t.Name())
	}
	panic("no C type for " + t.String())
}

func cName(name string) string { return "gs_" + snake(name) }

// snake turns a Go field name into a C one: MemoryLimit, GPUCount and PaidNs
// become memory_limit, gpu_count and paid_ns.
func snake(name string) string {
	var b strings.Builder
	rs := []rune(name)
	for i, r := range rs {
		boundary := i > 0 && unicode.IsUpper(r) &&
			(!unicode.IsUpper(rs[i-1]) || i+1 < len(rs) && unicode.IsLower(rs[i+1]))
		if boundary {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
