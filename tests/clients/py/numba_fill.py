# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""numba-cuda, unmodified: compiles and launches a kernel, copies, uses streams and
events, and gets its own out-of-memory error."""
from importlib.metadata import version

import checks

import numpy as np
from numba import cuda
from numba.cuda.cudadrv.driver import CudaAPIError


@cuda.jit
def add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


def info():
    return tuple(cuda.current_context().get_memory_info())


def alloc(size):
    return cuda.device_array(size, dtype=np.uint8)


checks.driver_memory(*info())
checks.nvml_own(1)

# What is copied comes back as it was. Kernels compute nothing on a simulated GPU.
data = np.arange(1 << 16, dtype=np.float32)
stream = cuda.stream()
start, end = cuda.event(), cuda.event()
pinned = cuda.pinned_array(data.shape, dtype=data.dtype)
pinned[:] = data
a = cuda.to_device(pinned, stream=stream)
b = cuda.to_device(data)
out = cuda.device_array_like(a)
start.record(stream)
add[512, 128, stream](a, b, out)
add[512, 128](a, b, out)
end.record(stream)
end.synchronize()
assert cuda.event_elapsed_time(start, end) > 0
stream.synchronize()
cuda.synchronize()
back = a.copy_to_host(stream=stream)
stream.synchronize()
assert np.array_equal(back, data)
assert np.array_equal(b.copy_to_host(), data)
managed = cuda.managed_array(1 << 16, dtype=np.uint8)
managed[:] = 7
del a, b, out, pinned, managed
cuda.current_context().memory_manager.deallocations.clear()

held = checks.fill(alloc, CudaAPIError, "CUDA_ERROR_OUT_OF_MEMORY", info)
checks.recover(held, alloc, cuda.current_context().memory_manager.deallocations.clear, info)
add[512, 128](*(cuda.to_device(data) for _ in range(3)))
cuda.synchronize()
checks.finish(client="numba-cuda " + version("numba-cuda"))
