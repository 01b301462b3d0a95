# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch, unmodified: copies, kernels, streams, events, autograd, an optimiser's step,
CUDA graphs, its caching allocator, and its own out-of-memory error with its own figures."""
import os
import re
import warnings

import checks

# Its own remark that it was not built for so new a GPU.
warnings.filterwarnings("ignore", message="(?s).*with CUDA capability")

import torch  # noqa: E402

OLD = torch.__version__.startswith("1.")
ERROR = RuntimeError if OLD else torch.OutOfMemoryError
SETTINGS = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
POOL = "cudaMallocAsync" in SETTINGS  # memory is the driver's pool's, not PyTorch's own


def info():
    return torch.cuda.mem_get_info()


def alloc(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def release():
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


checks.same("torch.cuda.is_available", torch.cuda.is_available(), True)
checks.same("torch's count of GPUs", torch.cuda.device_count(), 1)
properties = torch.cuda.get_device_properties(0)
checks.same("torch's size of the GPU", properties.total_memory, checks.TOTAL)
checks.driver_memory(*info())
checks.nvml_own(1)
if not OLD:
    checks.same("cudaMemGetInfo", tuple(torch.cuda.cudart().cudaMemGetInfo(0)), info())
    assert 0 <= torch.cuda.utilization() <= 100 and 0 <= torch.cuda.memory_usage() <= 100

# What is copied comes back as it was. Kernels compute nothing on a simulated GPU.
data = torch.arange(1 << 16, dtype=torch.float32)
checks.same("what was copied", torch.equal(data.cuda().cpu(), data), True)
pinned = data.pin_memory()
checks.same("what was copied from pinned memory", torch.equal(pinned.cuda(non_blocking=True).cpu(), data), True)
a = data.cuda()
checks.same("what was copied on the device", torch.equal(a.clone().cpu(), data), True)

# Element-wise kernels, reductions, indices, random numbers.
b = ((a + 1) * 2).relu().sum() + torch.randn(1 << 16, device="cuda").mean()
torch.zeros(1 << 16, device="cuda").index_add_(0, torch.zeros(16, dtype=torch.int64, device="cuda"), a[:16])
torch.cuda.synchronize()

# Streams that wait for each other, and events with times.
one, two = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
with torch.cuda.stream(one):
    start.record()
    c = a * 2
two.wait_stream(one)
with torch.cuda.stream(two):
    c.add_(1)
    end.record()
end.synchronize()
assert start.elapsed_time(end) > 0, "two kernels took no time"
assert start.query() and one.query()

# Autograd and an optimiser, without a matrix product.
w = torch.ones(4096, device="cuda", requires_grad=True)
bias = torch.zeros(4096, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([w, bias], lr=0.1, momentum=0.9)
for _ in range(3):
    optimizer.zero_grad()
    loss = ((a[:4096] * w + bias).tanh() - 1).pow(2).mean()
    loss.backward()
    optimizer.step()
checks.same("shape of the gradient", w.grad.shape, w.shape)

# A captured graph.
if not OLD:  # PyTorch has them from CUDA 11 on
    graph = torch.cuda.CUDAGraph()
    static = torch.zeros(4096, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        out = static * 2 + 1
    for _ in range(5):
        graph.replay()
    torch.cuda.synchronize()
    del graph, out, static

# Matrix products are cuBLAS's, which carries a CUDA runtime of its own.
try:
    m = torch.ones(64, 64, device="cuda")
    m @ m
    torch.cuda.synchronize()
    blas = "runs"
except RuntimeError as e:
    blas = str(e).splitlines()[0]
    checks.same("a kernel after it", (a + 1).shape, a.shape)

if blas == "runs":  # then cuDNN does too
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 10)).cuda()
    step = torch.optim.SGD(net.parameters(), lr=0.01)
    net(torch.randn(4, 3, 16, 16, device="cuda")).sum().backward()
    step.step()
    checks.same("shape of a weight's gradient", net[0].weight.grad.shape, net[0].weight.shape)
    net = step = None
    blas = "runs, and a step with a convolution and a linear layer"

# The allocator's own account.
if not POOL:
    before = torch.cuda.memory_allocated()
    block = alloc(64 * checks.MIB)
    checks.same("memory_allocated", torch.cuda.memory_allocated() - before, 64 * checks.MIB)
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
    del block

a = b = c = w = bias = m = loss = optimizer = start = end = pinned = None
release()
held = checks.fill(alloc, ERROR, "out of memory", info, smallest=32 * checks.MIB)

# The figures in its text are those of the share.
try:
    alloc(checks.TOTAL)
    raise AssertionError("the whole GPU was allocated twice")
except ERROR as e:
    text = str(e)
total = f"{checks.TOTAL / 2**30:.2f} GiB"
pattern = f"{total} total capacity" if OLD else f"total capacity of {total}"
if not POOL and not re.search(pattern, text):
    raise AssertionError(f"its text does not say {pattern!r}: {text}")
if "this process has" in text:
    mine = f"this process has {checks.nvml_process() / 2**30:.2f} GiB memory in use"
    if mine not in text:
        raise AssertionError(f"its text does not say {mine!r}: {text}")
if not POOL:
    assert torch.cuda.memory_stats()["num_ooms"] > 0
checks.recover(held, alloc, release, info)
(torch.ones(1 << 16, device="cuda") + 1).sum()
torch.cuda.synchronize()
checks.finish(client=f"torch {torch.__version__}" + (f", {SETTINGS}" if SETTINGS else ""), notes={"a matrix product": blas})
