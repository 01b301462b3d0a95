// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the first version of the daemon's API: plain structures that
// travel as JSON over HTTP on a unix socket that only root may open, and a small
// client.
//
//	POST   /v1/claims            ClaimRequest  → Claim
//	DELETE /v1/claims/{id}                     → 204
//	GET    /v1/containers                      → ContainerList
//	GET    /v1/containers/{ref}                → Container
//	PATCH  /v1/containers/{ref}  ResizeRequest → Resize
//	GET    /v1/daemon                          → Daemon
//	GET    /v1/health                          → 204: it makes progress
//	GET    /v1/events                          → Event, one a line
//
// Events take ?since=SEQ, ?follow=1 and ?container=REF.
//
// A ref is a container's id, a prefix of it that only one container has, or its
// name. Every answer but 204 and events carries apiVersion. A refusal is an HTTP status of
// 400 or more with an Error as the body.
//
// Fields are only ever added. Sizes are bytes, shares are milli-GPU (thousandths
// of one GPU's time), durations are nanoseconds; quantities in requests are the
// words that the user wrote and only the daemon parses them.
package v1

// APIVersion is the value of every answer's apiVersion.
const APIVersion = "gpushare/v1"

// SocketName is the socket's name inside the run directory.
const SocketName = "gpushared.sock"

// Codes of refusals. The text of an Error is for people; a program compares
// these.
const (
	CodeUnit        = "GS-UNIT"          // a quantity without a clear meaning
	CodeRequest     = "GS-REQUEST"       // a malformed request
	CodeNoMemory    = "GS-MEM-REQUIRED"  // a request without a memory limit
	CodeMemTooSmall = "GS-MEM-TOO-SMALL" // a limit below one context's own need
	CodeMemInUse    = "GS-MEM-IN-USE"    // a limit below what is in use
	CodeCap         = "GS-CAP"           // more than the administrator lets this source ask for
	CodePolicy      = "GS-POLICY"        // what the administrator has not allowed
	CodeNoFit       = "GS-NO-FIT"        // not enough left
	CodeNoGPU       = "GS-NO-GPU"        // no usable GPU or driver
	CodeGPUUnknown  = "GS-GPU-UNKNOWN"   // no GPU of that index or UUID
	CodeNotFound    = "GS-NOT-FOUND"     // no such container
	CodeAmbiguous   = "GS-AMBIGUOUS"     // a ref that several containers answer to
	CodeConflict    = "GS-CLAIM-CONFLICT"
	CodeInternal    = "GS-INTERNAL"
	CodeDaemonDown  = "GS-DAEMON-DOWN" // made by the client, never sent
	CodeTimeout     = "GS-TIMEOUT"     // made by the client, never sent
)
