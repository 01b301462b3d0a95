# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""Triton, unmodified: it compiles a kernel for the GPU and a launcher for the host, loads
the one through the driver's interface and launches it on PyTorch's tensors and streams."""
import checks

import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, out, n, by, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * by, mask=at < n)


@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (128, 256)], key=["n"])
@triton.jit
def tuned(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


n = 1 << 16
x = torch.ones(n, device="cuda")
out = torch.empty_like(x)
checks.driver_memory(*torch.cuda.mem_get_info())
checks.nvml_own(1)
kernel = scale[(n // 1024,)](x, out, n, 2.0, BLOCK=1024)
assert kernel.asm["cubin"], "no code was made"
stream = torch.cuda.Stream()
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
with torch.cuda.stream(stream):
    start.record()
    for _ in range(10):
        scale[(n // 1024,)](x, out, n, 2.0, BLOCK=1024)
    end.record()
end.synchronize()
assert start.elapsed_time(end) > 0, "kernels took no time"
tuned[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, n)
torch.cuda.synchronize()
checks.finish(client=f"triton {triton.__version__}")
