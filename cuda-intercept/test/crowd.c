// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The bound of a crowd against allocators that choose their holes by different
// rules, several calls under way at once: never below what they hold.

#include "crowd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIT (2U << 20)
#define GRANULE 512U
#define BLOCKS 600
#define ARRAYS 500
#define CALLS 4

enum rule { FIRST, BEST, WORST, ANY, RULES };

struct array {
	int block; // -1: none
	uint64_t at, bytes;
	uint32_t serial;
};

static struct array arrays[ARRAYS];
static enum rule rule;
static unsigned int seed;

static unsigned int dice(unsigned int n)
{
	return (unsigned int)rand_r(&seed) % n;
}

static int by_place(const void *a, const void *b)
{
	const struct array *x = *(struct array *const *)a, *y = *(struct array *const *)b;

	return x->at < y->at ? -1 : 1;
}

static int better(uint64_t hole, uint64_t best, int n)
{
	if (!n)
		return 1;
	return rule == BEST ? hole < best : rule == WORST ? hole > best : rule == ANY ? dice((unsigned int)n + 1) == 0 : 0;
}

// place puts a into a hole, or into a new block if there is none.
static void place(struct array *a, uint64_t bytes)
{
	struct array *in[ARRAYS];
	int n, holes = 0, used[BLOCKS] = {0}, b;
	uint64_t best = 0;

	for (int i = 0; i < ARRAYS; i++)
		if (arrays[i].block >= 0)
			used[arrays[i].block] = 1;
	for (b = 0; b < BLOCKS; b++) {
		uint64_t from = 0;

		if (!used[b])
			continue;
		n = 0;
		for (int i = 0; i < ARRAYS; i++)
			if (arrays[i].block == b)
				in[n++] = &arrays[i];
		qsort(in, (size_t)n, sizeof(*in), by_place);
		for (int i = 0; i <= n; i++) {
			uint64_t to = i < n ? in[i]->at : UNIT;

			if (to - from >= bytes && better(to - from, best, holes++)) {
				best = to - from;
				a->block = b;
				a->at = rule == ANY && dice(2) ? to - bytes : from;
			}
			if (i < n)
				from = in[i]->at + in[i]->bytes;
		}
	}
	if (!holes) {
		for (b = 0; used[b]; b++)
			;
		a->block = b;
		a->at = 0;
	}
	a->bytes = bytes;
}

static uint32_t occupied(void)
{
	char used[BLOCKS] = {0};
	uint32_t n = 0;

	for (int i = 0; i < ARRAYS; i++) {
		if (arrays[i].block >= 0 && !used[arrays[i].block]) {
			used[arrays[i].block] = 1;
			n++;
		}
	}
	return n;
}

static uint64_t size_of(int mix)
{
	uint64_t n = mix == 0 ? dice(UNIT) : mix == 1 ? dice(65536) : dice(20) ? dice(16384) : UNIT - dice(300000);

	return n / GRANULE * GRANULE + GRANULE;
}

// run returns how far the bound lies over what is held on average, in percent.
static int run(int mix, int most, int *failures)
{
	struct gs_crowd c = {.unit = UNIT};
	struct array *making[CALLS];
	uint64_t sizes[CALLS], held = 0, bound = 0;
	int live = 0;

	for (int i = 0; i < ARRAYS; i++)
		arrays[i] = (struct array){.block = -1};
	for (int step = 0; step < 2000; step++) {
		int calls = 1 + (int)dice(CALLS);

		for (int k = 0; k < calls; k++) {
			making[k] = NULL;
			for (int i = 0, from = (int)dice(ARRAYS); i < ARRAYS && live < most; i++) {
				int at = (from + i) % ARRAYS;

				if (arrays[at].block >= 0 || arrays[at].serial)
					continue;
				making[k] = &arrays[at];
				live++;
				sizes[k] = size_of(mix);
				arrays[at].serial = gs_crowd_make(&c, sizes[k], gs_crowd_need(&c, sizes[k]));
				break;
			}
		}
		for (int n = (int)dice(20); n; n--) { // meanwhile
			struct array *a = &arrays[dice(ARRAYS)];

			if (a->block < 0)
				continue;
			gs_crowd_leaving(&c);
			a->block = -1;
			gs_crowd_left(&c, a->serial, a->bytes);
			a->serial = 0;
			live--;
		}
		for (int k = calls - 1; k >= 0; k--) { // in another order
			if (!making[k])
				continue;
			if (dice(20)) {
				place(making[k], sizes[k]);
				gs_crowd_made(&c);
				continue;
			}
			gs_crowd_failed(&c, sizes[k]);
			making[k]->serial = 0;
			live--;
		}
		if (occupied() > c.blocks && (*failures)++ < 5)
			printf("rule %d, mix %d, step %d: %u blocks are held, the bound is %u\n", rule, mix, step, occupied(), c.blocks);
		held += occupied();
		bound += c.blocks;
	}
	for (int i = 0; i < ARRAYS; i++) {
		if (arrays[i].block < 0)
			continue;
		gs_crowd_leaving(&c);
		gs_crowd_left(&c, arrays[i].serial, arrays[i].bytes);
	}
	if ((c.blocks || c.live || c.bytes || c.making) && (*failures)++ < 5)
		printf("rule %d, mix %d: %u blocks are left\n", rule, mix, c.blocks);
	return (int)((bound - held) * 100 / (held ? held : 1));
}

// filled is a crowd that only grows.
static void filled(int *failures)
{
	struct gs_crowd c = {.unit = UNIT};

	for (uint32_t i = 1; i <= 3200; i++) {
		gs_crowd_make(&c, 65536, gs_crowd_need(&c, 65536));
		gs_crowd_made(&c);
		if ((c.blocks < (i + 31) / 32 || c.blocks > i / 31 + 1) && (*failures)++ < 5)
			printf("%u arrays of 64 KiB: the bound is %u\n", i, c.blocks);
	}
}

int main(int argc, char **argv)
{
	int failures = 0;

	(void)argv;
	filled(&failures);
	for (rule = 0; rule < RULES; rule++) {
		for (int mix = 0; mix < 3; mix++) {
			for (int most = 20; most <= 320; most *= 4) {
				int over;

				seed = 7U * (unsigned int)mix + rule + 1;
				over = run(mix, most, &failures);
				if (argc > 1)
					printf("rule %d, mix %d, %d arrays: %d %% over\n", rule, mix, most, over);
			}
		}
	}
	return failures != 0;
}
