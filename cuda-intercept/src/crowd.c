// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "crowd.h"

#define GRANULE 512U // arrays are laid out in

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

// reach is the most blocks among which an array of that size may find no hole.
static uint32_t reach(const struct gs_crowd *c, uint64_t others, uint64_t bytes)
{
	uint64_t holes = least(c->frees, c->live), hole, most;

	if (bytes >= c->unit)
		return UINT32_MAX;
	hole = bytes > GRANULE ? bytes - GRANULE : 0; // the largest into which it does not go
	most = (others + holes * hole) / (c->unit - hole);
	return most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}

uint32_t gs_crowd_need(struct gs_crowd *c, uint64_t bytes)
{
	uint32_t begun = 1, grown = 0, need = 0, most;

	if (!c->making) {
		most = reach(c, c->bytes, bytes);
	} else {
		// The driver may do them in any order.
		begun += c->begun;
		grown = c->grown;
		most = reach(c, c->bytes + bytes, bytes > c->largest ? bytes : c->largest);
	}
	while (c->blocks + need <= most && grown + need < begun)
		need++;
	return need;
}

// remember marks this moment, at which the driver owes no answer.
static void remember(struct gs_crowd *c)
{
	uint32_t worst = 1;

	while (c->marks && c->mark[c->marks - 1].blocks >= c->blocks)
		c->marks--; // the new one says more
	if (c->marks == GS_CROWD_MARKS) {
		for (uint32_t i = 2; i < c->marks; i++)
			if (c->mark[i].live - c->mark[i - 1].live < c->mark[worst].live - c->mark[worst - 1].live)
				worst = i;
		for (uint32_t i = worst; i + 1 < c->marks; i++)
			c->mark[i] = c->mark[i + 1];
		c->marks--;
	}
	c->mark[c->marks].serial = c->serial;
	c->mark[c->marks].live = c->live;
	c->mark[c->marks].blocks = c->blocks;
	c->marks++;
}

uint32_t gs_crowd_make(struct gs_crowd *c, uint64_t bytes, uint32_t need)
{
	if (!c->making) {
		if (c->live)
			remember(c);
		c->begun = c->grown = c->stirred = 0;
		c->largest = 0;
	}
	c->making++;
	c->begun++;
	c->grown += need;
	c->blocks += need;
	c->live++;
	c->bytes += bytes;
	if (bytes > c->largest)
		c->largest = bytes;
	return ++c->serial;
}

// lower brings the bound down to what the living can occupy.
static void lower(struct gs_crowd *c)
{
	c->blocks = least(c->blocks, c->live);
	for (uint32_t i = 0; i < c->marks; i++)
		c->blocks = least(c->blocks, least(c->mark[i].blocks, c->mark[i].live) + c->live - c->mark[i].live);
	if (!c->live)
		c->frees = c->marks = 0;
}

uint32_t gs_crowd_made(struct gs_crowd *c)
{
	uint32_t need = 0, most = c->stirred ? reach(c, c->bytes, c->largest) : 0;

	while (c->stirred && c->blocks + need <= most && c->grown + need < c->begun)
		need++;
	c->blocks += need;
	c->grown += need;
	c->making--;
	return need;
}

void gs_crowd_failed(struct gs_crowd *c, uint64_t bytes)
{
	c->making--;
	c->live--;
	c->bytes -= bytes;
	if (c->begun == 1)
		c->blocks -= least(c->blocks, c->grown); // nobody else has counted on it
	lower(c);
}

void gs_crowd_leaving(struct gs_crowd *c)
{
	c->frees += c->frees < UINT32_MAX;
	c->stirred |= c->making > 0;
}

void gs_crowd_left(struct gs_crowd *c, uint32_t serial, uint64_t bytes)
{
	uint32_t kept = 0;

	c->live--;
	c->bytes -= bytes;
	for (uint32_t i = 0; i < c->marks; i++) {
		c->mark[i].live -= c->mark[i].serial >= serial;
		// Of two with the same living the older bound is the lower one.
		if (c->mark[i].live && (!kept || c->mark[i].live > c->mark[kept - 1].live))
			c->mark[kept++] = c->mark[i];
	}
	c->marks = kept;
	lower(c);
}
