# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""nvidia-ml-py, unmodified: the card is as large as it should be, what a program
takes and gives back shows, and the program finds itself in the list of processes."""
from importlib.metadata import version

import checks

import ctypes
import os

import pynvml

pynvml.nvmlInit()
checks.same("number of GPUs", pynvml.nvmlDeviceGetCount(), 1)
device = pynvml.nvmlDeviceGetHandleByIndex(0)
uuid = pynvml.nvmlDeviceGetUUID(device)
checks.same("index by UUID", pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByUUID(uuid)), 0)
checks.same("memory in use before any context", checks.nvml_memory(), 0)
checks.same("processes before any context", len(pynvml.nvmlDeviceGetComputeRunningProcesses(device)), 0)

# NVML only looks on: something has to use the GPU.
cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *args):
    checks.same(name, getattr(cuda, name)(*args), 0)


context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
call("cuInit", 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
overhead = checks.nvml_memory()
assert overhead > 0, "a context costs nothing"
size = 256 * checks.MIB
held = []
while (code := cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))) == 0:
    held.append(ctypes.c_uint64(pointer.value))
    checks.same("memory in use", checks.nvml_memory(), overhead + len(held) * size)
checks.same("the answer at the end", code, 2)  # CUDA_ERROR_OUT_OF_MEMORY
checks.nvml_own(len(held) * size)
taken = len(held) * size
for p in held:
    call("cuMemFree_v2", p)
checks.same("memory in use after freeing", checks.nvml_memory(), overhead)
call("cuCtxDestroy_v2", context)
checks.same("memory in use after the context", checks.nvml_memory(), 0)
checks.same("processes after the context", [p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(device)
                                             if p.pid == os.getpid() and p.usedGpuMemory], [])
pynvml.nvmlDeviceGetUtilizationRates(device)
pynvml.nvmlShutdown()
checks.finish(client="nvidia-ml-py " + version("nvidia-ml-py"), held=taken, error="cuMemAlloc gave 2, CUDA_ERROR_OUT_OF_MEMORY", free_after=checks.TOTAL)
