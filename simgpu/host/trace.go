// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

type tracer struct{}

func (*tracer) flush() {}
