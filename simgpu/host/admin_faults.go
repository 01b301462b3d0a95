// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gpushare/gpushare/simgpu/fault"
)

// Faults fetches the rules by which calls fail, and their accounts.
func (a *AdminClient) Faults(ctx context.Context) (rules []fault.Rule, err error) {
	return rules, a.call(ctx, http.MethodGet, "/faults", nil, &rules)
}

// AddFault puts a rule in force.
func (a *AdminClient) AddFault(ctx context.Context, s fault.Spec) (r fault.Rule, err error) {
	return r, a.call(ctx, http.MethodPost, "/faults", s, &r)
}

// RemoveFault takes rule id back, or with 0 all rules.
func (a *AdminClient) RemoveFault(ctx context.Context, id int) error {
	return a.call(ctx, http.MethodDelete, fmt.Sprintf("/faults?id=%d", id), nil, nil)
}
