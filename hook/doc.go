// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package hook edits OCI runtime specs: it says whether a container is a GPU
// container and what share it asks for, and turns the spec of one that was
// granted a share into a spec that can reach the GPU only through gpushare.
//
// It owns three rules: what a GPU container is (reasons.go), which of the
// driver's files and device nodes may go in (allow.go), and that everything it
// does not interpret is kept, at every level. It refuses what it cannot limit
// (refuse.go). It does no I/O and keeps no state: whatever it must know about
// the host is handed in by package node, so that the wrapper, the shim and the
// tests all use the same editor.
//
// Editing first takes out everything that an earlier edit, or another vendor's
// runtime, put in. So an edited spec may be edited again, for another claim,
// with the result that the original would have given.
package hook
