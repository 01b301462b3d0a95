// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Code of modules and libraries, and limits of a context. On a card that counts to the
// byte none of it costs anything.

#include "walk.h"

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n.global .align 4 .b32 g;\n"
			  ".visible .entry k()\n{\n\tret;\n}\n";
static char file[] = "/tmp/walk-code-XXXXXX";

static CUmodule module;
static CUlibrary library;
static CUkernel kernel;

static CUresult make_file(void)
{
	int fd;

	strcpy(file + sizeof(file) - 7, "XXXXXX");
	fd = mkstemp(file);
	if (fd < 0 || write(fd, ptx, sizeof(ptx) - 1) != (ssize_t)sizeof(ptx) - 1)
		return CUDA_ERROR_FILE_NOT_FOUND;
	close(fd);
	return CUDA_SUCCESS;
}

static CUresult end_file(void)
{
	unlink(file);
	return CUDA_SUCCESS;
}

// ---- loading ------------------------------------------------------------------

static CUresult load(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuModuleLoad)(out, file);
}

static CUresult load_data(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuModuleLoadData)(out, ptx);
}

static CUresult load_data_ex(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuModuleLoadDataEx)(out, ptx, 0, NULL, NULL);
}

static CUresult load_fat(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuModuleLoadFatBinary)(out, ptx);
}

static CUresult unload(void *out)
{
	return W(cuModuleUnload)(*(CUmodule *)out);
}

static CUresult load_library(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuLibraryLoadData)(out, ptx, NULL, NULL, 0, NULL, NULL, 0);
}

static CUresult load_library_file(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuLibraryLoadFromFile)(out, file, NULL, NULL, 0, NULL, NULL, 0);
}

static CUresult unload_library(void *out)
{
	return W(cuLibraryUnload)(*(CUlibrary *)out);
}

WALK(cuModuleLoad, make_file, load, unload, end_file);
WALK(cuModuleLoadData, NULL, load_data, unload, NULL);
WALK(cuModuleLoadDataEx, NULL, load_data_ex, unload, NULL);
WALK(cuModuleLoadFatBinary, NULL, load_fat, unload, NULL);
WALK(cuModuleUnload, NULL, load_data, unload, NULL);
WALK(cuLibraryLoadData, NULL, load_library, unload_library, NULL);
WALK(cuLibraryLoadFromFile, make_file, load_library_file, unload_library, end_file);
WALK(cuLibraryUnload, NULL, load_library, unload_library, NULL);

// ---- using --------------------------------------------------------------------

static CUresult make_module(void)
{
	return W(cuModuleLoadData)(&module, ptx);
}

static CUresult end_module(void)
{
	return W(cuModuleUnload)(module);
}

static CUresult make_library(void)
{
	return W(cuLibraryLoadData)(&library, ptx, NULL, NULL, 0, NULL, NULL, 0) ?:
	       CU(cuLibraryGetKernel)(&kernel, library, "k");
}

static CUresult end_library(void)
{
	return W(cuLibraryUnload)(library);
}

// What is got stays until the module goes.
static CUresult kept(void *out __attribute__((unused)))
{
	return CUDA_SUCCESS;
}

static CUresult get_function(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuModuleGetFunction)(out, module, "k");
}

static CUresult get_global(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuModuleGetGlobal_v2)(out, (size_t *)out + 1, module, "g");
}

// Addresses are beyond what this one's result can hold.
static CUresult get_global_v1(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuModuleGetGlobal)(NULL, out, module, "g");
}

static CUresult library_global(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuLibraryGetGlobal)(out, (size_t *)out + 1, library, "g");
}

static CUresult library_managed(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuLibraryGetManaged)(out, (size_t *)out + 1, library, "g");
}

static CUresult library_module(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuLibraryGetModule)(out, library);
}

static CUresult kernel_function(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuKernelGetFunction)(out, kernel);
}

static CUresult load_function(void *out __attribute__((unused)), size_t bytes __attribute__((unused)))
{
	return W(cuFuncLoad)((CUfunction)(void *)kernel);
}

WALK(cuModuleGetFunction, make_module, get_function, kept, end_module);
WALK(cuModuleGetGlobal, make_module, get_global_v1, kept, end_module);
WALK(cuModuleGetGlobal_v2, make_module, get_global, kept, end_module);
WALK(cuLibraryGetGlobal, make_library, library_global, kept, end_library);
WALK(cuLibraryGetManaged, make_library, library_managed, kept, end_library);
WALK(cuLibraryGetModule, make_library, library_module, kept, end_library);
WALK(cuKernelGetFunction, make_library, kernel_function, kept, end_library);
WALK(cuFuncLoad, make_library, load_function, kept, end_library);

// ---- limits -------------------------------------------------------------------

static CUresult deepen(void *out __attribute__((unused)), size_t bytes __attribute__((unused)))
{
	return W(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 2048);
}

static CUresult flatten(void *out __attribute__((unused)))
{
	return W(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 1024);
}

WALK(cuCtxSetLimit, NULL, deepen, flatten, NULL);
