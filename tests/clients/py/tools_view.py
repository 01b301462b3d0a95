# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""gpustat and nvitop, unmodified: a program that holds GPU memory sees its own
card, its own bytes and itself through them."""
from importlib.metadata import version

import checks

import contextlib
import ctypes
import io
import json
import os
import re
import runpy
import sys

cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
for name, *args in (("cuInit", 0), ("cuCtxCreate_v2", ctypes.byref(context), 0, 0),
                    ("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(1 << 30))):
    checks.same(name, getattr(cuda, name)(*args), 0)
used = checks.nvml_memory()


def tool(module, *args):
    """Runs a program's main module as the command would and returns what it prints."""
    out, argv = io.StringIO(), sys.argv
    sys.argv = [module, *args]
    try:
        with contextlib.redirect_stdout(out):
            runpy.run_module(module, run_name="__main__")
    except SystemExit as e:
        checks.same(module + "'s exit status", e.code or 0, 0)
    finally:
        sys.argv = argv
    return out.getvalue()


seen = json.loads(tool("gpustat", "--json"))["gpus"]
checks.same("gpustat's number of GPUs", len(seen), 1)
checks.same("gpustat's total in MiB", seen[0]["memory.total"], checks.TOTAL // checks.MIB)
checks.same("gpustat's used in MiB", seen[0]["memory.used"], used // checks.MIB)
checks.same("gpustat's processes", [p["pid"] for p in seen[0]["processes"]], [os.getpid()])

screen = tool("nvitop", "--once", "--ascii")
if not re.search(rf"\b{used // checks.MIB}MiB / ", screen):
    raise AssertionError(f"nvitop does not show {used} bytes in use:\n{screen}")

from nvitop import Device  # noqa: E402

device, = Device.all()
checks.same("nvitop's total", device.memory_total(), checks.TOTAL)
checks.same("nvitop's used", device.memory_used(), used)
checks.same("nvitop's processes", list(device.processes()), [os.getpid()])
checks.finish(client=f"gpustat {version('gpustat')}, nvitop {version('nvitop')}")
