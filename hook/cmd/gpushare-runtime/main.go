// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command gpushare-runtime is an OCI runtime that puts GPU containers under
// their limits and hands everything on to runc or crun.
package main

import (
	"os"

	"github.com/gpushare/gpushare/hook/wrapper"
	"github.com/gpushare/gpushare/internal/version"
)

func main() {
	r := &wrapper.Runtime{Version: version.String(), Stdout: os.Stdout, Stderr: os.Stderr}
	os.Exit(r.Main(os.Args[1:]))
}
