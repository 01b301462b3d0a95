// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * debugger.c: the variables by which a debugger and the real driver talk, with
 * the sizes that they have in the libraries 470 to 555. They are there and
 * stay as they are: nothing is debugged here. The functions beside them answer
 * "not supported" like every name that nothing defines.
 */
#include <stdint.h>

#define VARIABLE(type, name)                                      \
    extern __attribute__((visibility("default"))) type name; \
    type name

VARIABLE(uint32_t, cudbgApiClientPid);
VARIABLE(uint32_t, cudbgApiClientRevision);
VARIABLE(uint32_t, cudbgAttachHandlerAvailable);
VARIABLE(uint32_t, cudbgDebuggerCapabilities);
VARIABLE(uint32_t, cudbgDebuggerInitialized);
VARIABLE(uint32_t, cudbgDetachSuspendedDevicesMask);
VARIABLE(uint32_t, cudbgEnableIntegratedMemcheck);
VARIABLE(uint32_t, cudbgEnableLaunchBlocking);
VARIABLE(uint32_t, cudbgEnablePreemptionDebugging);
extern __attribute__((visibility("default"))) char cudbgInjectionPath[4096];
char cudbgInjectionPath[4096];
VARIABLE(uint32_t, cudbgIpcFlag);
VARIABLE(uint32_t, cudbgReportDriverApiErrorFlags);
VARIABLE(uint64_t, cudbgReportedDriverApiErrorCode);
VARIABLE(uint64_t, cudbgReportedDriverApiErrorFuncNameAddr);
VARIABLE(uint64_t, cudbgReportedDriverApiErrorFuncNameSize);
VARIABLE(uint64_t, cudbgReportedDriverInternalErrorCode);
VARIABLE(uint32_t, cudbgResumeForAttachDetach);
VARIABLE(uint32_t, cudbgRpcEnabled);
VARIABLE(uint32_t, cudbgSessionId);
VARIABLE(uint32_t, cudbgUseExternalDebugger);
