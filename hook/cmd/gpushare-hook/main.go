// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command gpushare-hook is the last createContainer hook of a GPU container: it
// puts gpushare's libraries over copies that the image ships itself.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/gpushare/gpushare/hook/inject"
	"github.com/gpushare/gpushare/internal/version"
)

const usage = inject.Program + ` is called by the low-level OCI runtime, as the last createContainer hook of a
GPU container; gpushare writes its arguments into the container's config.json.
There is nothing to call it for by hand, but for --version.
`

func main() {
	// Before anything else: nothing of the container's may steer what follows.
	os.Clearenv()
	if err := os.Chdir("/"); err != nil {
		fail(err)
	}
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "--version":
			fmt.Printf("%s %s\n", inject.Program, version.String())
			return
		case "--help", "-h":
			fmt.Print(usage)
			return
		}
	}
	o, err := inject.Parse(os.Args[1:])
	if err != nil {
		fail(err)
	}
	// Its life is too short for a garbage collector, its reads are bounded.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(128 << 20)
	// The state that the runtime writes is not needed; read so that it can end.
	_, _ = io.Copy(io.Discard, io.LimitReader(os.Stdin, 1<<20))
	if err := guarded(o); err != nil {
		fail(err)
	}
}

// guarded turns a panic into a refusal of one line.
func guarded(o *inject.Options) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &inject.Refusal{Code: inject.CodeHook, Message: fmt.Sprintf("GPU container refused: %s broke down: %v: please report this", inject.Program, p)}
		}
	}()
	return inject.Run(o)
}

// fail ends the hook, and with it the creation of the container. Names of the
// image may be in the text, so it is made one line of printable characters.
func fail(err error) {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return '?'
		}
		return r
	}, err.Error())
	fmt.Fprintln(os.Stderr, text)
	os.Exit(1)
}
