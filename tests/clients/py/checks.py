# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""What the clients' scripts share: SCRIPT TOTAL RESULT, where TOTAL is the size in
bytes that the GPU must appear to have, and RESULT the JSON file that is written at
the end. Nothing is printed, so every byte that a run shows is not the script's."""
import gc
import json
import os
import subprocess
import sys
import time

import pynvml

TOTAL = int(sys.argv[1])
MIB = 1 << 20
ROUNDS = 20 if TOTAL < 8 << 30 else 2
_facts = {}
_pool = {}


def same(what, have, want):
    if have != want:
        raise AssertionError(f"{what} is {have}, want {want}")


KEPT = 4 * MIB  # for a graph, see docs/simgpu/memory.md
CARD = "CLIENT_ON_A_CARD" in os.environ


def settled(info):
    """Returns what is free. On a card that takes memory unannounced a guess stands for it
    until the driver's figure has been looked at: it is waited for until nothing moves."""
    free, since = info()[0], time.monotonic()
    while CARD and time.monotonic() - since < 4:
        time.sleep(0.1)
        now = info()[0]
        if now != free:
            free, since = now, time.monotonic()
    return free


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


def smi_memory(used):
    """Checks what nvidia-smi prints, where there is one: whole MiB, used and reserved apart."""
    if "NVIDIA_SMI" not in os.environ:
        return
    text = subprocess.run([os.environ["NVIDIA_SMI"], "--query-gpu=memory.total,memory.used,memory.free,memory.reserved",
                           "--format=csv,noheader,nounits"], capture_output=True, text=True, check=True).stdout
    total, smi_used, free, reserved = map(int, text.split(","))
    same("nvidia-smi's total", total, TOTAL // MIB)
    if abs(smi_used + reserved - used / MIB) > 1 or abs(free - (TOTAL - used) / MIB) > 1:
        raise AssertionError(f"nvidia-smi prints {text.strip()}, NVML says that {used} bytes are used")


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
    used = nvml_memory()
    same("NVML's used and cuMemGetInfo's total - free", used, total - free)
    smi_memory(used)
    return free


def fill(alloc, error, words, info, smallest=MIB):
    """Allocates in ever smaller pieces until alloc(bytes) raises error, whose text
    must have words in it, also for the smallest; returns the pieces."""
    held, size, step = [], 0, 256 * MIB
    _facts["free_before"] = settled(info)
    _pool.update(error=error, smallest=smallest)
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
    free = settled(info)
    driver_memory(*info())
    # What a card keeps for graphs it gives up when it is full.
    kept = KEPT if CARD else 0
    if not 0 <= free - _facts["free_before"] <= kept:
        raise AssertionError(f"{_facts['free_before']} bytes were free, after everything was freed {free} are")
    _facts["free_after"] = free
    size = min(free // 2 // MIB * MIB, 1024 * MIB)
    again = alloc(size)
    if info()[0] > free - size:
        raise AssertionError(f"{free} bytes free, {size} taken, now {info()[0]} free")
    del again
    gc.collect()
    release()
    rounds(alloc, release, info)
    return alloc(size)


def rounds(alloc, release, info):
    """Runs out of memory and recovers, again and again: each time as much is had. Every
    other time what was freed stays in the client's own pool."""
    error, first = _pool["error"], None
    for i in range(ROUNDS):
        held, size, step = [], 0, 256 * MIB
        while step >= max(_pool["smallest"], 16 * MIB):
            try:
                held.append(alloc(step))
                size += step
            except error:
                step //= 2
        first = size if first is None else first
        same(f"bytes that could be had in round {i}", size, first)
        held.clear()
        gc.collect()
        if i % 2:
            release()
    driver_memory(*info())
    same(f"bytes free after {ROUNDS} rounds", settled(info), _facts["free_after"])


def finish(**facts):
    _facts.update(facts)
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        json.dump(_facts, f)
