# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""nvidia-ml-py, unmodified: the card is as large as the share."""
import os
import sys

import pynvml

limit = int(sys.argv[1])
pynvml.nvmlInit()
assert pynvml.nvmlDeviceGetCount() >= 1
dev = pynvml.nvmlDeviceGetHandleByIndex(0)
for version in (None, pynvml.nvmlMemory_v2):
    memory = pynvml.nvmlDeviceGetMemoryInfo(dev, version=version)
    assert memory.total == limit, f"total {memory.total}, want {limit}"
    assert memory.used + memory.free <= limit
for p in pynvml.nvmlDeviceGetComputeRunningProcesses(dev):
    assert os.path.exists(f"/proc/{p.pid}"), f"process {p.pid} is not one of this container's"
print("passed", pynvml.nvmlDeviceGetName(dev))
pynvml.nvmlShutdown()
