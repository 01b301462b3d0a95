# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""Calls every nvmlDeviceGet* of nvidia-ml-py with GPU 0 and prints what it said:
the name, a tab, and the error's number, 0 if there was none."""
import ctypes
import inspect

import pynvml as n

n.nvmlInit()
device = n.nvmlDeviceGetHandleByIndex(0)

# Arguments beside the device, by their name in the bindings. Others get 0.
ARGUMENTS = {
    "cpuSetSize": 4, "nodeSetSize": 1, "memoryClockMHz": n.nvmlDeviceGetMaxClockInfo(device, n.NVML_CLOCK_MEM), "pid": 1,
    "device2": device, "handle2": device, "fieldIds": [1], "objectType": 1, "level": 30,
    "version": ctypes.sizeof(n.c_nvmlProcessDetailList_v1_t) | 1 << 24, "profileId": 0, "c_nonce": b"0" * 32,
}


def structure(c, *version):
    s = c()
    if version:
        s.version = ctypes.sizeof(c) | version[0] << 24
    return ctypes.byref(s)


# Structures that the caller brings, by the call.
STRUCTURES = {
    "BankRemapperStatus_v1": ("c_nvmlEccBankRemapperStatus_v1_t",), "GpuFabricInfo": ("c_nvmlGpuFabricInfo_t",),
    "GpuFabricInfoV": ("c_nvmlGpuFabricInfo_v3_t", 3), "GpuFabricInfo_v4": ("c_nvmlGpuFabricInfo_v4_t",),
    "NvLinkInfo": ("c_nvmlNvLinkInfo_v2_t", 2), "PciInfoExt": ("nvmlPciInfoExt_v1_t", 1),
    "PlatformInfo": ("c_nvmlPlatformInfo_v2_t", 2), "RemappedRows_v2": ("c_nvmlRemappedRowsInfo_v2_t",),
    "SramEccErrorStatus": ("c_nvmlEccSramErrorStatus_v1_t", 1),
    "SramUniqueUncorrectedEccErrorCounts": ("c_nvmlEccSramUniqueUncorrectedErrorCounts_v1_t", 1),
}
# Those that need more than an argument: a MIG device, a path, a list to fill.
SKIPPED = {
    "Attributes", "Attributes_v2", "DeviceHandleFromMigDeviceHandle", "GpuInstancePossiblePlacements", "GpuInstances",
    "MemoryLimits_v1", "NvLinkTelemetrySamples_v1", "Count", "Count_v2",
}


def arguments(short, f):
    if short in STRUCTURES:
        name, *version = STRUCTURES[short]
        return [structure(getattr(n, name), *version)]
    out = []
    for name, p in list(inspect.signature(f).parameters.items())[1:]:
        if p.default is not inspect.Parameter.empty or p.kind == p.VAR_POSITIONAL:
            break
        out.append(ARGUMENTS.get(name, 0))
    return out


for name, f in sorted(vars(n).items()):
    short = name.removeprefix("nvmlDeviceGet")
    if short == name or not callable(f) or "HandleBy" in name or "Vgpu" in name or short in SKIPPED:
        continue
    try:
        f(device, *arguments(short, f))
        code = 0
    except n.NVMLError as e:
        code = e.value
    except Exception as e:  # the bindings want another shape of argument
        code = f"? {type(e).__name__} {e}"
    print(f"{short}\t{code}")
