# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""CuPy over NVIDIA's own runtime and compiler of CUDA 10.2, unmodified: copies, a kernel
that it compiles, streams, events, its memory pool, and its own out-of-memory error."""
import checks

import cupy
import numpy

pool = cupy.get_default_memory_pool()
ERROR = cupy.cuda.memory.OutOfMemoryError


def info():
    return cupy.cuda.runtime.memGetInfo()


def alloc(size):
    return cupy.empty(size, dtype=cupy.uint8)


checks.driver_memory(*info())
checks.same("cupy's Device.mem_info", tuple(cupy.cuda.Device(0).mem_info), tuple(info()))
checks.same("cupy's size of the GPU", cupy.cuda.runtime.getDeviceProperties(0)["totalGlobalMem"], checks.TOTAL)
data = numpy.arange(1 << 16, dtype=numpy.float32)
a = cupy.asarray(data)
checks.nvml_own(1)
checks.same("what was copied", bool((a.get() == data).all()), True)

source = 'extern "C" __global__ void scale(float *x, float by) { x[blockIdx.x * blockDim.x + threadIdx.x] *= by; }'
kernel = cupy.RawKernel(source, "scale")
start, end, stream = cupy.cuda.Event(), cupy.cuda.Event(), cupy.cuda.Stream(non_blocking=True)
with stream:
    start.record()
    for _ in range(10):
        kernel((256,), (256,), (a, numpy.float32(2)))
    end.record()
end.synchronize()
assert cupy.cuda.get_elapsed_time(start, end) > 0, "kernels took no time"
b = (a + 1) * 2
cupy.cuda.Stream.null.synchronize()
del a, b
pool.free_all_blocks()
held = checks.fill(alloc, ERROR, "Out of memory allocating", info)
checks.recover(held, alloc, pool.free_all_blocks, info)
cupy.cuda.Stream.null.synchronize()
checks.finish(client=f"cupy-cuda102 {cupy.__version__}")
