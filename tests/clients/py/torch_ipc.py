# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors shared between two processes: the memory counts once, both see what
either copies, and it lives until the last of them lets go."""
import os
import time
import warnings

import checks

warnings.filterwarnings("ignore", message="(?s).*with CUDA capability")

import pynvml  # noqa: E402
import torch  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402

# The copy of this process has none of its threads, which torch would wait for.
torch.set_num_threads(1)

SIZE = 1024 * checks.MIB // 4  # more than a context takes
NUMBERS = torch.arange(1 << 16, dtype=torch.float32)


def listed():
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    return {p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(device)}


def child(tensors, answers, done):
    shared = tensors.get()
    same = torch.equal(shared[: len(NUMBERS)].cpu(), NUMBERS)
    shared[: len(NUMBERS)].copy_(NUMBERS * 2)
    torch.cuda.synchronize()
    total = torch.cuda.mem_get_info()[1]
    answers.put((same, total, shared.numel(), os.getpid()))
    done.wait()
    del shared


def main():
    # A copy of this process, which has not asked anything of CUDA yet.
    context = mp.get_context("fork")
    tensors, answers, done = context.Queue(), context.Queue(), context.Event()
    process = context.Process(target=child, args=(tensors, answers, done), daemon=True)
    process.start()
    block = torch.zeros(SIZE, dtype=torch.float32, device="cuda")
    block[: len(NUMBERS)].copy_(NUMBERS)
    torch.cuda.synchronize()
    before = checks.nvml_memory()
    tensors.put(block)
    same, total, numbers, pid = answers.get(timeout=120)
    checks.same("that the child saw what the parent copied", same, True)
    checks.same("the child's size of the GPU", total, checks.TOTAL)
    checks.same("the child's numbers", numbers, SIZE)
    checks.same("that the parent sees what the child copied", torch.equal(block[: len(NUMBERS)].cpu(), NUMBERS * 2), True)
    both = checks.nvml_memory()
    assert both - before < SIZE * 4, f"the memory counts twice: {before} bytes in use before the child, {both} with it"
    assert {os.getpid(), pid} <= listed(), listed()
    done.set()
    process.join(60)
    checks.same("the child's exit code", process.exitcode, 0)
    # What a dead process held may be counted for a second; it must go by itself.
    end = time.monotonic() + 10
    while checks.nvml_memory() != before and time.monotonic() < end:
        time.sleep(0.05)
    checks.same("bytes in use after the child", checks.nvml_memory(), before)
    del block
    torch.cuda.ipc_collect()
    torch.cuda.empty_cache()
    assert checks.nvml_memory() <= before - SIZE * 4, "the memory was not given back"
    checks.finish(client=f"torch {torch.__version__}, a tensor in two processes")


if __name__ == "__main__":
    main()
