# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch inside a slice: it sees the slice as the card, computes right, and gets
its own out-of-memory error at the limit."""
import sys

import torch

limit = int(sys.argv[1])
free, total = torch.cuda.mem_get_info()
assert total == limit, f"mem_get_info says {total}, the limit is {limit}"
assert torch.cuda.get_device_properties(0).total_memory == limit
a = torch.randn(512, 512, device="cuda")
assert torch.allclose((a @ a).cpu(), a.cpu() @ a.cpu(), atol=1e-2)
held = []
try:
    while True:
        held.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda"))
except torch.cuda.OutOfMemoryError as e:
    print("out of memory after", len(held) * 64, "MiB:", str(e).splitlines()[0])
assert len(held) * (64 << 20) <= limit
held.clear()
torch.cuda.empty_cache()
torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
print("PyTorch", torch.__version__, "passed")
