# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's CUDA runtime, unmodified, from 11.2 on: it asks whether the driver is NVIDIA's
own, by a table that the simulator does not have and does not pretend to have. The runtime
must fail by an error, and the driver's own interface work on in the same process."""
import ctypes
import glob
import os
import site

import checks

places = site.getsitepackages() + [site.getusersitepackages(), "/usr/local/lib/python3.11/dist-packages"]
file = next(f for p in places for f in glob.glob(os.path.join(p, "nvidia/cuda_runtime/lib/libcudart.so.*")))
cudart = ctypes.CDLL(file)
cudart.cudaGetErrorName.restype = ctypes.c_char_p
count = ctypes.c_int(-1)
code = cudart.cudaGetDeviceCount(ctypes.byref(count))
answer = cudart.cudaGetErrorName(code).decode()
assert answer in ("cudaErrorSymbolNotFound", "cudaErrorSoftwareValidityNotEstablished"), answer
checks.same("its last error", cudart.cudaGetLastError(), code)

cuda = ctypes.CDLL("libcuda.so.1")
checks.same("cuInit", cuda.cuInit(0), 0)
checks.same("cuDeviceGetCount", cuda.cuDeviceGetCount(ctypes.byref(count)), 0)
checks.same("GPUs by the driver", count.value, 1)
checks.nvml_memory()
version = ctypes.c_int()
checks.same("cudaRuntimeGetVersion", cudart.cudaRuntimeGetVersion(ctypes.byref(version)), 0)
checks.finish(client=f"NVIDIA's libcudart {version.value // 1000}.{version.value % 1000 // 10} (must refuse)",
              error=f"cudaGetDeviceCount gave {code}, {answer}")
