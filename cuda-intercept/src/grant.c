// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "grant.h"

#include "attach.h"
#include "guess.h"
#include "ledger.h"
#include "pool.h"
#include "share.h"

int gs_charge(unsigned gpu, uint64_t bytes)
{
	int r = gs_ledger_charge(gpu, bytes);

	if (r < 0 && gs_pools_trim(gpu))
		r = gs_ledger_charge(gpu, bytes);
	if (r < 0 && gs_guess_wait(gpu))
		r = gs_ledger_charge(gpu, bytes);
	if (r < 0)
		gs_ledger_denied(gpu, bytes);
	return r;
}

CUresult gs_grant_take_on(struct gs_grant *ret_grant, unsigned gpu, uint64_t bytes)
{
	if (!gs_attached())
		return CUDA_ERROR_NOT_INITIALIZED;
	*ret_grant = (struct gs_grant){.place = {.gpu = gpu}, .bytes = bytes};
	return gs_charge(gpu, bytes) < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult gs_grant_take(struct gs_grant *ret_grant, uint64_t bytes)
{
	CUresult r = gs_place_current(&ret_grant->place);

	if (r != CUDA_SUCCESS)
		return r;
	ret_grant->bytes = bytes;
	return gs_charge(ret_grant->place.gpu, bytes) < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

void gs_grant_undo(const struct gs_grant *grant)
{
	gs_ledger_refund(grant->place.gpu, grant->bytes);
}

int gs_grant_resize(struct gs_grant *grant, uint64_t bytes)
{
	if (bytes > grant->bytes) {
		int r = gs_charge(grant->place.gpu, bytes - grant->bytes);

		if (r < 0)
			return r;
	} else {
		gs_ledger_refund(grant->place.gpu, grant->bytes - bytes);
	}
	grant->bytes = bytes;
	return 0;
}

int gs_grant_record(const struct gs_grant *grant, enum gs_kind kind, uint64_t key)
{
	struct gs_entry old, e = {
		.key = key,
		.bytes = grant->bytes,
		.ctx = grant->place.ctx,
		.gpu = (uint8_t)grant->place.gpu,
		.kind = (uint8_t)kind,
	};
	int r = gs_registry_put(&e, &old);

	// The driver gives a handle anew only when it has freed the old one, by a
	// way that we do not watch.
	if (r == 0 && old.kind != GS_KIND_NONE)
		gs_entry_refund(&old);
	return r;
}

void gs_entry_refund(const struct gs_entry *entry)
{
	if (entry->share)
		gs_share_drop(entry->share);
	else
		gs_ledger_refund(entry->gpu, entry->bytes);
}
