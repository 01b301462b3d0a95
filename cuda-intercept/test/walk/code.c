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

static CUresult make_library(void)
{
	return W(cuLibraryLoadData)(&library, ptx, NULL, NULL, 0, NULL, NULL, 0) ?:
	       CU(cuLibraryGetKernel)(&kernel, library, "k");
}

// A use whose call fails leaves no module behind.
static CUresult used(CUresult r, CUresult made)
{
	if (made == CUDA_SUCCESS && r != CUDA_SUCCESS) {
		if (module)
			W(cuModuleUnload)(module);
		if (library)
			W(cuLibraryUnload)(library);
	}
	if (r != CUDA_SUCCESS) {
		module = NULL;
		library = NULL;
	}
	return made ?: r;
}

// USE makes the take of a call that uses a fresh module or library.
#define USE(name, make, call)                                                           \
	static CUresult name(void *out, size_t bytes __attribute__((unused)))           \
	{                                                                               \
		CUresult made = make();                                                 \
											\
		(void)out;                                                              \
		return used(made == CUDA_SUCCESS ? call : made, made);                  \
	}                                                                               \
	_Static_assert(1, "")

USE(get_function, make_module, W(cuModuleGetFunction)(out, module, "k"));
USE(get_global, make_module, W(cuModuleGetGlobal_v2)(out, (size_t *)out + 1, module, "g"));
// Addresses are beyond what this one's result can hold.
USE(get_global_v1, make_module, W(cuModuleGetGlobal)(NULL, out, module, "g"));
USE(library_global, make_library, W(cuLibraryGetGlobal)(out, (size_t *)out + 1, library, "g"));
USE(library_managed, make_library, W(cuLibraryGetManaged)(out, (size_t *)out + 1, library, "g"));
USE(library_module, make_library, W(cuLibraryGetModule)(out, library));
USE(kernel_function, make_library, W(cuKernelGetFunction)(out, kernel));
USE(load_function, make_library, W(cuFuncLoad)((CUfunction)(void *)kernel));

static CUresult end_module(void *out __attribute__((unused)))
{
	CUresult r = W(cuModuleUnload)(module);

	module = NULL;
	return r;
}

static CUresult end_library(void *out __attribute__((unused)))
{
	CUresult r = W(cuLibraryUnload)(library);

	library = NULL;
	return r;
}

WALK(cuModuleGetFunction, NULL, get_function, end_module, NULL);
WALK(cuModuleGetGlobal, NULL, get_global_v1, end_module, NULL);
WALK(cuModuleGetGlobal_v2, NULL, get_global, end_module, NULL);
WALK(cuLibraryGetGlobal, NULL, library_global, end_library, NULL);
WALK(cuLibraryGetManaged, NULL, library_managed, end_library, NULL);
WALK(cuLibraryGetModule, NULL, library_module, end_library, NULL);
WALK(cuKernelGetFunction, NULL, kernel_function, end_library, NULL);
WALK(cuFuncLoad, NULL, load_function, end_library, NULL);

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
