// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * params.c: the parameters of a kernel, where its image can be read: PTX declares
 * them, a cubin lists them. Of other images they are not known, which is said as
 * "not supported": a wrong count would let a program build a wrong launch.
 */
#include <stdio.h>

#include "sg.h"

#define MOST_PARAMS 4096u

bool sg_param_set(CUfunction f, unsigned index, unsigned offset, unsigned size)
{
    if (index >= MOST_PARAMS)
        return false;
    if (index >= f->nparams) {
        struct sg_param *v = realloc(f->params, (index + 1) * sizeof(*v));

        if (!v)
            return false;
        memset(v + f->nparams, 0, (index + 1 - f->nparams) * sizeof(*v));
        f->params = v;
        f->nparams = index + 1;
    }
    f->params[index] = (struct sg_param){offset, size};
    return true;
}

static unsigned type_bytes(const char *p)
{
    static const struct {
        const char *type;
        unsigned bytes;
    } types[] = {{".b8", 1},  {".u8", 1},  {".s8", 1},  {".b16", 2},  {".u16", 2}, {".s16", 2}, {".f16", 2}, {".b32", 4},
                 {".u32", 4}, {".s32", 4}, {".f32", 4}, {".f16x2", 4}, {".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8},
                 {".b128", 16}};

    for (unsigned k = 0; k < SG_LEN(types); k++) {
        size_t n = strlen(types[k].type);

        if (!strncmp(p, types[k].type, n) && (p[n] == ' ' || p[n] == '\t' || p[n] == '\n'))
            return types[k].bytes;
    }
    return 0;
}

/* One declaration, [p, end): ".param .align 8 .b8 name[24]". The alignment behind
 * .ptr is that of what the pointer points to. */
static bool read_param(const char *p, const char *end, unsigned *size, unsigned *align)
{
    unsigned each = 0, n = 1;

    *align = 0;
    for (; p < end && *p != '['; p++) {
        if (*p != '.')
            continue;
        if (!each && !strncmp(p, ".align", 6) && sscanf(p + 6, " %u", align) != 1)
            return false;
        if (!each)
            each = type_bytes(p);
    }
    if (p < end && (sscanf(p, "[ %u ]", &n) != 1 || !n || n > 65536))
        return false;
    *size = each * n;
    if (!*align)
        *align = each;
    return each && *align <= 256 && !(*align & (*align - 1));
}

void sg_params_of_text(const char *p, const char *body, CUfunction f)
{
    const char *end;
    unsigned at = 0, size, align;

    while (p < body && *p != '(')
        p++;
    for (end = p; end < body && *end != ')'; end++)
        ;
    if (end == body) { /* no list at all: a kernel without parameters */
        f->params_read = p == body;
        return;
    }
    for (p++; p < end; p++) {
        const char *comma = memchr(p, ',', (size_t)(end - p)), *stop = comma ? comma : end;
        const char *word = p;

        while (word < stop && *word != '.')
            word++;
        if (word == stop && f->nparams == 0 && stop == end)
            break; /* "()" */
        if (strncmp(word, ".param", 6) != 0 || !read_param(word + 6, stop, &size, &align))
            return;
        at = (at + align - 1) / align * align;
        if (!sg_param_set(f, f->nparams, at, size))
            return;
        at += size;
        p = stop;
    }
    f->params_read = true;
}

static CUresult count(CUfunction f, size_t *n)
{
    SG_ENTER();
    if (!n)
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_func_check(f) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!f->params_read)
        return CUDA_ERROR_NOT_SUPPORTED;
    *n = f->nparams;
    return CUDA_SUCCESS;
}

static CUresult info(CUfunction f, size_t i, size_t *offset, size_t *size)
{
    size_t n;
    CUresult r = count(f, &n);

    if (r != CUDA_SUCCESS)
        return r;
    if (!offset || i >= n)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = f->params[i].offset;
    if (size)
        *size = f->params[i].size;
    return CUDA_SUCCESS;
}

SG_API CUresult cuFuncGetParamInfo(CUfunction f, size_t i, size_t *offset, size_t *size)
{
    return info(f, i, offset, size);
}

SG_API CUresult cuKernelGetParamInfo(CUkernel k, size_t i, size_t *offset, size_t *size)
{
    return info((CUfunction)k, i, offset, size);
}

CUresult cuFuncGetParamCount(CUfunction f, size_t *n);
SG_API CUresult cuFuncGetParamCount(CUfunction f, size_t *n)
{
    return count(f, n);
}

CUresult cuKernelGetParamCount(CUkernel k, size_t *n);
SG_API CUresult cuKernelGetParamCount(CUkernel k, size_t *n)
{
    return count((CUfunction)k, n);
}
