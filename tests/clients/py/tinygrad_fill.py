# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""tinygrad's CUDA device, unmodified: runs a computation, then gets its own
out-of-memory error at the limit."""
import sys

from tinygrad import Device, Tensor, dtypes

limit = int(sys.argv[1])
dev = Device["CUDA"]
(Tensor.ones(256, 256, device="CUDA").contiguous() @ Tensor.ones(256, 256, device="CUDA").contiguous()).realize()
dev.synchronize()
held = []
step = 64 << 20
try:
    while True:
        held.append(Tensor.empty(step, dtype=dtypes.uint8, device="CUDA").realize())
        held[-1].uop.buffer.ensure_allocated()
except MemoryError as e:
    causes, c = [], e
    while c:
        causes.append(str(c))
        c = c.__cause__ or c.__context__
    assert any("CUDA Error 2, out of memory" in c for c in causes), causes
    print("tinygrad's own error:", e)
assert limit - (512 << 20) <= len(held) * step <= limit, len(held)
print("passed with", len(held) * step, "bytes held")
