// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "grant.h"

#include "array.h"
#include "attach.h"
#include "guess.h"
#include "ledger.h"
#include "pool.h"
#include "share.h"
#include "spill.h"

int gs_charge(unsigned gpu, uint64_t bytes)
{
	int r = gs_ledger_charge(gpu, bytes);

	if (r < 0)
		r = gs_pools_charge(gpu, bytes);
	if (r < 0 && gs_guess_wait(gpu))
		r = gs_ledger_charge(gpu, bytes);
	if (r < 0)
		gs_spill_denied(gpu, bytes);
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
	CUresult r;

	*ret_grant = (struct gs_grant){.bytes = bytes};
	r = gs_place_current(&ret_grant->place);
	if (r != CUDA_SUCCESS)
		return r;
	return gs_charge(ret_grant->place.gpu, bytes) < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

// take charges the grant, whose place is known, for so many bytes.
static int take(struct gs_grant *g, uint64_t bytes)
{
	g->part = !g->alone && gs_is_part(g->place.gpu, bytes);
	g->settled = false;
	if (!g->part) {
		g->bytes = gs_whole_blocks(g->place.gpu, bytes);
		return gs_charge(g->place.gpu, g->bytes);
	}
	g->bytes = gs_granule(bytes);
	g->in = (struct gs_part){.bytes = g->bytes, .ctx = g->place.ctx, .gpu = g->place.gpu};
	return gs_part_take(&g->in);
}

static CUresult take_current(struct gs_grant *g, uint64_t bytes, bool alone)
{
	CUresult r;

	*g = (struct gs_grant){.alone = alone};
	r = gs_place_current(&g->place);
	if (r == CUDA_SUCCESS && take(g, bytes) < 0)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	return r;
}

CUresult gs_grant_take_linear(struct gs_grant *ret_grant, uint64_t bytes)
{
	return take_current(ret_grant, bytes, false);
}

CUresult gs_grant_take_blocks(struct gs_grant *ret_grant, uint64_t bytes)
{
	return take_current(ret_grant, bytes, true);
}

void gs_grant_undo(struct gs_grant *grant)
{
	if (!grant->part)
		gs_ledger_refund(grant->place.gpu, grant->bytes);
	else if (grant->settled)
		gs_part_freed(grant->place.gpu, grant->address, grant->bytes);
	else
		gs_part_undo(&grant->in);
}

int gs_grant_resize(struct gs_grant *grant, uint64_t bytes)
{
	unsigned gpu = grant->place.gpu;
	uint64_t whole = gs_whole_blocks(gpu, bytes);
	struct gs_grant now = *grant;
	int r = 0;

	if (grant->part || (!grant->alone && gs_is_part(gpu, bytes))) {
		if (grant->part && gs_granule(bytes) == grant->bytes)
			return 0;
		r = take(&now, bytes);
		if (r == 0) {
			gs_grant_undo(grant);
			*grant = now;
		}
		return r;
	}
	if (whole > grant->bytes)
		r = gs_charge(gpu, whole - grant->bytes);
	else
		gs_ledger_refund(gpu, grant->bytes - whole);
	if (r == 0)
		grant->bytes = whole;
	return r;
}

int gs_grant_record(struct gs_grant *grant, enum gs_kind kind, uint64_t key)
{
	struct gs_entry old, e = {
		.key = key,
		.bytes = grant->bytes,
		.link = grant->part ? GS_LINK_PART : 0,
		.ctx = grant->place.ctx,
		.gpu = (uint8_t)grant->place.gpu,
		.kind = (uint8_t)kind,
	};
	int r;

	if (grant->part) {
		r = gs_part_settle(&grant->in, key);
		if (r < 0)
			return r;
		grant->settled = true;
		grant->address = key;
	}
	r = gs_registry_put(&e, &old);
	// The driver gives a handle anew only when it has freed the old one, by a
	// way that we do not watch.
	if (r == 0 && old.kind != GS_KIND_NONE)
		gs_entry_refund(&old);
	return r;
}

void gs_entry_refund(const struct gs_entry *entry)
{
	if (entry->kind == GS_KIND_HOST)
		gs_spill_gone(entry);
	else if (entry->share)
		gs_share_drop(entry->share);
	else if (entry->kind == GS_KIND_POINTER && entry->link == GS_LINK_PART)
		gs_part_freed(entry->gpu, entry->key, entry->bytes);
	else if ((entry->kind == GS_KIND_ARRAY || entry->kind == GS_KIND_MIPMAP) && entry->link)
		gs_array_left(entry);
	else
		gs_ledger_refund(entry->gpu, entry->bytes);
}
