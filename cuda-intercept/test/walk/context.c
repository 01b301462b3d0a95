// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Contexts. The walk's own is an explicit one, so the primary one is free.

#include "walk.h"

static CUresult take_v1(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuCtxCreate)(out, 0, 0);
}

static CUresult take_v2(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuCtxCreate_v2)(out, 0, 0);
}

static CUresult take_v3(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuCtxCreate_v3)(out, NULL, 0, 0, 0);
}

static CUresult take_v4(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuCtxCreate_v4)(out, NULL, 0, 0);
}

static CUresult take_gl_v1(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuGLCtxCreate)(out, 0, 0);
}

static CUresult take_gl_v2(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuGLCtxCreate_v2)(out, 0, 0);
}

static CUresult take_vdpau_v1(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuVDPAUCtxCreate)(out, 0, 0, 0, NULL);
}

static CUresult take_vdpau_v2(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuVDPAUCtxCreate_v2)(out, 0, 0, 0, NULL);
}

static CUresult give_v1(void *out)
{
	return W(cuCtxDestroy)(*(CUcontext *)out);
}

static CUresult give_v2(void *out)
{
	return W(cuCtxDestroy_v2)(*(CUcontext *)out);
}

static CUresult give_detach(void *out)
{
	return W(cuCtxDetach)(*(CUcontext *)out);
}

WALK(cuCtxCreate, NULL, take_v1, give_v1, NULL);
WALK(cuCtxCreate_v2, NULL, take_v2, give_v2, NULL);
WALK(cuCtxCreate_v3, NULL, take_v3, give_v2, NULL);
WALK(cuCtxCreate_v4, NULL, take_v4, give_v2, NULL);
WALK(cuGLCtxCreate, NULL, take_gl_v1, give_v2, NULL);
WALK(cuGLCtxCreate_v2, NULL, take_gl_v2, give_v2, NULL);
WALK(cuVDPAUCtxCreate, NULL, take_vdpau_v1, give_v2, NULL);
WALK(cuVDPAUCtxCreate_v2, NULL, take_vdpau_v2, give_v2, NULL);
WALK(cuCtxDestroy, NULL, take_v1, give_v1, NULL);
WALK(cuCtxDestroy_v2, NULL, take_v2, give_v2, NULL);
WALK(cuCtxDetach, NULL, take_v2, give_detach, NULL);

static CUresult take_primary(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuDevicePrimaryCtxRetain)(out, 0);
}

static CUresult give_release(void *out __attribute__((unused)))
{
	return W(cuDevicePrimaryCtxRelease)(0);
}

static CUresult give_release_v2(void *out __attribute__((unused)))
{
	return W(cuDevicePrimaryCtxRelease_v2)(0);
}

// A reset leaves the references, which are let go, too.
static CUresult give_reset(void *out)
{
	return W(cuDevicePrimaryCtxReset)(0) ?: give_release_v2(out);
}

static CUresult give_reset_v2(void *out)
{
	return W(cuDevicePrimaryCtxReset_v2)(0) ?: give_release_v2(out);
}

WALK(cuDevicePrimaryCtxRetain, NULL, take_primary, give_release_v2, NULL);
WALK(cuDevicePrimaryCtxRelease, NULL, take_primary, give_release, NULL);
WALK(cuDevicePrimaryCtxRelease_v2, NULL, take_primary, give_release_v2, NULL);
WALK(cuDevicePrimaryCtxReset, NULL, take_primary, give_reset, NULL);
WALK(cuDevicePrimaryCtxReset_v2, NULL, take_primary, give_reset_v2, NULL);

// A green context costs what the primary one does, which nobody else holds here.
static CUdevResourceDesc all_of_it;

static CUresult describe(void)
{
	static char resource[144] __attribute__((aligned(8)));

	return CU(cuDeviceGetDevResource)(0, (CUdevResource *)(void *)resource, 1) ?:
	       CU(cuDevResourceGenerateDesc)(&all_of_it, (CUdevResource *)(void *)resource, 1);
}

static CUresult take_green(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuGreenCtxCreate)(out, all_of_it, 0, 1);
}

static CUresult give_green(void *out)
{
	return W(cuGreenCtxDestroy)(*(CUgreenCtx *)out);
}

WALK(cuGreenCtxCreate, describe, take_green, give_green, NULL);
WALK(cuGreenCtxDestroy, describe, take_green, give_green, NULL);
