// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"errors"
	"fmt"
)

// Error is a refusal. Message is one line: what happened, why with the numbers,
// what to do; it does not contain the code.
type Error struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	// Status is the HTTP status that it travels with.
	Status int `json:"-"`
	// cause is for errors.Is on the client's own errors.
	cause error
}

// Errorf returns a refusal. A %w keeps its cause for errors.Is.
func Errorf(status int, code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Status: status, Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Error is the message followed by the code in brackets, for searching.
func (e *Error) Error() string { return e.Message + "  [" + e.Code + "]" }

// Unwrap returns the cause, nil if there is none.
func (e *Error) Unwrap() error { return e.cause }

// Code returns the code of the first Error in err's chain, "" if there is none.
func Code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
