// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "strings"

// ShortID is a container's id as people read it: twelve digits of the 64 that docker,
// podman and the CRI make. An id that somebody has chosen, as with ctr, stays whole:
// such ids often begin alike.
func ShortID(id string) string {
	const full, shown = 64, 12
	if len(id) != full || strings.Trim(id, "0123456789abcdef") != "" {
		return id
	}
	return id[:shown]
}
