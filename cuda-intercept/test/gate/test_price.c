// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The price table: learning, doubt, refresh, replacement, and readers beside
// writers.

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "price.h"

int check_failed;

static struct gs_price_table table;
static const uint64_t start = 1000000000000ULL;

static struct gs_gate_shape shape_of(uint64_t handle, uint32_t grid)
{
	return (struct gs_gate_shape){ .handle = handle, .grid = { grid, 1, 1 }, .block = { 256, 1, 1 } };
}

static struct gs_price_change feed(struct gs_gate_shape s, uint64_t ns, enum gs_price_kind kind, uint64_t charged,
				   uint64_t now)
{
	struct gs_price_view v;
	struct gs_price_change c;

	gs_price_get(&table, &s, now, &v);
	gs_price_observe(&table, v.ref, ns, kind, charged, now, &c);
	return c;
}

static void test_key(void)
{
	struct gs_gate_shape a = shape_of(1, 100), b;

	memset(&table, 0, sizeof(table));
	for (int i = 0; i < 4; i++)
		feed(a, 50000, GS_PRICE_CLEAN, 0, start);
	CHECK(gs_price_find(&table, &a) == 50000, "price %lu", (unsigned long)gs_price_find(&table, &a));
	// Each field tells shapes apart.
	for (int i = 0; i < 9; i++) {
		b = a;
		i == 0 ? (void)(b.handle = 2) : i < 4 ? (void)(b.grid[i - 1] += 1)
			: i < 7	  ? (void)(b.block[i - 4] += 1)
			: i == 7  ? (void)(b.shared_bytes = 1)
				  : (void)(b.graph = 1);
		CHECK(gs_price_find(&table, &b) == 0, "field %d does not count", i);
	}
}

static void test_learn(void)
{
	struct gs_gate_shape s = shape_of(3, 1);
	struct gs_price_change c;

	memset(&table, 0, sizeof(table));
	// Wall time alone never makes a price.
	for (int i = 0; i < 100; i++)
		feed(s, 9000000, GS_PRICE_WALL, 9000000, start);
	CHECK(gs_price_find(&table, &s) == 0, "priced by wall time");
	// Long launches: one holds until two agree. What a neighbour left is in the first.
	c = feed(s, 7000000, GS_PRICE_CLEAN, 9000000, start);
	CHECK(!c.settled && c.first && c.price_ns == 7000000, "change");
	// 100 at 9 ms were charged.
	CHECK(c.refund_ns == 100 * 2000000LL, "refund %ld", (long)c.refund_ns);
	c = feed(s, 5000000, GS_PRICE_CLEAN, GS_PRICE_CHARGED, start);
	CHECK(!c.settled && c.price_ns == 7000000, "priced by two that differ");
	c = feed(s, 5010000, GS_PRICE_CLEAN, GS_PRICE_CHARGED, start);
	CHECK(c.settled && !c.first && c.price_ns == 5000000, "price %lu", (unsigned long)c.price_ns);
	// Short ones: four, none of which holds alone.
	s = shape_of(8, 1);
	for (int i = 0; i < 10; i++)
		feed(s, 60000, GS_PRICE_WALL, 60000, start);
	for (int i = 0; i < 3; i++) {
		c = feed(s, 50000, GS_PRICE_CLEAN, 60000, start);
		CHECK(!c.settled && c.price_ns == 0, "priced by %d samples", i + 1);
	}
	c = feed(s, 50000, GS_PRICE_CLEAN, 60000, start);
	CHECK(c.settled && c.first && c.price_ns == 50000, "price %lu", (unsigned long)c.price_ns);
	CHECK(c.refund_ns == 10 * 10000, "refund %ld", (long)c.refund_ns);
}

static void test_varying(void)
{
	struct gs_gate_shape s = shape_of(4, 1);
	uint64_t mean = 0, price;

	memset(&table, 0, sizeof(table));
	for (uint64_t i = 0; i < GS_PRICE_SAMPLES; i++) {
		feed(s, 100000 + i * 30000, GS_PRICE_CLEAN, 0, start);
		if (i + 1 < GS_PRICE_SAMPLES)
			mean += 100000 + i * 30000;
	}
	price = gs_price_find(&table, &s);
	CHECK(price == mean / (GS_PRICE_SAMPLES - 1), "price %lu", (unsigned long)price);
}

