// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import "slices"

// behindContainerd returns the program of a hook and its arguments, where containerd
// lets itself be called to call it: for `ctr run --gpus` it enters the hook
// `containerd oci-hook -- nvidia-container-cli configure …`.
func behindContainerd(program string, args []string) (string, []string) {
	at := slices.Index(args, "oci-hook")
	if at < 0 {
		return program, args
	}
	rest := args[at+1:]
	if dashes := slices.Index(rest, "--"); dashes >= 0 {
		rest = rest[dashes+1:]
	}
	if len(rest) == 0 {
		return program, args
	}
	return rest[0], rest
}
