# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""cuda.core over cuda.bindings, unmodified: compiles with NVRTC, launches, uses
streams and events, and gets its own out-of-memory error out of a memory pool."""
from importlib.metadata import version

import checks

from cuda.bindings import driver
from cuda.core import Device, EventOptions, LaunchConfig, Program, ProgramOptions, launch

device = Device(0)
device.set_current()
stream = device.create_stream()


def info():
    code, free, total = driver.cuMemGetInfo()
    checks.same("cuMemGetInfo's answer", int(code), 0)
    return free, total


def alloc(size):
    return device.allocate(size, stream=stream)


checks.driver_memory(*info())
checks.nvml_own(1)

source = 'extern "C" __global__ void scale(float *x, float by, size_t n)' \
    " { size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; if (i < n) x[i] *= by; }"
arch = "sm_" + device.arch
kernel = Program(source, code_type="c++", options=ProgramOptions(arch=arch)).compile("cubin").get_kernel("scale")
buffer = alloc(4096 * 4)
start = stream.record(options=EventOptions(timing_enabled=True))
for _ in range(10):
    launch(stream, LaunchConfig(grid=32, block=128), kernel, buffer, 2.0, 4096)
end = stream.record(options=EventOptions(timing_enabled=True))
end.sync()
assert end - start > 0
stream.sync()
buffer.close(stream)


def release():
    stream.sync()
    _, pool = driver.cuDeviceGetDefaultMemPool(0)
    driver.cuMemPoolTrimTo(pool, 0)
    driver.cuCtxSynchronize()  # device.sync() is a call of NVIDIA's runtime


release()
# A pool takes from the device in larger pieces.
held = checks.fill(alloc, Exception, "CUDA_ERROR_OUT_OF_MEMORY", info, smallest=32 * checks.MIB)
checks.recover(held, alloc, release, info)
checks.finish(client="cuda-core " + version("cuda-core"))