static void test_refresh(void)
{
	struct gs_gate_shape s = shape_of(5, 1);
	struct gs_price_view v;
	uint64_t now = start;

	memset(&table, 0, sizeof(table));
	for (int i = 0; i < 4; i++)
		feed(s, 60000, GS_PRICE_CLEAN, 0, now);
	gs_price_get(&table, &s, now + 1000, &v);
	CHECK(!v.wanted && v.price_ns == 60000, "wanted at once");
	now += GS_PRICE_FRESH_MIN_NS;
	gs_price_get(&table, &s, now, &v);
	CHECK(v.wanted && v.price_ns == 60000, "not wanted when stale");
	// The kernel has become four times as long: the old price stands until proven.
	for (int i = 0; i < 3; i++)
		feed(s, 240000, GS_PRICE_CLEAN, GS_PRICE_CHARGED, now);
	CHECK(gs_price_find(&table, &s) == 60000, "changed too soon");
	feed(s, 240000, GS_PRICE_CLEAN, GS_PRICE_CHARGED, now);
	CHECK(gs_price_find(&table, &s) == 240000, "did not change");
	// Agreement makes the next look rarer, up to a bound.
	for (int round = 0; round < 10; round++) {
		now += GS_PRICE_FRESH_MAX_NS;
		for (int i = 0; i < 4; i++)
			feed(s, 240000, GS_PRICE_CLEAN, GS_PRICE_CHARGED, now);
	}
	gs_price_get(&table, &s, now + GS_PRICE_FRESH_MAX_NS - 1, &v);
	CHECK(!v.wanted, "still eager");
	gs_price_get(&table, &s, now + GS_PRICE_FRESH_MAX_NS, &v);
	CHECK(v.wanted, "beyond the bound");
	// Wall time below the price proves it too high.
	now += 1000;
	for (int i = 0; i < 3; i++)
		feed(s, 100000, GS_PRICE_WALL, GS_PRICE_CHARGED, now);
	gs_price_get(&table, &s, now, &v);
	CHECK(v.wanted, "a price above wall time is not doubted");
}

// A price that has become too low is found under contention, too.
static void test_busy(void)
{
	struct gs_gate_shape s = shape_of(6, 1), l = shape_of(7, 1);
	struct gs_price_view v;
	uint64_t now = start;

	memset(&table, 0, sizeof(table));
	for (int i = 0; i < 4; i++)
		feed(s, 60000, GS_PRICE_CLEAN, 0, now);
	for (int i = 0; i < 2; i++)
		feed(l, 5000000, GS_PRICE_CLEAN, 0, now);
	// Most samples hold slices of neighbours; that is no reason.
	for (int i = 0; i < 200; i++) {
		feed(s, i % 5 ? 2060000 : 60000, GS_PRICE_BUSY, GS_PRICE_CHARGED, now);
		feed(s, 2060000, GS_PRICE_WALL, GS_PRICE_CHARGED, now);
		feed(l, 9000000 + (uint64_t)(i % 7) * 100000, GS_PRICE_BUSY, GS_PRICE_CHARGED, now);
	}
	gs_price_get(&table, &s, now, &v);
	CHECK(!v.wanted && v.price_ns == 60000, "price %lu", (unsigned long)v.price_ns);
	gs_price_get(&table, &l, now, &v);
	CHECK(!v.wanted && v.price_ns == 5000000, "price %lu", (unsigned long)v.price_ns);
	// Both have grown: the short one is known at once, the long one needs a window.
	for (int i = 0; i < 16; i++) {
		feed(s, i % 5 ? 2300000 : 300000, GS_PRICE_BUSY, GS_PRICE_CHARGED, now);
		feed(l, 18000000, GS_PRICE_BUSY, GS_PRICE_CHARGED, now);
	}
	gs_price_get(&table, &s, now, &v);
	CHECK(v.price_ns == 300000, "price %lu", (unsigned long)v.price_ns);
	gs_price_get(&table, &l, now, &v);
	CHECK(v.wanted && v.price_ns == 5000000, "price %lu", (unsigned long)v.price_ns);
}

static void test_replace(void)
{
	struct gs_gate_shape s;
	struct gs_price_view old, v;
	struct gs_price_change c;
	uint32_t found = 0;

	memset(&table, 0, sizeof(table));
	s = shape_of(1, 1);
	gs_price_get(&table, &s, start, &old);
	for (uint32_t i = 0; i < 20 * GS_PRICE_ENTRIES; i++) {
		s = shape_of(1000 + i, i);
		gs_price_get(&table, &s, start + 1 + i, &v);
		CHECK(v.ref.seq != 0, "no room for shape %u", i);
	}
	// The newest are there, the first is not, and a late sample for it hurts nobody.
	for (uint32_t i = 20 * GS_PRICE_ENTRIES - 200; i < 20 * GS_PRICE_ENTRIES; i++) {
		s = shape_of(1000 + i, i);
		for (int k = 0; k < 4; k++)
			feed(s, 70000, GS_PRICE_CLEAN, 0, start + 100 * GS_PRICE_ENTRIES);
		found += gs_price_find(&table, &s) == 70000;
	}
	CHECK(found == 200, "%u of 200", found);
	gs_price_observe(&table, old.ref, 5, GS_PRICE_CLEAN, 0, start, &c);
	CHECK(!c.settled && c.price_ns == 0, "a sample for a shape that was replaced");
}

#define THREADS 4

static int wrong;

// Every shape's price is its handle times 1000; whoever reads another one lost.
static void *hammer(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg * 7919;

	for (int i = 0; i < 300000; i++) {
		struct gs_gate_shape s;
		uint64_t p;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		s = shape_of(3000 + (seed >> 33) % 20000, 1);
		p = gs_price_find(&table, &s);
		if (p && p != s.handle * 1000)
			__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
		if (i % 4 == 0)
			for (int k = 0; k < 4; k++)
				feed(s, s.handle * 1000, GS_PRICE_CLEAN, 0, start + (uint64_t)i);
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t t[THREADS];

	memset(&table, 0, sizeof(table));
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, hammer, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK(wrong == 0, "%d prices of another shape", wrong);
}

int main(void)
{
	test_key();
	test_learn();
	test_varying();
	test_refresh();
	test_busy();
	test_replace();
	test_threads();
	printf("price: %d failed\n", check_failed);
	return check_failed != 0;
}
