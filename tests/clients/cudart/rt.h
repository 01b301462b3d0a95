// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * rt.h: what the files of the stand-in libcudart share.
 *
 * The stand-in is a CUDA runtime of our own, made of calls of the public driver
 * interface and of nothing else, so that programs that are linked with a libcudart
 * can be run in tests where NVIDIA's refuses the driver. RT_MAJOR is 12 or 13: the
 * two differ in a few signatures and layouts. Names, numbers and layouts are the
 * public binary interface; the wording is our own. It is never installed.
 */
#ifndef RT_H
#define RT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_abi.h"

#if RT_MAJOR != 12 && RT_MAJOR != 13
#error "RT_MAJOR is 12 or 13"
#endif

#define RT_VERSION (RT_MAJOR == 12 ? 12090 : 13020)
#define RT_MAX_DEVICES 64

typedef int cudaError_t; /* the driver's numbers, and a few of the runtime's own: */
enum {
    RT_OK = 0,
    RT_INVALID_VALUE = 1,
    RT_OUT_OF_MEMORY = 2,
    RT_INVALID_CONFIGURATION = 9,
    RT_INVALID_SYMBOL = 13,
    RT_INVALID_MEMCPY_DIRECTION = 21,
    RT_INSUFFICIENT_DRIVER = 35,
    RT_NEEDS_NEWER_DRIVER = 36,
    RT_INVALID_DEVICE_FUNCTION = 98,
    RT_NO_DEVICE = 100,
    RT_INVALID_DEVICE = 101,
    RT_SYMBOL_NOT_FOUND = 500,
    RT_NOT_SUPPORTED = 801,
};

typedef struct { unsigned int x, y, z; } dim3;

enum rt_copy_kind { RT_HOST_TO_HOST, RT_HOST_TO_DEVICE, RT_DEVICE_TO_HOST, RT_DEVICE_TO_DEVICE, RT_BY_ADDRESS };

/* ---- the driver ------------------------------------------------------------ */

/* Every entry point that is used, as cuGetProcAddress gives it. One that the driver
 * lacks answers RT_NEEDS_NEWER_DRIVER. */
struct rt_driver {
#define D(base, symbol, version) __typeof__(&symbol) base;
#include "driver.def"
#undef D
};
extern struct rt_driver rt_drv;

/* rt_start loads and initialises the driver, once. */
cudaError_t rt_start(void);
/* rt_enter also makes a context current where the thread has none: the primary one
 * of the thread's device, as the runtime does at the first call that needs it. */
cudaError_t rt_enter(void);
/* rt_set remembers an error as the thread's last one, and returns it. */
cudaError_t rt_set(cudaError_t);
/* rt_primary retains the primary context of a device, once in the process. */
cudaError_t rt_primary(int device, CUcontext *ret);
/* rt_device is the thread's device. */
cudaError_t rt_device(int *ret);

/* ---- kernels and variables of the program ----------------------------------- */

/* rt_kernel finds the kernel of a host function, or takes a kernel's own handle. */
cudaError_t rt_kernel(const void *func, CUkernel *ret);
/* rt_variable finds a variable by its host shadow, for the current context. */
cudaError_t rt_variable(const void *symbol, CUdeviceptr *ret, size_t *ret_bytes);

/* ---- graphs ------------------------------------------------------------------ */

/* The runtime's copy of up to three dimensions. */
struct rt_pitched { void *ptr; size_t pitch, xsize, ysize; };
struct rt_pos { size_t x, y, z; };
struct rt_extent { size_t width, height, depth; };
struct rt_copy3d {
    CUarray src_array;
    struct rt_pos src_pos;
    struct rt_pitched src;
    CUarray dst_array;
    struct rt_pos dst_pos;
    struct rt_pitched dst;
    struct rt_extent extent;
    enum rt_copy_kind kind;
};
cudaError_t rt_copy3d(const struct rt_copy3d *, CUDA_MEMCPY3D *ret);

/* ---- exported functions --------------------------------------------------------- */

#define RT_API __attribute__((visibility("default")))
#define RT_UNUSED __attribute__((unused))

/* RT(name, parameters) { body } is an exported function. */
#define RT(name, ...)                       \
    RT_API cudaError_t name(__VA_ARGS__);   \
    RT_API cudaError_t name(__VA_ARGS__)

#define RT_TRY(expression)           \
    do {                             \
        cudaError_t e_ = (expression); \
        if (e_ != RT_OK)             \
            return rt_set(e_);       \
    } while (0)
#define RT_START() RT_TRY(rt_start())
#define RT_ENTER() RT_TRY(rt_enter())
/* A driver's answer is the runtime's: the numbers are one. */
#define RT_DRV(call) rt_set((cudaError_t)rt_drv.call)

/* Functions that only hand on: in the current context, or in none. */
#define RT_PASS(name, call, ...) \
    RT(name, __VA_ARGS__)        \
    {                            \
        RT_ENTER();              \
        return RT_DRV(call);     \
    }
#define RT_PASS_BARE(name, call, ...) \
    RT(name, __VA_ARGS__)             \
    {                                 \
        RT_START();                   \
        return RT_DRV(call);          \
    }

static inline CUdeviceptr rt_ptr(const void *p)
{
    return (CUdeviceptr)(uintptr_t)p;
}

static inline void *rt_addr(CUdeviceptr p)
{
    return (void *)(uintptr_t)p;
}

#endif
