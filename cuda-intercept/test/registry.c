// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The registry against a plain array, with keys that crowd together.

#include "registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 3000

static struct gs_entry model[4][KEYS]; // by kind
static int failures;

#define CHECK(c)                                                     \
	do {                                                         \
		if (!(c) && failures++ < 20)                         \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #c); \
	} while (0)

static uint64_t key_of(int i)
{
	return 0x7f0000000000ULL + (uint64_t)i * 512;
}

static void compare(void)
{
	struct gs_entry e;

	for (int kind = 1; kind < 4; kind++) {
		for (int i = 0; i < KEYS; i++) {
			int there = gs_registry_get((enum gs_kind)kind, key_of(i), &e);

			CHECK(there == (model[kind][i].kind != 0));
			CHECK(!there || (e.bytes == model[kind][i].bytes && e.ctx == model[kind][i].ctx));
		}
	}
}

static uint64_t gone;

static void count(const struct gs_entry *entry)
{
	gone += entry->bytes;
}

static void drain(uint32_t ctx)
{
	uint64_t want = 0;

	for (int kind = 1; kind < 4; kind++) {
		for (int i = 0; i < KEYS; i++) {
			if (model[kind][i].kind && model[kind][i].ctx == ctx) {
				want += model[kind][i].bytes;
				model[kind][i].kind = 0;
			}
		}
	}
	gone = 0;
	gs_registry_drain(ctx, count);
	CHECK(gone == want);
}

static void adopt(uint32_t from, uint32_t to)
{
	for (int kind = 1; kind < 4; kind++)
		for (int i = 0; i < KEYS; i++)
			if (model[kind][i].kind && model[kind][i].ctx == from)
				model[kind][i].ctx = to;
	gs_registry_adopt(from, to);
}

int main(void)
{
	unsigned int seed = 42;
	struct gs_entry e, old;

	for (int n = 0; n < 300000; n++) {
		int kind = 1 + rand_r(&seed) % 3, i = rand_r(&seed) % KEYS;
		struct gs_entry *m = &model[kind][i];

		if (rand_r(&seed) % 2) {
			e = (struct gs_entry){.key = key_of(i), .bytes = (uint64_t)n, .ctx = 1U + (uint32_t)(rand_r(&seed) % 5),
					      .refs = 2, .kind = (uint8_t)kind};
			CHECK(gs_registry_put(&e, &old) == 0);
			CHECK(old.kind == m->kind && (!old.kind || old.bytes == m->bytes));
			*m = e;
		} else if (rand_r(&seed) % 2) {
			CHECK(gs_registry_take((enum gs_kind)kind, key_of(i), &e) == (m->kind != 0));
			m->kind = 0;
		} else if (gs_registry_ref((enum gs_kind)kind, key_of(i), -1, &e)) {
			CHECK(m->kind && e.refs == m->refs - 1);
			if (!--m->refs)
				m->kind = 0;
		} else {
			CHECK(!m->kind);
		}
		if (n % 50000 == 25000)
			compare();
		if (n % 40000 == 39999)
			adopt(1U + (uint32_t)(rand_r(&seed) % 5), 1U + (uint32_t)(rand_r(&seed) % 5));
		if (n % 60000 == 59999)
			drain(1U + (uint32_t)(rand_r(&seed) % 5));
	}
	compare();
	gs_registry_forked();
	memset(model, 0, sizeof(model));
	compare();
	return failures ? 1 : 0;
}
