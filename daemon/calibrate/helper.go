// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package calibrate

// #cgo CFLAGS: -std=gnu17 -Wall -Wextra -Wno-unused-parameter
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

// Steps of the helper, beside a UUID, which makes a context, and the empty line,
// which gives back all that there is.
const (
	stepContext = "context"
	stepMemory  = "memory %d" // bytes
	stepModule  = "module"
	stepStack   = "stack %d" // bytes beyond the default
	stepGraph   = "graph %d" // nodes
	stepDrop    = "drop"     // what the others have made, modules not
)

// Helper is the helper process: it reads steps from in, one a line, and answers
// each with "ok" and a number, or with "error TEXT". It returns when in ends. The
// driver library is loaded here and never in the daemon: what it may do to a
// process, it does to this one.
func Helper(library string, in io.Reader, out io.Writer) error {
	path := C.CString(library)
	defer C.free(unsafe.Pointer(path))
	text := (*C.char)(C.calloc(1, C.GS_PROBE_ERROR))
	defer C.free(unsafe.Pointer(text))
	lines := bufio.NewScanner(in)
	opened := C.gs_probe_open(path, text) == 0
	device := C.int(-1)
	for lines.Scan() {
		if !opened {
			fmt.Fprintf(out, "error %s\n", C.GoString(text))
			continue
		}
		n, err := step(lines.Text(), &device, text)
		if err != nil {
			fmt.Fprintf(out, "error %v\n", err)
			continue
		}
		fmt.Fprintln(out, "ok", n)
	}
	return lines.Err()
}

// step does one step on the device, or changes the device.
func step(line string, device *C.int, text *C.char) (uint64, error) {
	if line == "" {
		if *device >= 0 {
			C.gs_probe_release(*device)
		}
		*device = -1
		return 0, nil
	}
	if *device < 0 {
		uuid, err := ParseUUID(line)
		if err != nil {
			return 0, err
		}
		if *device = C.gs_probe_hold((*C.uchar)(unsafe.Pointer(&uuid[0])), text); *device < 0 {
			return 0, fmt.Errorf("%s", C.GoString(text))
		}
		return uint64(C.gs_probe_threads(*device)), nil
	}
	r, n := C.int(0), uint64(0)
	switch {
	case line == stepContext:
		r = C.gs_probe_context(*device, text)
	case line == stepModule:
		r = C.gs_probe_module(text)
	case line == stepDrop:
		C.gs_probe_drop()
	case scan(line, stepMemory, &n):
		r = C.gs_probe_memory(C.size_t(n), text)
	case scan(line, stepStack, &n):
		r = C.gs_probe_stack(C.size_t(n), text)
	case scan(line, stepGraph, &n):
		r = C.gs_probe_graph(C.int(n), text)
	default:
		return 0, fmt.Errorf("no such step: %.40q", line)
	}
	if r != 0 {
		return 0, fmt.Errorf("%s", C.GoString(text))
	}
	return 0, nil
}

func scan(line, format string, n *uint64) bool {
	got, err := fmt.Sscanf(line, format, n)
	return got == 1 && err == nil
}
