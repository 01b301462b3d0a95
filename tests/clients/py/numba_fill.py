# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""numba-cuda, unmodified: compiles and launches a kernel, copies, sees the share,
and gets its own out-of-memory error at the limit."""
import sys

import numpy as np
from numba import cuda
from numba.cuda.cudadrv.driver import CudaAPIError

limit = int(sys.argv[1])


@cuda.jit
def twice(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


free, total = cuda.current_context().get_memory_info()
assert total == limit, f"total {total}, want {limit}"
data = np.arange(1024, dtype=np.float32)
on_device = cuda.to_device(data)
twice[8, 128](on_device)
cuda.synchronize()
assert on_device.copy_to_host().shape == data.shape  # kernels compute nothing on a simulated GPU
held = []
step = 64 << 20
try:
    while True:
        held.append(cuda.device_array(step, dtype=np.uint8))
except CudaAPIError as e:
    assert "CUDA_ERROR_OUT_OF_MEMORY" in str(e), e
    print("numba's own error:", e)
assert limit - (512 << 20) <= len(held) * step <= limit, len(held)
held.pop()
held.append(cuda.device_array(step, dtype=np.uint8))
print("passed with", len(held) * step, "bytes held")
