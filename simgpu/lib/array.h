// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* array.h: what the files of arrays, mipmaps and textures share. */
#ifndef SG_ARRAY_H
#define SG_ARRAY_H

#include "sg.h"

/* CUDA_ARRAY3D_* */
#define SG_ARRAY_LAYERED 0x01u
#define SG_ARRAY_SURFACE 0x02u
#define SG_ARRAY_CUBEMAP 0x04u
#define SG_ARRAY_SPARSE 0x40u
#define SG_ARRAY_DEFERRED 0x80u
#define SG_ARRAY_UNBACKED (SG_ARRAY_SPARSE | SG_ARRAY_DEFERRED) /* no memory when made */
#define SG_ARRAY_PAGE 65536u

struct CUmipmappedArray_st {
    uint32_t magic;
    CUDA_ARRAY3D_DESCRIPTOR desc;
    unsigned levels;
    CUdeviceptr base;
    size_t bytes;
    CUcontext ctx;
    CUarray level[32];
    CUmipmappedArray next;
};

/* The layout of CUDA_ARRAY_SPARSE_PROPERTIES. */
struct sg_sparse {
    unsigned width, height, depth; /* of a tile */
    unsigned first_tail_level;
    unsigned long long tail_size;
    unsigned flags;
    unsigned reserved[4];
};

CUresult sg_array_requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, unsigned flags, size_t bytes);
CUresult sg_sparse_properties(struct sg_sparse *out, const CUDA_ARRAY3D_DESCRIPTOR *d);
void sg_mipmap_free_context(CUcontext ctx); /* the lock is held */

#endif
