// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Modules and libraries: what loads code, and what uses it for the first time.

#include "code.h"
#include "cuda_bodies.h"

static uint64_t handle(const void *h)
{
	return (uint64_t)(uintptr_t)h;
}

// ---- loading ------------------------------------------------------------------

CUresult gs_cu_module_load(GS_FN(cuModuleLoad) real, CUmodule *ret_module, const char *path)
{
	struct gs_code_use use;
	CUmodule got = NULL;
	CUresult r = gs_code_load(&use, gs_code_file(path));

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_module ? &got : NULL, path);
	if (r == CUDA_SUCCESS)
		*ret_module = got;
	gs_code_loaded(&use, handle(got), false, r);
	return r;
}

CUresult gs_cu_module_load_data(GS_FN(cuModuleLoadData) real, CUmodule *ret_module, const void *image)
{
	struct gs_code_use use;
	CUmodule got = NULL;
	CUresult r = gs_code_load(&use, gs_code_image(image));

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_module ? &got : NULL, image);
	if (r == CUDA_SUCCESS)
		*ret_module = got;
	gs_code_loaded(&use, handle(got), false, r);
	return r;
}

CUresult gs_cu_module_load_ex(GS_FN(cuModuleLoadDataEx) real, CUmodule *ret_module, const void *image, unsigned int n,
			      CUjit_option *options, void **values)
{
	struct gs_code_use use;
	CUmodule got = NULL;
	CUresult r = gs_code_load(&use, gs_code_image(image));

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_module ? &got : NULL, image, n, options, values);
	if (r == CUDA_SUCCESS)
		*ret_module = got;
	gs_code_loaded(&use, handle(got), false, r);
	return r;
}

CUresult gs_cu_library_load(GS_FN(cuLibraryLoadData) real, CUlibrary *ret_library, const void *image,
			    CUjit_option *options, void **values, unsigned int n, CUlibraryOption *library_options,
			    void **library_values, unsigned int library_n)
{
	struct gs_code_use use;
	CUlibrary got = NULL;
	CUresult r = gs_code_load(&use, gs_code_image(image));

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_library ? &got : NULL, image, options, values, n, library_options, library_values, library_n);
	if (r == CUDA_SUCCESS)
		*ret_library = got;
	gs_code_loaded(&use, handle(got), true, r);
	return r;
}

CUresult gs_cu_library_load_file(GS_FN(cuLibraryLoadFromFile) real, CUlibrary *ret_library, const char *path,
				 CUjit_option *options, void **values, unsigned int n,
				 CUlibraryOption *library_options, void **library_values, unsigned int library_n)
{
	struct gs_code_use use;
	CUlibrary got = NULL;
	CUresult r = gs_code_load(&use, gs_code_file(path));

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_library ? &got : NULL, path, options, values, n, library_options, library_values, library_n);
	if (r == CUDA_SUCCESS)
		*ret_library = got;
	gs_code_loaded(&use, handle(got), true, r);
	return r;
}

CUresult gs_cu_module_unload(GS_FN(cuModuleUnload) real, CUmodule module)
{
	CUresult r = real(module);

	if (r == CUDA_SUCCESS)
		gs_code_gone(handle(module));
	return r;
}

CUresult gs_cu_library_unload(GS_FN(cuLibraryUnload) real, CUlibrary library)
{
	CUresult r = real(library);

	if (r == CUDA_SUCCESS)
		gs_code_gone(handle(library));
	return r;
}

// ---- using --------------------------------------------------------------------

// The driver's call, whose result is the caller's only when it has succeeded.
#define USE(owner, surely, call, result)                                 \
	do {                                                             \
		struct gs_code_use use;                                  \
		CUresult r = gs_code_begin(&use, owner, surely);         \
									 \
		if (r != CUDA_SUCCESS)                                   \
			return r;                                        \
		r = call;                                                \
		gs_code_end(&use, r);                                    \
		if (r == CUDA_SUCCESS) {                                 \
			result;                                          \
		}                                                        \
		return r;                                                \
	} while (0)

// A variable's address and size, of which the caller may want one only.
#define VARIABLE(owner, type, size_type)                                                        \
	do {                                                                                    \
		type ptr = 0;                                                                   \
		size_type bytes = 0;                                                            \
												\
		USE(owner, true, real(ret_ptr ? &ptr : NULL, ret_bytes ? &bytes : NULL, of, name), \
		    if (ret_ptr) *ret_ptr = ptr; if (ret_bytes) *ret_bytes = bytes);            \
	} while (0)

CUresult gs_cu_module_function(GS_FN(cuModuleGetFunction) real, CUfunction *ret_function, CUmodule module,
			       const char *name)
{
	CUfunction got = NULL;

	USE(handle(module), false, real(ret_function ? &got : NULL, module, name), *ret_function = got);
}

CUresult gs_cu_module_global(GS_FN(cuModuleGetGlobal_v2) real, CUdeviceptr *ret_ptr, size_t *ret_bytes,
			     CUmodule of, const char *name)
{
	VARIABLE(handle(of), CUdeviceptr, size_t);
}

CUresult gs_cu_module_global_v1(GS_FN(cuModuleGetGlobal) real, CUdeviceptr_v1 *ret_ptr, unsigned int *ret_bytes,
				CUmodule of, const char *name)
{
	VARIABLE(handle(of), CUdeviceptr_v1, unsigned int);
}

CUresult gs_cu_library_global(GS_FN(cuLibraryGetGlobal) real, CUdeviceptr *ret_ptr, size_t *ret_bytes,
			      CUlibrary of, const char *name)
{
	VARIABLE(handle(of), CUdeviceptr, size_t);
}

CUresult gs_cu_library_managed(GS_FN(cuLibraryGetManaged) real, CUdeviceptr *ret_ptr, size_t *ret_bytes,
			       CUlibrary of, const char *name)
{
	VARIABLE(handle(of), CUdeviceptr, size_t);
}

CUresult gs_cu_library_module(GS_FN(cuLibraryGetModule) real, CUmodule *ret_module, CUlibrary library)
{
	CUmodule got = NULL;

	USE(handle(library), false, real(ret_module ? &got : NULL, library), *ret_module = got);
}

CUresult gs_cu_kernel_function(GS_FN(cuKernelGetFunction) real, CUfunction *ret_function, CUkernel kernel)
{
	CUfunction got = NULL;

	USE(gs_code_owner((CUfunction)(void *)kernel), false, real(ret_function ? &got : NULL, kernel),
	    *ret_function = got);
}

CUresult gs_cu_func_load(GS_FN(cuFuncLoad) real, CUfunction f)
{
	USE(gs_code_owner(f), true, real(f), );
}
