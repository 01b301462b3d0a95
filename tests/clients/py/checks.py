# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""What the clients' scripts share: SCRIPT TOTAL RESULT, where TOTAL is the size in
bytes that the GPU must appear to have, and RESULT the JSON file that is written at
the end. Nothing is printed, so every byte that a run shows is not the script's."""
import gc
import json
import os
import sys

import pynvml

TOTAL = int(sys.argv[1])
MIB = 1 << 20
_facts = {}


def same(what, have, want):
    if have != want:
        raise AssertionError(f"{what} is {have}, want {want}")


def nvml_memory():
    """Checks what NVML says of the GPU and returns the bytes in use."""
    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    old = pynvml.nvmlDeviceGetMemoryInfo(device)
    same("NVML's total", old.total, TOTAL)
    same("NVML's used + free", old.used + old.free, TOTAL)
    new = pynvml.nvmlDeviceGetMemoryInfo(device, version=pynvml.nvmlMemory_v2)
    same("NVML's total (v2)", new.total, TOTAL)
    same("NVML's used + free + reserved (v2)", new.used + new.free + new.reserved, TOTAL)
    _facts["device"] = pynvml.nvmlDeviceGetName(device)
    return old.used


def nvml_own(least):
    """Checks that NVML lists this process alone, with at least so many bytes."""
    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    listed = {p.pid: p.usedGpuMemory for p in pynvml.nvmlDeviceGetComputeRunningProcesses(device)}
    same("NVML's list of processes", list(listed), [os.getpid()])
    if listed[os.getpid()] < least:
        raise AssertionError(f"NVML says that this process has {listed[os.getpid()]} bytes, it has at least {least}")


def nvml_process():
    """Returns the bytes that NVML has for this process."""
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    return {p.pid: p.usedGpuMemory for p in pynvml.nvmlDeviceGetComputeRunningProcesses(device)}[os.getpid()]


def driver_memory(free, total):
    """Checks what cuMemGetInfo says against the size and against NVML."""
    same("cuMemGetInfo's total", total, TOTAL)
    same("NVML's used and cuMemGetInfo's total - free", nvml_memory(), total - free)
    return free


def fill(alloc, error, words, info, smallest=MIB):
    """Allocates in ever smaller pieces until alloc(bytes) raises error, whose text
    must have words in it, also for the smallest; returns the pieces."""
    held, size, step = [], 0, 256 * MIB
    _facts["free_before"], _ = info()
    while step >= smallest:
        try:
            held.append(alloc(step))
            size += step
        except error as e:
            text = str(e)
            if words not in text:
                raise
            _facts.setdefault("error", f"{type(e).__name__}: {text.splitlines()[0]}")
            step //= 2
    _facts.setdefault("held", size)
    nvml_memory()
    nvml_own(size)
    return held


def recover(held, alloc, release, info):
    """Frees the pieces, checks that the bytes are back and can be taken again."""
    held.clear()
    gc.collect()
    release()
    free, total = info()
    driver_memory(free, total)
    same("bytes free after everything was freed", free, _facts["free_before"])
    _facts["free_after"] = free
    size = min(free // 2 // MIB * MIB, 1024 * MIB)
    again = alloc(size)
    if info()[0] > free - size:
        raise AssertionError(f"{free} bytes free, {size} taken, now {info()[0]} free")
    return again


def finish(**facts):
    _facts.update(facts)
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        json.dump(_facts, f)
