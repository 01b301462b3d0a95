// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gpushare/gpushare/simgpu/api"
)

// prototypes returns the parameter types of the functions that a header
// declares with a result type.
func prototypes(path, result string) (map[string][]string, error) {
	text, err := os.ReadFile(path) //nolint:gosec // our own header
	if err != nil {
		return nil, fmt.Errorf("read prototypes: %w", err)
	}
	out := map[string][]string{}
	re := regexp.MustCompile(`(?m)^` + result + ` (cu\w+|nvml\w+)\(([^)]*)\);`)
	for _, m := range re.FindAllStringSubmatch(string(text), -1) {
		var params []string
		for _, p := range strings.Split(m[2], ",") {
			params = append(params, strings.Join(strings.Fields(p), " "))
		}
		out[m[1]] = params
	}
	if len(out) < 400 {
		return nil, fmt.Errorf("read prototypes: only %d in %s", len(out), path)
	}
	return out, nil
}

// opaque types have no size; of the others only the pointers meant here are
// results and not what the caller hands in.
var (
	opaque = []string{
		"void", "char", "CUcheckpointCheckpointArgs", "CUcheckpointLockArgs", "CUcheckpointRestoreArgs",
		"CUcheckpointUnlockArgs", "CUdevResource", "CUmemDecompressParams", "CUmulticastObjectProp",
		"CUstreamBatchMemOpParams", "CUtensorMap",
	}
	handedIn = []string{
		"CUjit_option", "CUlibraryOption", "CUDA_LAUNCH_PARAMS", "CUpointer_attribute", "CUmem_range_attribute",
		"CUarrayMapInfo", "CUexecAffinityParam", "CUctxCreateParams", "CUDA_GRAPH_INSTANTIATE_PARAMS", "CUgraphNodeParams",
	}
	// Calls with arrays of a length that the caller gives, or that hand in more
	// than they take out.
	arrays = regexp.MustCompile(`^cu(GraphGet|GraphNodeGetDepend|GraphicsMap|GraphicsUnmap|GLGetDevices|PointerGetAttributes` +
		`|MemRangeGetAttributes|StreamUpdateCapture|StreamGetCaptureInfo|MemPoolImportPointer|Link|Launch|Module|Library|.*Batch)` +
		`|^nvml.*(Set|Update|Activate|Register|MetricsGet|Discover|Drain|RemoveGpu|ReadWrite)[A-Z_]?`)
	pointer = regexp.MustCompile(`^((?:unsigned |long )*[A-Za-z_]\w*) (\*+)$`)
)

type output struct {
	arg  int
	size string
}

// outputsOf returns which pointers of a call are results of a known size.
func outputsOf(name string, params []string) (out []output) {
	reg := 0
	counted := false // a count came before: what follows is an array
	for _, p := range params {
		arg := reg
		if p != "float" && p != "double" {
			reg++
		}
		m := pointer.FindStringSubmatch(p)
		if m == nil || strings.HasPrefix(p, "const ") {
			continue
		}
		typ, stars := m[1], len(m[2])
		first := arg == 0 || (arg == 1 && strings.HasPrefix(name, "cuModuleGet"))
		switch {
		case slices.Contains(handedIn, typ), stars > 2,
			stars == 1 && (slices.Contains(opaque, typ) || missing(typ)),
			arrays.MatchString(name) && !(first && stars == 1 && handle(typ)),
			counted, stars == 2 && typ == "char":
			continue
		}
		size := "sizeof(" + typ + strings.Repeat(" *", stars-1) + ")"
		out = append(out, output{arg, size})
		if strings.HasPrefix(name, "nvml") && p == "unsigned int *" {
			counted = true
		}
	}
	return out
}

// handle tells the types of which a call with arrays gives back one.
func handle(typ string) bool {
	return slices.Contains([]string{"CUmodule", "CUlibrary", "CUfunction", "CUkernel", "CUlinkState", "CUtexref", "CUsurfref"}, typ)
}

// incomplete structures of the headers, found there.
var incomplete = map[string]bool{}

