# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
"""numba-cuda's own tests of its driver layer, unmodified, each file in a process of
its own. Many check what a kernel computed and fail on a simulated GPU, so what
counts is that each has the same outcome with the interception as without."""
import collections
import importlib.util
import os
import signal
import sys
import unittest
import warnings
from importlib.metadata import version

import checks

# They fill half of the GPU from the host, which has less memory.
TOO_LARGE = ("test_managed_alloc_driver_undersubscribe", "test_managed_alloc_driver_oversubscribe")
PACKAGE = "numba.cuda.tests.cudadrv"
PATIENCE = 120  # seconds a test


class Outcomes(unittest.TestResult):
    """Writes a line for each test."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    def startTest(self, test):
        super().startTest(test)
        signal.alarm(PATIENCE)

    def write(self, test, outcome):
        signal.alarm(0)
        print(test.id(), outcome, file=self.file, flush=True)

    def addSuccess(self, test):
        self.write(test, "ok")

    def addFailure(self, test, err):
        self.write(test, "failed")

    def addError(self, test, err):
        self.write(test, f"error:{err[0].__name__}")

    def addSkip(self, test, reason):
        self.write(test, "skipped")

    def addExpectedFailure(self, test, err):
        self.write(test, "failed,expected")

    def addUnexpectedSuccess(self, test):
        self.write(test, "ok,unexpected")


def cases(suite):
    for t in suite:
        if isinstance(t, unittest.TestSuite):
            yield from cases(t)
        elif not t.id().endswith(TOO_LARGE):
            yield t


def run(module, path):
    """Runs the tests of one module and appends their outcomes to a file."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)  # the tests' own talk
    os.dup2(null, 2)
    warnings.simplefilter("ignore")
    from numba.cuda.testing import CUDATestCase

    CUDATestCase._dump_failed_filechecks = False  # set by a pytest fixture that is not published
    with open(path, "a", encoding="utf-8") as file:
        try:
            loaded = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(f"{PACKAGE}.{module}"))
            unittest.TestSuite(cases(loaded)).run(Outcomes(file))
        except Exception as e:
            print(f"{PACKAGE}.{module}", f"error:{type(e).__name__}", file=file)


def main():
    part = sys.argv[2] + ".part"
    folder = os.path.join(os.path.dirname(importlib.util.find_spec("numba.cuda.tests").origin), "cudadrv")
    modules = sorted(f[:-3] for f in os.listdir(folder) if f.startswith("test_") and f.endswith(".py"))
    for module in modules:
        child = os.fork()
        if child == 0:
            run(module, part)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if status:
            with open(part, "a", encoding="utf-8") as file:
                print(f"{PACKAGE}.{module}", f"died:{status}", file=file)
    outcomes = collections.defaultdict(list)
    with open(part, encoding="utf-8") as file:
        for line in file:
            name, outcome = line.rsplit(maxsplit=1)
            outcomes[name.removeprefix(PACKAGE + ".")].append(outcome)
    checks.same("memory in use when all have ended", checks.nvml_memory(), 0)
    checks.finish(client=f"numba-cuda {version('numba-cuda')}, its own driver tests",
                  outcomes={name: " ".join(o) for name, o in outcomes.items()})


if __name__ == "__main__":
    main()
