# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""A program and its code made by NVIDIA's compiler with NVIDIA's headers: it goes until it
is refused, recovers, and saw the size that NVML has."""
import json
import os
import subprocess

import checks

here = os.environ["NVCC"]
checks.same("memory in use before it", checks.nvml_memory(), 0)
r = subprocess.run([os.path.join(here, "fill"), os.path.join(here, "scale.cubin")], capture_output=True, text=True)
if r.returncode or r.stderr:
    raise AssertionError(f"status {r.returncode}: {r.stdout}{r.stderr}")
saw = json.loads(r.stdout)
checks.same("the size that it saw", saw["total"], checks.TOTAL)
checks.same("its refusal", saw["error"], "CUDA_ERROR_OUT_OF_MEMORY")
checks.same("bytes free after everything was freed", saw["free_after"], saw["free_before"])
assert saw["free_before"] - saw["held"] < 64 * checks.MIB, saw
assert saw["ms"] > 0, "kernels took no time"
checks.same("memory in use after it", checks.nvml_memory(), 0)
version = saw["cuda"]
checks.finish(client=f"a program of nvcc {version // 1000}.{version % 1000 // 10}", held=saw["held"],
              free_after=saw["free_after"], error="cuMemAlloc gave " + saw["error"])
