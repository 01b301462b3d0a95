# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on two GPUs: each has its own size, its own account and its own out-of-memory
error, and tensors go from one to the other."""
import warnings

import checks

warnings.filterwarnings("ignore", message="(?s).*with CUDA capability")

import pynvml  # noqa: E402
import torch  # noqa: E402

OLD = torch.__version__.startswith("1.")
ERROR = RuntimeError if OLD else torch.OutOfMemoryError

checks.same("torch's count of GPUs", torch.cuda.device_count(), 2)
pynvml.nvmlInit()
checks.same("NVML's count of GPUs", pynvml.nvmlDeviceGetCount(), 2)
data = torch.arange(1 << 16, dtype=torch.float32)
zero, one = data.to("cuda:0"), data.to("cuda:1")
for i, t in enumerate((zero, one)):
    checks.same("its device", t.device.index, i)
    free, total = torch.cuda.mem_get_info(i)
    checks.same(f"size of GPU {i}", total, checks.TOTAL)
    nvml = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(i))
    checks.same(f"NVML's size of GPU {i}", nvml.total, checks.TOTAL)
    checks.same(f"NVML's bytes in use of GPU {i}", nvml.used, total - free)

# From one to the other and back.
checks.same("what went through both", torch.equal(zero.to("cuda:1").to("cuda:0").cpu(), data), True)
torch.cuda.can_device_access_peer(0, 1)
with torch.cuda.device(1):
    stream, event = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(stream):
        moved = zero.to("cuda:1", non_blocking=True)
        event.record()
    event.synchronize()
    checks.same("what was copied on a stream of the other", torch.equal(moved.cpu(), data), True)

# One being full takes nothing from the other.
held = []
try:
    while True:
        held.append(torch.empty(256 * checks.MIB, dtype=torch.uint8, device="cuda:1"))
except ERROR as e:
    text = str(e)
assert "GPU 1" in text, text
assert "out of memory" in text, text
other = torch.empty(512 * checks.MIB, dtype=torch.uint8, device="cuda:0")
checks.same("bytes of the full one", len(held) * 256 * checks.MIB > checks.TOTAL - 1024 * checks.MIB, True)
taken = len(held) * 256 * checks.MIB
held.clear()
torch.cuda.empty_cache()
again = torch.empty(512 * checks.MIB, dtype=torch.uint8, device="cuda:1")
torch.cuda.synchronize(0)
torch.cuda.synchronize(1)
checks.nvml_memory()
checks.finish(client=f"torch {torch.__version__}, two GPUs", held=taken, error=f"{type(ERROR()).__name__}: {text.splitlines()[0]}",
              free_after=torch.cuda.mem_get_info(1)[0])
