// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package calibrate

// #cgo CFLAGS: -std=gnu17 -Wall -Wextra
// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "probe.h"
import "C"

import (
	"bufio"
	"fmt"
	"io"
	"unsafe"
)

// HelperArg as the only argument of the daemon's binary, before the path of the
// driver library, makes it the helper of this package.
const HelperArg = "calibrate-helper"

// Helper is the helper process: it reads UUIDs from in, one a line, and for each
// makes a context, writes "ready", and releases it at the next line. An error is
// "error TEXT". It returns when in ends. The driver library is loaded here and
// never in the daemon: what it may do to a process, it does to this one.
func Helper(library string, in io.Reader, out io.Writer) error {
	path := C.CString(library)
	defer C.free(unsafe.Pointer(path))
	text := (*C.char)(C.calloc(1, C.GS_PROBE_ERROR))
	defer C.free(unsafe.Pointer(text))
	lines := bufio.NewScanner(in)
	opened := C.gs_probe_open(path, text) == 0
	for lines.Scan() {
		if !opened {
			fmt.Fprintf(out, "error %s\n", C.GoString(text))
			continue
		}
		uuid, err := ParseUUID(lines.Text())
		if err != nil {
			fmt.Fprintf(out, "error %v\n", err)
			continue
		}
		device := C.gs_probe_hold((*C.uchar)(unsafe.Pointer(&uuid[0])), text)
		if device < 0 {
			fmt.Fprintf(out, "error %s\n", C.GoString(text))
			continue
		}
		fmt.Fprintln(out, "ready")
		lines.Scan()
		C.gs_probe_release(device)
		fmt.Fprintln(out, "released")
	}
	return lines.Err()
}
