// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What the files of the stand-in driver share.

#ifndef FAKE_H
#define FAKE_H

#include <pthread.h>
#include <string.h>

#include "cuda_abi.h"

#define DEVICES 2
#define CONTEXT_BYTES (100ULL << 20)
#define POOL_STEP (4ULL << 20)
#define MEMORY_BYTES (64ULL << 30)

enum { THING_POINTER = 1, THING_ARRAY, THING_MEMORY, THING_MAPPING };

struct thing {
	struct thing *next;
	int kind, dev, refs;
	unsigned long long key, bytes;
	struct CUctx_st *ctx;
	struct CUmemPoolHandle_st *pool;
	struct thing *memory;
};

struct CUctx_st {
	int dev, primary, refs, live;
};

struct CUmemPoolHandle_st {
	int dev, destroyed;
	unsigned long long live, reserved;
	cuuint64_t threshold;
};

extern pthread_mutex_t fake_lock;
extern __thread struct CUctx_st *fake_current;
extern struct thing *fake_things;

unsigned long long fake_used(int dev);
unsigned long long fake_high(int dev);
void fake_fail(const char *name, int code);

int fake_enter(const char *name, CUresult *ret_result);
void fake_use(int dev, long long bytes);
unsigned long long fake_round(unsigned long long n, unsigned long long to);
struct thing *fake_add(int kind, int dev, unsigned long long bytes);
struct thing *fake_find(int kind, unsigned long long key);
void fake_drop(struct thing *gone);
CUresult fake_release(unsigned long long key);
void fake_unref(struct thing *memory);
void fake_object_gone(unsigned long long key);
void fake_tiles_gone(unsigned long long array);
int fake_unmapped(unsigned long long key);
void fake_closed(int fd);
void fake_shrink(struct CUmemPoolHandle_st *pool, unsigned long long keep);

#define ENTER()                                    \
	do {                                       \
		CUresult fake_r;                   \
		if (fake_enter(__func__, &fake_r)) \
			return fake_r;             \
	} while (0)

#endif
