# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""nvidia-smi, unmodified: it lists the GPU, its size is that of the share, and what a
program takes shows."""
import ctypes
import os
import re
import subprocess

import checks

SMI = os.environ["NVIDIA_SMI"]


def smi(*args):
    r = subprocess.run([SMI, *args], capture_output=True, text=True)
    if r.returncode or r.stderr:
        raise AssertionError(f"nvidia-smi {args}: status {r.returncode}: {r.stdout}{r.stderr}")
    return r.stdout.strip()


def query(fields):
    return smi(f"--query-gpu={fields}", "--format=csv,noheader,nounits").split(", ")


def memory():
    total, used, free = map(int, query("memory.total,memory.used,memory.free"))
    checks.same("its size in MiB", total, checks.TOTAL // checks.MIB)
    assert total - 2 <= used + free <= total, (total, used, free)  # each is rounded
    return used


cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *args):
    checks.same(name, getattr(cuda, name)(*args), 0)


checks.same("memory in use before any context", memory(), 0)
line = smi("-L")
name, uuid = re.fullmatch(r"GPU 0: (.*) \(UUID: (GPU-[0-9a-f-]{36})\)", line).groups()
checks.same("name and UUID", query("name,uuid,index"), [name, uuid, "0"])
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
call("cuInit", 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
overhead = memory()
assert overhead > 0, "a context costs nothing"
call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(512 * checks.MIB))
checks.same("memory in use", memory(), overhead + 512)
apps = smi("--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits").splitlines()
# By a function that is not public; it never names anybody else.
assert apps in (["[N/A], [N/A]"], [f"{os.getpid()}, {overhead + 512}"]), apps
call("cuMemFree_v2", pointer)
checks.same("memory in use after freeing", memory(), overhead)

# The screen without arguments asks the library for more than is public.
r = subprocess.run([SMI], capture_output=True, text=True)
if r.returncode == 0:
    assert re.search(rf"\b{overhead}MiB / *{checks.TOTAL // checks.MIB}MiB", r.stdout), r.stdout
screen = "is shown, with the same figures" if r.returncode == 0 else f"status {r.returncode}: {(r.stdout + r.stderr).strip().splitlines()[-1]}"
checks.nvml_memory()
checks.finish(client=f"nvidia-smi {query('driver_version')[0]}", notes={"its screen without arguments": screen, "--query-compute-apps": "; ".join(apps)})
