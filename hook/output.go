// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

// Annotations by which crun is told where the output of hooks goes.
const (
	crunHookOutput = "run.oci.hooks.stdout"
	crunHookErrors = "run.oci.hooks.stderr"
)

// sendHookOutput lets people read why our hook refused a container where the
// low-level runtime is crun, which keeps that to itself. The container's own choice
// of a file does not count: names of the image are in what a hook says, and crun
// would write them, as root, to any file of the host.
func sendHookOutput(annotations object, file string) {
	delete(annotations, crunHookOutput)
	delete(annotations, crunHookErrors)
	if file != "" {
		annotations[crunHookErrors] = file
	}
}
