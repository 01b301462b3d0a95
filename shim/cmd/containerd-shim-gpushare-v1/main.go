// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command containerd-shim-gpushare-v1 is containerd's shim for runc that puts GPU
// containers under their limits first.
package main

import (
	"github.com/gpushare/gpushare/internal/version"
	"github.com/gpushare/gpushare/shim"
)

func main() { shim.Main(version.String()) }
