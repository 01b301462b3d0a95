# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""taichi, unmodified: it loads the driver's library so that no preloaded library
can come between; kernels, and its own error when it asks for too much."""
import os
from importlib.metadata import version

import checks

os.environ["ENABLE_TAICHI_HEADER_PRINT"] = "0"  # a greeting

import taichi as ti  # noqa: E402

ti.init(arch=ti.cuda, log_level=ti.CRITICAL, offline_cache=False)
x = ti.field(dtype=ti.f32, shape=1 << 16)


@ti.kernel
def fill(by: ti.f32):
    for i in x:
        x[i] = by * i


fill(2.0)
ti.sync()
checks.nvml_own(1)


def info():
    used = checks.nvml_memory()  # taichi has no call of its own
    return checks.TOTAL - used, checks.TOTAL


def alloc(size):
    return ti.ndarray(ti.u8, shape=(size,))


held = checks.fill(alloc, RuntimeError, "CUDA_ERROR_OUT_OF_MEMORY", info)
again = checks.recover(held, alloc, ti.sync, info)
fill(3.0)
ti.sync()
checks.finish(client="taichi " + version("taichi"))