func missing(typ string) bool { return incomplete[typ] }

// readIncomplete collects the names of structures that a header leaves opaque.
func readIncomplete(path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // our own header
	if err != nil {
		return fmt.Errorf("read types: %w", err)
	}
	for _, m := range regexp.MustCompile(`GS_\w*OPAQUE\((\w+)\)`).FindAllStringSubmatch(string(text), -1) {
		incomplete[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^typedef (?:struct|union) (\w+) (\w+);`).FindAllStringSubmatch(string(text), -1) {
		if !regexp.MustCompile(`(?m)^(?:struct|union) ` + m[1] + ` \{`).Match(text) {
			incomplete[m[2]] = true
		}
	}
	return nil
}

// calls writes what fault injection must know of the calls of both libraries.
func calls(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // build output
		return fmt.Errorf("make directory: %w", err)
	}
	for _, l := range []struct {
		name, result string
		names        []api.Name
	}{{"cuda", "CUresult", api.CUDA()}, {"nvml", "nvmlReturn_t", api.NVML()}} {
		path := "../cuda-intercept/include/" + l.name + "_abi.h"
		protos, err := prototypes(path, l.result)
		if err == nil {
			err = readIncomplete(path)
		}
		if err == nil {
			err = write(filepath.Join(dir, l.name+"_calls.c"), callTable(l.names, protos, l.name+"_abi.h"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func callTable(names []api.Name, protos map[string][]string, head string) []byte {
	var b, outs bytes.Buffer
	count := 0
	fmt.Fprintf(&b, "%s#include \"%s\"\n#include \"fault.h\"\n\n", header, head)
	b.WriteString("const struct sg_call_info sg_calls[] = {\n")
	for _, n := range names {
		params := protos[n.Symbol]
		device := slices.IndexFunc(params, func(p string) bool { return p == "CUdevice" || p == "nvmlDevice_t" })
		first := count
		for _, o := range outputsOf(n.Symbol, params) {
			fmt.Fprintf(&outs, "    {%d, %s},\n", o.arg, o.size)
			count++
		}
		fmt.Fprintf(&b, "    {\"%s\", %d, %d, %d},\n", n.Symbol, device, first, count-first)
	}
	fmt.Fprintf(&b, "};\nconst unsigned sg_calls_count = %d;\n\n", len(names))
	fmt.Fprintf(&b, "const struct sg_call_output sg_call_outputs[] = {\n%s};\n\n", outs.String())
	b.WriteString("/* Set in an installed copy of the library whose driver is to lack names. */\n")
	fmt.Fprintf(&b, "__attribute__((section(\".sg_absent\"), used)) const volatile unsigned char sg_absent[%d] = {0};\n", len(names))
	return b.Bytes()
}

// errorNumbers writes the error numbers of both interfaces as Go.
func errorNumbers() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(header)
	b.WriteString("package api\n")
	for _, s := range []struct{ path, variable, re string }{
		{"cuda_abi.h", "cudaErrors", `(?m)^\s+(CUDA_(?:SUCCESS|ERROR_\w+)) = (\d+),`},
		{"nvml_abi.h", "nvmlErrors", `(?m)^\s+(NVML_(?:SUCCESS|ERROR_\w+)) = (\d+),`},
	} {
		text, err := os.ReadFile("../cuda-intercept/include/" + s.path)
		if err != nil {
			return nil, fmt.Errorf("read error numbers: %w", err)
		}
		all := regexp.MustCompile(s.re).FindAllStringSubmatch(string(text), -1)
		if len(all) < 25 {
			return nil, fmt.Errorf("read error numbers: only %d in %s", len(all), s.path)
		}
		width := 0
		for _, m := range all {
			width = max(width, len(m[1]))
		}
		fmt.Fprintf(&b, "\nvar %s = map[string]int32{\n", s.variable)
		for _, m := range all {
			fmt.Fprintf(&b, "\t%q:%s%s,\n", m[1], strings.Repeat(" ", width-len(m[1])+1), m[2])
		}
		b.WriteString("}\n")
	}
	return b.Bytes(), nil
}
