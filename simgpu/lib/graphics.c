// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * graphics.c: sharing with OpenGL, as on a machine without a display: there is
 * no graphics context, so nothing of one can be registered, and no handle of
 * such a thing is good. EGL, VDPAU and NvSci are not supported at all.
 */
#include "sg.h"

/* The arguments do not matter. */
#define REFUSE(name, code, ...)             \
    SG_API CUresult name(__VA_ARGS__)       \
    {                                       \
        SG_ENTER();                         \
        return code;                        \
    }
#define _ SG_UNUSED
#define NO_CONTEXT CUDA_ERROR_INVALID_GRAPHICS_CONTEXT

REFUSE(cuGLInit, CUDA_SUCCESS, void)
REFUSE(cuGLCtxCreate, NO_CONTEXT, CUcontext *c _, unsigned int f _, CUdevice d _)
REFUSE(cuGLCtxCreate_v2, NO_CONTEXT, CUcontext *c _, unsigned int f _, CUdevice d _)
REFUSE(cuGLGetDevices, NO_CONTEXT, unsigned int *n _, CUdevice *v _, unsigned int m _, CUGLDeviceList l _)
REFUSE(cuGLGetDevices_v2, NO_CONTEXT, unsigned int *n _, CUdevice *v _, unsigned int m _, CUGLDeviceList l _)
REFUSE(cuGLMapBufferObject, NO_CONTEXT, CUdeviceptr_v1 *p _, unsigned int *n _, GLuint b _)
REFUSE(cuGLMapBufferObjectAsync, NO_CONTEXT, CUdeviceptr_v1 *p _, unsigned int *n _, GLuint b _, CUstream s _)
REFUSE(cuGLMapBufferObjectAsync_v2, NO_CONTEXT, CUdeviceptr *p _, size_t *n _, GLuint b _, CUstream s _)
REFUSE(cuGLMapBufferObjectAsync_v2_ptsz, NO_CONTEXT, CUdeviceptr *p _, size_t *n _, GLuint b _, CUstream s _)
REFUSE(cuGLMapBufferObject_v2, NO_CONTEXT, CUdeviceptr *p _, size_t *n _, GLuint b _)
REFUSE(cuGLMapBufferObject_v2_ptds, NO_CONTEXT, CUdeviceptr *p _, size_t *n _, GLuint b _)
REFUSE(cuGLRegisterBufferObject, NO_CONTEXT, GLuint b _)
REFUSE(cuGLSetBufferObjectMapFlags, NO_CONTEXT, GLuint b _, unsigned int f _)
REFUSE(cuGLUnmapBufferObject, NO_CONTEXT, GLuint b _)
REFUSE(cuGLUnmapBufferObjectAsync, NO_CONTEXT, GLuint b _, CUstream s _)
REFUSE(cuGLUnregisterBufferObject, NO_CONTEXT, GLuint b _)
REFUSE(cuGraphicsGLRegisterBuffer, CUDA_ERROR_OPERATING_SYSTEM, CUgraphicsResource *r _, GLuint b _, unsigned int f _)
REFUSE(cuGraphicsGLRegisterImage, CUDA_ERROR_OPERATING_SYSTEM, CUgraphicsResource *r _, GLuint b _, GLenum e _,
       unsigned int f _)

/* ---- registered resources, of which there are none ------------------------------------------ */

#define NO_RESOURCE CUDA_ERROR_INVALID_HANDLE
REFUSE(cuGraphicsResourceGetMappedMipmappedArray, NO_RESOURCE, CUmipmappedArray *a _, CUgraphicsResource r _)
REFUSE(cuGraphicsResourceGetMappedPointer, NO_RESOURCE, CUdeviceptr_v1 *p _, unsigned int *n _, CUgraphicsResource r _)
REFUSE(cuGraphicsResourceGetMappedPointer_v2, NO_RESOURCE, CUdeviceptr *p _, size_t *n _, CUgraphicsResource r _)
REFUSE(cuGraphicsResourceSetMapFlags, NO_RESOURCE, CUgraphicsResource r _, unsigned int f _)
REFUSE(cuGraphicsResourceSetMapFlags_v2, NO_RESOURCE, CUgraphicsResource r _, unsigned int f _)
REFUSE(cuGraphicsSubResourceGetMappedArray, NO_RESOURCE, CUarray *a _, CUgraphicsResource r _, unsigned int i _,
       unsigned int l _)
REFUSE(cuGraphicsUnregisterResource, NO_RESOURCE, CUgraphicsResource r _)

#define MAP(name)                                                                                        \
    REFUSE(name, n ? NO_RESOURCE : CUDA_ERROR_INVALID_VALUE, unsigned int n, CUgraphicsResource *r _, CUstream s _)
MAP(cuGraphicsMapResources)
MAP(cuGraphicsMapResources_ptsz)
MAP(cuGraphicsUnmapResources)
MAP(cuGraphicsUnmapResources_ptsz)
