// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Does with the rows what it is told on standard input, one answer a line:
//
//	rows              the rows' names, then "."
//	way NAME [G F]    link, handle, default, next, dlvsym, or get: cuGetProcAddress of
//	                  generation G with flags F
//	can SYMBOL        1: that way leads to our function; 0: to none; -1: to another
//	ready|done SYMBOL
//	take SYMBOL N     the code, and whether the results are as they were
//	give SYMBOL       the code
//	lone SYMBOL N     take, with no context current; given back if it succeeds
//	all N             ready, take, give and done of every row and launches; what gives
//	                  back is asked again if it fails. Prints row:code of what failed
//
// With an argument it tries to start until it can.
//
// walk_names, written by the test, lists the names that have a wrapper.

#include "walk.h"

struct walk_name {
	const char *base, *symbol;
	int since, flavour; // 0 any, 1 legacy, 2 per thread
	void *linked;
};

extern const struct walk_name walk_names[];

struct walk_row *walk_rows;
CUcontext walk_context;

static char way[16] = "handle";
static int generation;
static cuuint64_t flags;
static unsigned char out[WALK_OUT] __attribute__((aligned(64)));

static const struct walk_name *name_of(const char *symbol)
{
	for (const struct walk_name *n = walk_names; n->symbol; n++)
		if (!strcmp(n->symbol, symbol))
			return n;
	return NULL;
}

static void *by_handle(const char *symbol)
{
	return dlsym(dlopen("libcuda.so.1", RTLD_NOW), symbol);
}

static void *by_get(const struct walk_name *n)
{
	void *fn = NULL;
	int legacy = !(flags & 2);

	if (!n->since || (n->flavour && legacy != (n->flavour == 1)))
		return NULL;
	if (generation == 1)
		return CU(cuGetProcAddress)(n->base, &fn, n->since, flags) == CUDA_SUCCESS ? fn : NULL;
	return CU(cuGetProcAddress_v2)(n->base, &fn, n->since, flags, NULL) == CUDA_SUCCESS ? fn : NULL;
}

static void *by_way(const struct walk_name *n)
{
	if (!strcmp(way, "link"))
		return n->linked;
	if (!strcmp(way, "default"))
		return dlsym(RTLD_DEFAULT, n->symbol);
	if (!strcmp(way, "next"))
		return dlsym(RTLD_NEXT, n->symbol);
	if (!strcmp(way, "dlvsym"))
		return dlvsym(RTLD_DEFAULT, n->symbol, "libcuda.so.1");
	if (!strcmp(way, "get"))
		return by_get(n);
	return by_handle(n->symbol);
}

void *walk_symbol(const char *symbol)
{
	const struct walk_name *n = name_of(symbol);

	return (n ? by_way(n) : NULL) ?: harness_symbol(symbol);
}

static int can(const char *symbol)
{
	const struct walk_name *n = name_of(symbol);
	void *fn = n ? by_way(n) : NULL;

	return !fn ? 0 : fn == by_handle(symbol) ? 1 : -1;
}

static int untouched(void)
{
	for (int i = 0; i < WALK_OUT; i++)
		if (out[i] != WALK_PATTERN)
			return 0;
	return 1;
}

static void run(const char *what, const char *symbol, size_t bytes)
{
	struct walk_row *row = walk_rows;
	CUresult r = CUDA_SUCCESS;

	while (row && strcmp(row->symbol, symbol))
		row = row->next;
	if (!row) {
		printf("no row %s\n", symbol);
		exit(2);
	}
	CU(cuCtxSetCurrent)(strcmp(what, "lone") ? walk_context : NULL);
	if (!strcmp(what, "ready") && row->ready)
		r = row->ready();
	else if (!strcmp(what, "done") && row->done)
		r = row->done();
	else if (!strcmp(what, "give"))
		r = row->give(out);
	if (strcmp(what, "take") && strcmp(what, "lone")) {
		printf("%d\n", (int)r);
		return;
	}
	memset(out, WALK_PATTERN, sizeof(out));
	r = row->take(out, bytes);
	printf("%d %d\n", (int)r, untouched());
	if (r == CUDA_SUCCESS && !strcmp(what, "lone")) {
		CU(cuCtxSetCurrent)(walk_context);
		row->give(out);
	}
}

#define AGAIN 4

static int failed(const char *symbol, const char *what, CUresult r)
{
	if (r != CUDA_SUCCESS)
		printf("%s:%s:%d ", symbol, what, (int)r);
	return r != CUDA_SUCCESS;
}

static CUresult again(CUresult (*call)(void *out), void *arg)
{
	CUresult r = CUDA_SUCCESS;

	for (int i = 0; i < AGAIN; i++) {
		CU(cuCtxSetCurrent)(walk_context);
		r = call(arg);
		if (r == CUDA_SUCCESS)
			break;
	}
	return r;
}

static CUresult done(void *row)
{
	return ((struct walk_row *)row)->done();
}

static void all(size_t bytes)
{
	for (struct walk_row *row = walk_rows; row; row = row->next) {
		CU(cuCtxSetCurrent)(walk_context);
		if (row->ready && failed(row->symbol, "ready", row->ready()))
			continue;
		memset(out, WALK_PATTERN, sizeof(out));
		if (!failed(row->symbol, "take", row->take(out, bytes)))
			failed(row->symbol, "give", again(row->give, out));
		if (row->done)
			failed(row->symbol, "done", again(done, row));
	}
	CU(cuCtxSetCurrent)(walk_context);
	walk_launch();
	printf("\n");
}

int main(int argc, char **argv __attribute__((unused)))
{
	char line[256], what[16], symbol[96];
	unsigned long long n;
	CUresult r = CUDA_ERROR_UNKNOWN;

	for (int i = 0; r != CUDA_SUCCESS && i < (argc > 1 ? 4 * AGAIN : 1); i++)
		r = CU(cuInit)(0) ?: CU(cuCtxCreate_v2)(&walk_context, 0, 0);
	printf("%d\n", (int)r);
	while (r == CUDA_SUCCESS && fgets(line, sizeof(line), stdin)) {
		n = 0;
		if (!strcmp(line, "rows\n")) {
			for (struct walk_row *row = walk_rows; row; row = row->next)
				printf("%s\n", row->symbol);
			printf(".\n");
		} else if (sscanf(line, "way %15s %d %llu", way, &generation, &n) >= 1) {
			flags = n;
			printf("0\n");
		} else if (sscanf(line, "all %llu", &n) == 1) {
			all(n);
		} else if (sscanf(line, "can %95s", symbol) == 1) {
			printf("%d\n", can(symbol));
		} else if (sscanf(line, "%15s %95s %llu", what, symbol, &n) >= 2) {
			run(what, symbol, n);
		}
	}
	return 0;
}
