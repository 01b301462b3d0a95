// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"errors"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// giveUp releases a claim whose answer did not come. The daemon may have granted
// it, and for a claimant that lives on, as a shim does whose engine died, it would
// hold the share as long. A claim that the daemon refused is not touched: the id
// may be another container's.
func giveUp(ctx context.Context, daemon Claims, id string, err error) {
	var e *v1.Error
	if errors.As(err, &e) && e.Code == v1.CodeDaemonDown {
		_ = daemon.Release(context.WithoutCancel(ctx), id)
	}
}
