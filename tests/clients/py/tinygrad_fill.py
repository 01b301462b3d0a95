# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""tinygrad's CUDA device, unmodified: element-wise kernels, a matrix product, a
captured graph, and its own out-of-memory error."""
from importlib.metadata import version

import checks

import ctypes

from tinygrad import Device, Tensor, TinyJit, dtypes
from tinygrad.runtime.autogen import cuda

device = Device["CUDA"]


def info():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    checks.same("cuMemGetInfo's answer", cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), 0)
    return free.value, total.value


def alloc(size):
    t = Tensor.empty(size, dtype=dtypes.uint8, device="CUDA").realize()
    t.uop.buffer.ensure_allocated()
    return t


checks.driver_memory(*info())
checks.nvml_own(1)

# What is copied comes back as it was. Kernels compute nothing on a simulated GPU.
checks.same("what was copied", Tensor([1, 2, 3, 4], device="CUDA").realize().tolist(), [1, 2, 3, 4])
(Tensor([1.0, 2.0, 3.0], device="CUDA") + 1).realize()
Tensor.zeros(1024, device="CUDA").contiguous().realize()
(Tensor.ones(256, 256, device="CUDA").contiguous() @ Tensor.ones(256, 256, device="CUDA").contiguous()).realize()


@TinyJit
def step(x):  # from its third call on a captured graph
    y = (x * 2).contiguous()
    return (y + 1).contiguous().sum().realize()


x = Tensor.ones(4096, device="CUDA").contiguous().realize()
for _ in range(5):
    step(x)
device.synchronize()
del x
step.reset()
device.allocator.free_cache()

held = checks.fill(alloc, MemoryError, "failed on CUDA", info)
checks.recover(held, alloc, device.allocator.free_cache, info)
(Tensor.ones(16, device="CUDA").contiguous() + 1).realize()
device.synchronize()
checks.finish(client="tinygrad " + version("tinygrad"), via=type(device.renderer).__name__)
