// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
)

// serveConditions sets (POST) the values of conditional nodes by kernel name.
func (h *Host) serveConditions(w http.ResponseWriter, r *http.Request) {
	var values map[string]uint64
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&values); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.SetConditions(values)
}

// SetConditions changes what conditional nodes of graphs get, by kernel name.
func (a *AdminClient) SetConditions(ctx context.Context, values map[string]uint64) error {
	return a.call(ctx, http.MethodPost, "/condition", values, nil)
}
