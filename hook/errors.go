// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"fmt"

	"github.com/gpushare/gpushare/hook/inject"
)

// Codes of refusals; each is one searchable word at the end of a message.
const (
	CodeSpec       = "GS-SPEC"         // config.json cannot be read as one spec
	CodeUnknown    = "GS-ANN"          // a word under our prefix that we do not know
	CodeConflict   = "GS-ASK"          // a request that contradicts itself
	CodeUnit       = "GS-UNIT"         // an empty or overlong value
	CodeNoShare    = "GS-NO-SHARE"     // a GPU container that asks for no share
	CodePrivileged = "GS-PRIVILEGED"   // a privileged GPU container
	CodeCapability = "GS-CAPABILITY"   // a capability that could undo the limit
	CodeNamespace  = "GS-HOST-NS"      // a namespace shared with the host
	CodeBind       = "GS-BIND"         // a mount that would open a way past us
	CodeLoader     = "GS-LOADER"       // a loader variable that would go past our library
	CodeDriver     = "GS-DRIVER"       // the node's driver spec lacks what we need
	CodeImage      = inject.CodeImage  // an image that cannot use our libraries
	CodeCompat     = inject.CodeCompat // an image with its own libcuda that policy refuses
	CodeHook       = inject.CodeHook   // the createContainer hook cannot work here
	CodeRestore    = "GS-RESTORE"      // a checkpoint of a GPU container
	CodeConfig     = "GS-CONFIG"       // config.toml cannot be used
	CodeRuntime    = "GS-RUNTIME"      // no low-level runtime to hand over to
	CodeUsage      = "GS-USAGE"        // arguments that cannot be read safely
	CodeInternal   = "GS-INTERNAL"     // a mistake of ours
)

// Refusal is returned when a container must not be started. Its text is one
// line: what happened, why, what to do, and the code.
type Refusal struct {
	Code    string
	Message string
}

func (r *Refusal) Error() string { return r.Message + "  [" + r.Code + "]" }

func refuse(code, format string, args ...any) error {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}
