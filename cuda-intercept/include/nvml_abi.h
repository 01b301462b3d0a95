// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * nvml_abi.h: types and prototypes of libnvidia-ml.so.1, own wording.
 *
 * Names, numbers and layouts are the public binary interface; they follow the
 * public documentation of NVML 12.9 and 13.5. Every name declared here is the
 * *exported* one, nothing is renamed by a macro. A structure that nobody here
 * looks into is left incomplete. Prototypes carry types only.
 */
#ifndef GS_NVML_ABI_H
#define GS_NVML_ABI_H

#ifdef __cplusplus
extern "C" {
#endif

#define NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE 32
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE 16
#define NVML_DEVICE_UUID_BUFFER_SIZE 80
#define NVML_DEVICE_UUID_V2_BUFFER_SIZE 96
#define NVML_DEVICE_NAME_BUFFER_SIZE 64
#define NVML_DEVICE_NAME_V2_BUFFER_SIZE 96
#define NVML_DEVICE_SERIAL_BUFFER_SIZE 30
#define NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE 32
#define NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE 80
#define NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE 80

/* Many calls take a structure whose first word is size | version << 24. */
#define GS_NVML_STRUCT_VERSION(type, ver) ((unsigned int)(sizeof(type) | ((unsigned int)(ver) << 24)))
/* An unknown number in the 64-bit memory fields. */
#define NVML_VALUE_NOT_AVAILABLE (-1)
#define NVML_INIT_FLAG_NO_GPUS 1
#define NVML_INIT_FLAG_NO_ATTACH 2

typedef enum nvmlReturn_enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_ALREADY_INITIALIZED = 5,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_INSUFFICIENT_POWER = 8,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_IRQ_ISSUE = 11,
    NVML_ERROR_LIBRARY_NOT_FOUND = 12,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_CORRUPTED_INFOROM = 14,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_OPERATING_SYSTEM = 17,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_IN_USE = 19,
    NVML_ERROR_MEMORY = 20,
    NVML_ERROR_NO_DATA = 21,
    NVML_ERROR_VGPU_ECC_NOT_SUPPORTED = 22,
    NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
    NVML_ERROR_FREQ_NOT_SUPPORTED = 24,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_DEPRECATED = 26,
    NVML_ERROR_NOT_READY = 27,
    NVML_ERROR_GPU_NOT_FOUND = 28,
    NVML_ERROR_INVALID_STATE = 29,
    NVML_ERROR_RESET_TYPE_NOT_SUPPORTED = 30,
    NVML_ERROR_UNKNOWN = 999,
} nvmlReturn_t;

/* ---- handles ---------------------------------------------------------- */
typedef struct nvmlComputeInstance_st *nvmlComputeInstance_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;
typedef struct nvmlGpmSample_st *nvmlGpmSample_t;
typedef struct nvmlGpuInstance_st *nvmlGpuInstance_t;
typedef struct nvmlUnit_st *nvmlUnit_t;

/* ---- scalars and enumerations ----------------------------------------- */
typedef unsigned int nvmlBrandType_t;
typedef unsigned int nvmlClockId_t;
typedef unsigned int nvmlClockType_t;
typedef unsigned int nvmlComputeMode_t;
typedef unsigned int nvmlDetachGpuState_t;
typedef unsigned int nvmlDeviceVgpuCapability_t;
typedef unsigned int nvmlDriverModel_t;
typedef unsigned int nvmlEccCounterType_t;
typedef unsigned int nvmlEnableState_t;
typedef unsigned int nvmlEncoderType_t;
typedef unsigned int nvmlGpuOperationMode_t;
typedef unsigned int nvmlGpuP2PCapsIndex_t;
typedef unsigned int nvmlGpuP2PStatus_t;
typedef unsigned int nvmlGpuTopologyLevel_t;
typedef unsigned int nvmlGpuVirtualizationMode_t;
typedef unsigned int nvmlHostVgpuMode_t;
typedef unsigned int nvmlInforomObject_t;
typedef unsigned int nvmlIntNvLinkDeviceType_t;
typedef unsigned int nvmlLedColor_t;
typedef unsigned int nvmlMemoryErrorType_t;
typedef unsigned int nvmlMemoryLocation_t;
typedef unsigned int nvmlNvLinkCapability_t;
typedef unsigned int nvmlNvLinkErrorCounter_t;
typedef unsigned int nvmlPageRetirementCause_t;
typedef unsigned int nvmlPcieLinkState_t;
typedef unsigned int nvmlPcieUtilCounter_t;
typedef unsigned int nvmlPerfPolicyType_t;
typedef unsigned int nvmlPstates_t;
typedef unsigned int nvmlRestrictedAPI_t;
typedef unsigned int nvmlSamplingType_t;
typedef unsigned int nvmlTemperatureSensors_t;
typedef unsigned int nvmlTemperatureThresholds_t;
typedef unsigned int nvmlValueType_t;
typedef unsigned int nvmlVgpuCapability_t;
typedef unsigned int nvmlVgpuDriverCapability_t;
typedef unsigned int nvmlVgpuVmIdType_t;
typedef unsigned int nvmlAffinityScope_t;
typedef unsigned int nvmlBusType_t;
typedef unsigned int nvmlDeviceArchitecture_t;
typedef unsigned int nvmlFanControlPolicy_t;
typedef unsigned int nvmlPowerSource_t;
typedef unsigned int nvmlVgpuInstance_t;
typedef unsigned int nvmlVgpuTypeId_t;
enum {
    NVML_VALUE_TYPE_DOUBLE = 0,
    NVML_VALUE_TYPE_UNSIGNED_INT = 1,
    NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
    NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
    NVML_VALUE_TYPE_SIGNED_LONG_LONG = 4,
};
enum {
    NVML_TOTAL_POWER_SAMPLES = 0,
    NVML_GPU_UTILIZATION_SAMPLES = 1,
    NVML_MEMORY_UTILIZATION_SAMPLES = 2,
};
enum { NVML_TEMPERATURE_GPU = 0 };
enum { NVML_COMPUTEMODE_DEFAULT = 0, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3 };
enum { NVML_FEATURE_DISABLED = 0, NVML_FEATURE_ENABLED = 1 };
enum { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_CLOCK_VIDEO = 3 };
enum { NVML_UUID_TYPE_NONE = 0, NVML_UUID_TYPE_ASCII = 1, NVML_UUID_TYPE_BINARY = 2 };

/* ---- structures looked into ------------------------------------------- */
typedef struct nvmlMemory_st { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct nvmlMemory_v2_st {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
typedef struct nvmlBAR1Memory_st { unsigned long long bar1Total, bar1Free, bar1Used; } nvmlBAR1Memory_t;

/* The three process lists differ in their element. */
typedef struct nvmlProcessInfo_v1_st { unsigned int pid; unsigned long long usedGpuMemory; } nvmlProcessInfo_v1_t;
typedef struct nvmlProcessInfo_v2_st {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_v2_t;
typedef nvmlProcessInfo_v2_t nvmlProcessInfo_t; /* _v3 lists have the element of _v2 */

typedef struct nvmlProcessDetail_v1_st {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;
typedef struct nvmlProcessDetailList_v1_st {
    unsigned int version;
    unsigned int mode; /* 0 compute, 1 graphics, 2 MPS */
    unsigned int numProcArrayEntries;
    nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_t;

typedef struct nvmlPciInfo_st {
    char busIdLegacy[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
    unsigned int domain, bus, device;
    unsigned int pciDeviceId, pciSubSystemId;
    char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
} nvmlPciInfo_t;
/* Element of nvmlDeviceGetPciInfo and _v2: ends before busId, with 16 reserved bytes. */
typedef struct nvmlPciInfo_v1_st {
    char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
    unsigned int domain, bus, device;
    unsigned int pciDeviceId, pciSubSystemId;
    unsigned int reserved0, reserved1, reserved2, reserved3;
} nvmlPciInfo_v1_t;
typedef struct nvmlPciInfoExt_v1_st {
    unsigned int version, domain, bus, device, pciDeviceId, pciSubSystemId, baseClass, subClass;
    char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
} nvmlPciInfoExt_t;

typedef struct nvmlUtilization_st { unsigned int gpu, memory; } nvmlUtilization_t;
typedef struct nvmlProcessUtilizationSample_st {
    unsigned int pid;
    unsigned long long timeStamp;
    unsigned int smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;
typedef struct nvmlProcessUtilizationInfo_v1_st {
    unsigned long long timeStamp;
    unsigned int pid, smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;
typedef struct nvmlProcessesUtilizationInfo_v1_st {
    unsigned int version, processSamplesCount;
    unsigned long long lastSeenTimeStamp;
    nvmlProcessUtilizationInfo_v1_t *procUtilArray;
} nvmlProcessesUtilizationInfo_t;
typedef union nvmlValue_st {
    double dVal;
    int siVal;
    unsigned int uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    signed long long sllVal;
    unsigned short usVal;
} nvmlValue_t;
typedef struct nvmlSample_st { unsigned long long timeStamp; nvmlValue_t sampleValue; } nvmlSample_t;
typedef struct nvmlFieldValue_st {
    unsigned int fieldId, scopeId;
    long long timestamp, latencyUsec;
    nvmlValueType_t valueType;
    nvmlReturn_t nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;
typedef struct nvmlDeviceAttributes_st {
    unsigned int multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount;
    unsigned int sharedJpegCount, sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
    unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;
typedef struct nvmlAccountingStats_st {
    unsigned int gpuUtilization, memoryUtilization;
    unsigned long long maxMemoryUsage, time, startTime;
    unsigned int isRunning;
    unsigned int reserved[5];
} nvmlAccountingStats_t;
typedef struct nvmlAccountingStats_v2_st {
    unsigned int pid, isRunning; /* pid is the caller's */
    unsigned int gpuUtilization, memoryUtilization;
    unsigned long long maxMemoryUsage;
    unsigned int sampleCount;
    unsigned long long sumGpuUtil, sumFbUtil, time, startTime;
} nvmlAccountingStats_v2_t;
typedef struct nvmlConfComputeMemSizeInfo_st {
    unsigned long long protectedMemSizeKib, unprotectedMemSizeKib;
} nvmlConfComputeMemSizeInfo_t;
typedef struct nvmlEncoderSessionInfo_st {
    unsigned int sessionId, pid;
    nvmlVgpuInstance_t vgpuInstance;
    nvmlEncoderType_t codecType;
    unsigned int hResolution, vResolution, averageFps, averageLatency;
} nvmlEncoderSessionInfo_t;
typedef struct nvmlFBCSessionInfo_st {
    unsigned int sessionId, pid;
    nvmlVgpuInstance_t vgpuInstance;
    unsigned int displayOrdinal, sessionType, sessionFlags, hMaxResolution, vMaxResolution;
    unsigned int hResolution, vResolution, averageFPS, averageLatency;
} nvmlFBCSessionInfo_t;
typedef struct nvmlFBCStats_st { unsigned int sessionsCount, averageFPS, averageLatency; } nvmlFBCStats_t;
typedef struct nvmlTemperature_v1_st {
    unsigned int version;
    nvmlTemperatureSensors_t sensorType;
    int temperature;
} nvmlTemperature_t;
typedef struct nvmlUUID_v1_st {
    unsigned int version, type;
    union { char str[41]; unsigned char bytes[16]; } value;
} nvmlUUID_t;
typedef struct nvmlGpuDynamicPstatesInfo_st {
    unsigned int flags;
    struct { unsigned int bIsPresent, percentage, incThreshold, decThreshold; } utilization[8];
} nvmlGpuDynamicPstatesInfo_t;

/* ---- numbers of the structures below ----------------------------------- */
enum {
    NVML_BRAND_QUADRO = 1, NVML_BRAND_TESLA = 2, NVML_BRAND_GEFORCE = 5, NVML_BRAND_NVIDIA_RTX = 13,
    NVML_BRAND_NVIDIA = 14, NVML_BRAND_GEFORCE_RTX = 15,
};
enum {
    NVML_DEVICE_ARCH_TURING = 6, NVML_DEVICE_ARCH_AMPERE = 7, NVML_DEVICE_ARCH_ADA = 8, NVML_DEVICE_ARCH_HOPPER = 9,
    NVML_DEVICE_ARCH_BLACKWELL = 10,
};
enum { NVML_BUS_TYPE_PCIE = 2 };
enum { NVML_CLOCK_COUNT = 4 };
enum {
    NVML_CLOCK_ID_CURRENT = 0, NVML_CLOCK_ID_APP_CLOCK_TARGET = 1, NVML_CLOCK_ID_APP_CLOCK_DEFAULT = 2,
    NVML_CLOCK_ID_CUSTOMER_BOOST_MAX = 3,
};
enum {
    NVML_TEMPERATURE_THRESHOLD_SHUTDOWN = 0, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
    NVML_TEMPERATURE_THRESHOLD_MEM_MAX = 2, NVML_TEMPERATURE_THRESHOLD_GPU_MAX = 3,
    NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MIN = 4, NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR = 5,
    NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MAX = 6, NVML_TEMPERATURE_THRESHOLD_GPS_CURR = 7,
};
enum { NVML_MEMORY_ERROR_TYPE_CORRECTED = 0, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1 };
enum { NVML_VOLATILE_ECC = 0, NVML_AGGREGATE_ECC = 1 };
enum {
    NVML_MEMORY_LOCATION_L1_CACHE = 0, NVML_MEMORY_LOCATION_L2_CACHE = 1, NVML_MEMORY_LOCATION_DEVICE_MEMORY = 2,
    NVML_MEMORY_LOCATION_REGISTER_FILE = 3, NVML_MEMORY_LOCATION_TEXTURE_MEMORY = 4,
    NVML_MEMORY_LOCATION_TEXTURE_SHM = 5, NVML_MEMORY_LOCATION_CBU = 6, NVML_MEMORY_LOCATION_SRAM = 7,
};
enum {
    NVML_CLOCKS_EVENT_GPU_IDLE = 0x1, NVML_CLOCKS_EVENT_APPLICATIONS = 0x2, NVML_CLOCKS_EVENT_SW_POWER_CAP = 0x4,
    NVML_CLOCKS_EVENT_HW_SLOWDOWN = 0x8, NVML_CLOCKS_EVENT_SYNC_BOOST = 0x10,
    NVML_CLOCKS_EVENT_SW_THERMAL_SLOWDOWN = 0x20, NVML_CLOCKS_EVENT_HW_THERMAL_SLOWDOWN = 0x40,
    NVML_CLOCKS_EVENT_HW_POWER_BRAKE = 0x80, NVML_CLOCKS_EVENT_DISPLAY = 0x100,
};
enum {
    NVML_EVENT_SINGLE_BIT_ECC = 0x1, NVML_EVENT_DOUBLE_BIT_ECC = 0x2, NVML_EVENT_PSTATE = 0x4, NVML_EVENT_XID = 0x8,
    NVML_EVENT_CLOCK = 0x10, NVML_EVENT_POWER_SOURCE = 0x80, NVML_EVENT_MIG_CONFIG = 0x100,
};
enum {
    NVML_TOPOLOGY_INTERNAL = 0, NVML_TOPOLOGY_SINGLE = 10, NVML_TOPOLOGY_MULTIPLE = 20, NVML_TOPOLOGY_HOSTBRIDGE = 30,
    NVML_TOPOLOGY_NODE = 40, NVML_TOPOLOGY_SYSTEM = 50,
};
enum {
    NVML_P2P_STATUS_OK = 0, NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED = 1, NVML_P2P_STATUS_GPU_NOT_SUPPORTED = 2,
    NVML_P2P_STATUS_NOT_SUPPORTED = 5,
};
enum { NVML_GPU_INSTANCE_PROFILE_COUNT = 0x12, NVML_COMPUTE_INSTANCE_PROFILE_COUNT = 0x9 };
enum { NVML_GPU_FABRIC_STATE_COMPLETED = 3 };
typedef struct nvmlAdaptiveTgpModeInfo_v1_st {
    nvmlEnableState_t inBandEnableRequest, featureAllowedByAdmin, adminOverrideEnabled, enablementStatus;
    unsigned int adjustedLimitMw;
} nvmlAdaptiveTgpModeInfo_v1_t;
typedef struct nvmlBBXTimeData_v1_st { unsigned int timeRun; } nvmlBBXTimeData_v1_t;
typedef unsigned int nvmlBridgeChipType_t;
typedef struct nvmlBridgeChipInfo_st { nvmlBridgeChipType_t type; unsigned int fwVersion; } nvmlBridgeChipInfo_t;
typedef struct nvmlBridgeChipHierarchy_st {
    unsigned char bridgeCount; nvmlBridgeChipInfo_t bridgeChipInfo[128];
} nvmlBridgeChipHierarchy_t;
typedef struct nvmlC2cModeInfo_v1_st { unsigned int isC2cEnabled; } nvmlC2cModeInfo_v1_t;
typedef struct nvmlClkMonFaultInfo_st { unsigned int clkApiDomain, clkDomainFaultMask; } nvmlClkMonFaultInfo_t;
typedef struct nvmlClkMonStatus_st {
    unsigned int bGlobalStatus, clkMonListSize; nvmlClkMonFaultInfo_t clkMonList[32];
} nvmlClkMonStatus_t;
typedef struct nvmlClockOffset_st {
    unsigned int version; nvmlClockType_t type; nvmlPstates_t pstate;
    int clockOffsetMHz, minClockOffsetMHz, maxClockOffsetMHz;
} nvmlClockOffset_t;
typedef struct nvmlComputeInstancePlacement_st { unsigned int start, size; } nvmlComputeInstancePlacement_t;
typedef struct nvmlComputeInstanceInfo_st {
    nvmlDevice_t device; nvmlGpuInstance_t gpuInstance; unsigned int id, profileId;
    nvmlComputeInstancePlacement_t placement;
} nvmlComputeInstanceInfo_t;
typedef struct nvmlComputeInstanceProfileInfo_st {
    unsigned int id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount,
        sharedEncoderCount, sharedJpegCount, sharedOfaCount;
} nvmlComputeInstanceProfileInfo_t;
typedef struct nvmlComputeInstanceProfileInfo_v2_st {
    unsigned int version, id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
        sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
} nvmlComputeInstanceProfileInfo_v2_t;
typedef struct nvmlComputeInstanceProfileInfo_v3_st {
    unsigned int version, id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
        sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
    unsigned int capabilities;
} nvmlComputeInstanceProfileInfo_v3_t;
typedef struct nvmlConfComputeGetKeyRotationThresholdInfo_st {
    unsigned int version; unsigned long long attackerAdvantage;
} nvmlConfComputeGetKeyRotationThresholdInfo_t;
typedef struct nvmlConfComputeGpuAttestationReport_st {
    unsigned int isCecAttestationReportPresent, attestationReportSize, cecAttestationReportSize;
    unsigned char nonce[32], attestationReport[8192], cecAttestationReport[4096];
} nvmlConfComputeGpuAttestationReport_t;
typedef struct nvmlConfComputeGpuCertificate_st {
    unsigned int certChainSize, attestationCertChainSize; unsigned char certChain[4096], attestationCertChain[5120];
} nvmlConfComputeGpuCertificate_t;
typedef struct nvmlConfComputeSetKeyRotationThresholdInfo_st {
    unsigned int version; unsigned long long maxAttackerAdvantage;
} nvmlConfComputeSetKeyRotationThresholdInfo_t;
typedef struct nvmlConfComputeSystemCaps_st { unsigned int cpuCaps, gpusCaps; } nvmlConfComputeSystemCaps_t;
typedef struct nvmlConfComputeSystemState_st {
    unsigned int environment, ccFeature, devToolsMode;
} nvmlConfComputeSystemState_t;
typedef unsigned int nvmlCoolerControl_t;
typedef unsigned int nvmlCoolerTarget_t;
typedef struct nvmlCoolerInfo_st {
    unsigned int version, index; nvmlCoolerControl_t signalType; nvmlCoolerTarget_t target;
} nvmlCoolerInfo_t;
typedef struct nvmlDeviceAddressingMode_st { unsigned int version, value; } nvmlDeviceAddressingMode_t;
typedef struct nvmlDeviceCapabilities_st { unsigned int version, capMask; } nvmlDeviceCapabilities_t;
typedef struct nvmlDeviceCurrentClockFreqs_st { unsigned int version; char str[2048]; } nvmlDeviceCurrentClockFreqs_t;
typedef struct nvmlDevicePerfModes_st { unsigned int version; char str[2048]; } nvmlDevicePerfModes_t;
typedef struct nvmlDevicePowerMizerModes_v1_st {
    unsigned int currentMode, mode, supportedPowerMizerModes;
} nvmlDevicePowerMizerModes_v1_t;
typedef struct nvmlDramEncryptionInfo_st {
    unsigned int version; nvmlEnableState_t encryptionState;
} nvmlDramEncryptionInfo_t;
typedef struct nvmlEccBankRemapperHistogram_v1_st {
    unsigned int maxSpareGroupCount, noSpareGroupCount;
} nvmlEccBankRemapperHistogram_v1_t;
typedef struct nvmlEccBankRemapperStatus_v1_st {
    unsigned int activeRemappings, inactiveRemappings, bPending; nvmlEccBankRemapperHistogram_v1_t histogram;
} nvmlEccBankRemapperStatus_v1_t;
typedef struct nvmlEccErrorCounts_st {
    unsigned long long l1Cache, l2Cache, deviceMemory, registerFile;
} nvmlEccErrorCounts_t;
typedef struct nvmlEccSramErrorStatus_st {
    unsigned int version;
    unsigned long long aggregateUncParity, aggregateUncSecDed, aggregateCor, volatileUncParity, volatileUncSecDed,
        volatileCor, aggregateUncBucketL2, aggregateUncBucketSm, aggregateUncBucketPcie, aggregateUncBucketMcu,
        aggregateUncBucketOther;
    unsigned int bThresholdExceeded;
} nvmlEccSramErrorStatus_t;
typedef struct nvmlEccSramUniqueUncorrectedErrorEntry_v1_st {
    unsigned int unit, location, sublocation, extlocation, address, isParity, count;
} nvmlEccSramUniqueUncorrectedErrorEntry_v1_t;
typedef struct nvmlEccSramUniqueUncorrectedErrorCounts_st {
    unsigned int version, entryCount; nvmlEccSramUniqueUncorrectedErrorEntry_v1_t *entries;
} nvmlEccSramUniqueUncorrectedErrorCounts_t;
typedef struct nvmlEventData_st {
    nvmlDevice_t device; unsigned long long eventType, eventData; unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;
typedef struct nvmlEventSetGetContextCount_v1_st { unsigned int count; } nvmlEventSetGetContextCount_v1_t;
typedef struct nvmlEventSetGetContextData_v1_st {
    void *data; unsigned int index, dataSize;
} nvmlEventSetGetContextData_v1_t;
typedef struct nvmlEventSetGetContextInfo_v1_st {
    unsigned int index, nvmlGpuOperationalEventContextType, sourceEventContextType, dataSize;
    unsigned short dataFormatVersion;
} nvmlEventSetGetContextInfo_v1_t;
typedef struct nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1_st {
    unsigned int index, xidCode;
} nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1_t;
typedef struct nvmlEventSetWait_v3_st {
    unsigned int timeoutMs, dataType; char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE], sourceModule[16];
    unsigned long long eventType, eventData, groupCursor, instanceId, timestampUsec, traceId;
    unsigned int gpuInstanceId, computeInstanceId, severity, categoryId, moduleEventCode, scope, originator,
        moduleInstance, chipletId, logLevel, attributes, groupCperSize, groupAttributes;
    unsigned char groupSize, groupIndex;
} nvmlEventSetWait_v3_t;
typedef struct nvmlExcludedDeviceInfo_st {
    nvmlPciInfo_t pciInfo; char uuid[NVML_DEVICE_UUID_BUFFER_SIZE];
} nvmlExcludedDeviceInfo_t;
typedef struct nvmlFanSpeedInfo_st { unsigned int version, fan, speed; } nvmlFanSpeedInfo_t;
typedef struct nvmlGetMemoryLimits_v1_st {
    const char *nameSpace; unsigned long long softLimit, hardLimit, currentUsed;
} nvmlGetMemoryLimits_v1_t;
typedef struct nvmlGpmMetric_st {
    unsigned int metricId; nvmlReturn_t nvmlReturn; double value;
    struct { char *shortName, *longName, *unit; } metricInfo;
} nvmlGpmMetric_t;
typedef struct nvmlGpmMetricsGet_st {
    unsigned int version, numMetrics; nvmlGpmSample_t sample1, sample2; nvmlGpmMetric_t metrics[477];
} nvmlGpmMetricsGet_t;
typedef struct nvmlGpmSupport_st { unsigned int version, isSupportedDevice; } nvmlGpmSupport_t;
typedef unsigned int nvmlGpuFabricState_t;
typedef struct nvmlGpuFabricInfoV_st {
    unsigned int version; unsigned char clusterUuid[16]; nvmlReturn_t status; unsigned int cliqueId;
    nvmlGpuFabricState_t state; unsigned int healthMask; unsigned char healthSummary;
} nvmlGpuFabricInfoV_t;
typedef struct nvmlGpuFabricInfo_st {
    unsigned char clusterUuid[16]; nvmlReturn_t status; unsigned int cliqueId; nvmlGpuFabricState_t state;
} nvmlGpuFabricInfo_t;
typedef struct nvmlGpuFabricClique_v1_st { unsigned char type; unsigned int id; } nvmlGpuFabricClique_v1_t;
typedef struct nvmlGpuFabricInfo_v4_st {
    unsigned char clusterUuid[16]; nvmlReturn_t status; nvmlGpuFabricClique_v1_t cliques[64]; unsigned int numCliques;
    nvmlGpuFabricState_t state; unsigned int healthMask; unsigned char healthSummary;
} nvmlGpuFabricInfo_v4_t;
typedef struct nvmlGpuInstancePlacement_st { unsigned int start, size; } nvmlGpuInstancePlacement_t;
typedef struct nvmlGpuInstanceInfo_st {
    nvmlDevice_t device; unsigned int id, profileId; nvmlGpuInstancePlacement_t placement;
} nvmlGpuInstanceInfo_t;
typedef struct nvmlGpuInstanceProfileInfo_st {
    unsigned int id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount, copyEngineCount, decoderCount,
        encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
} nvmlGpuInstanceProfileInfo_t;
typedef struct nvmlGpuInstanceProfileInfo_v2_st {
    unsigned int version, id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount, copyEngineCount,
        decoderCount, encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
} nvmlGpuInstanceProfileInfo_v2_t;
typedef struct nvmlGpuInstanceProfileInfo_v3_st {
    unsigned int version, id, sliceCount, instanceCount, multiprocessorCount, copyEngineCount, decoderCount,
        encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
    unsigned int capabilities;
} nvmlGpuInstanceProfileInfo_v3_t;
typedef struct nvmlGpuOperationalEventConfig_v1_st {
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE]; unsigned int minLogLevel, minSeverity;
} nvmlGpuOperationalEventConfig_v1_t;
typedef unsigned int nvmlThermalController_t;
typedef unsigned int nvmlThermalTarget_t;
typedef struct nvmlGpuThermalSettings_st {
    unsigned int count;
    struct {
        nvmlThermalController_t controller;
        int defaultMinTemp, defaultMaxTemp, currentTemp;
        nvmlThermalTarget_t target;
    } sensor[3];
} nvmlGpuThermalSettings_t;
typedef struct nvmlGpuUptime_v1_st { unsigned int uptime; } nvmlGpuUptime_v1_t;
typedef struct nvmlHostname_v1_st { char value[64]; } nvmlHostname_v1_t;
typedef struct nvmlMarginTemperature_st { unsigned int version; int marginTemperature; } nvmlMarginTemperature_t;
typedef struct nvmlNvlinkFirmwareVersion_st {
    unsigned char ucodeType; unsigned int major, minor, subMinor;
} nvmlNvlinkFirmwareVersion_t;
typedef struct nvmlNvlinkFirmwareInfo_st {
    nvmlNvlinkFirmwareVersion_t firmwareVersion[100]; unsigned int numValidEntries;
} nvmlNvlinkFirmwareInfo_t;
typedef struct nvmlNvLinkInfo_st {
    unsigned int version, isNvleEnabled; nvmlNvlinkFirmwareInfo_t firmwareInfo;
} nvmlNvLinkInfo_t;
typedef struct nvmlNvLinkInfo_v3_st {
    unsigned int isNvleEnabled; nvmlNvlinkFirmwareInfo_t firmwareInfo; unsigned int isNvleReady;
} nvmlNvLinkInfo_v3_t;
typedef struct nvmlNvLinkPowerThres_st { unsigned int lowPwrThreshold; } nvmlNvLinkPowerThres_t;
typedef unsigned int nvmlNvLinkUtilizationCountUnits_t;
typedef unsigned int nvmlNvLinkUtilizationCountPktTypes_t;
typedef struct nvmlNvLinkUtilizationControl_st {
    nvmlNvLinkUtilizationCountUnits_t units; nvmlNvLinkUtilizationCountPktTypes_t pktfilter;
} nvmlNvLinkUtilizationControl_t;
typedef struct nvmlNvlinkGetBwMode_st { unsigned int version, bIsBest; unsigned char bwMode; } nvmlNvlinkGetBwMode_t;
typedef struct nvmlNvlinkSetBwMode_st { unsigned int version, bSetBest; unsigned char bwMode; } nvmlNvlinkSetBwMode_t;
typedef struct nvmlNvlinkSupportedBwModes_st {
    unsigned int version; unsigned char bwModes[23], totalBwModes;
} nvmlNvlinkSupportedBwModes_t;
typedef struct nvmlPdi_st { unsigned int version; unsigned long long value; } nvmlPdi_t;
typedef struct nvmlPlatformInfo_st {
    unsigned int version;
    unsigned char ibGuid[16], chassisSerialNumber[16], slotNumber, trayIndex, hostId, peerType, moduleId;
} nvmlPlatformInfo_t;
typedef struct nvmlPowerSmoothingProfile_st {
    unsigned int version, profileId, paramId; double value;
} nvmlPowerSmoothingProfile_t;
typedef struct nvmlPowerSmoothingState_st {
    unsigned int version; nvmlEnableState_t state;
} nvmlPowerSmoothingState_t;
typedef unsigned int nvmlPowerScopeType_t;
typedef struct nvmlPowerValue_v2_st {
    unsigned int version; nvmlPowerScopeType_t powerScope; unsigned int powerValueMw;
} nvmlPowerValue_v2_t;
typedef struct nvmlRemappedRowsInfo_v2_st {
    unsigned int corrActiveRemaps, corrInactiveRemaps, uncActiveRemaps, uncInactiveRemaps, bPending, bFailureOccurred;
} nvmlRemappedRowsInfo_v2_t;
typedef struct nvmlRepairStatus_st {
    unsigned int version, bChannelRepairPending, bTpcRepairPending;
} nvmlRepairStatus_t;
typedef struct nvmlRowRemapperHistogramValues_st {
    unsigned int max, high, partial, low, none;
} nvmlRowRemapperHistogramValues_t;
typedef struct nvmlRusdSettings_v1_st { unsigned int version; unsigned long long pollMask; } nvmlRusdSettings_v1_t;
typedef struct nvmlSetMemoryLimits_v1_st {
    const char *nameSpace; unsigned long long softLimit, hardLimit;
} nvmlSetMemoryLimits_v1_t;
typedef struct nvmlSystemConfComputeSettings_st {
    unsigned int version, environment, ccFeature, devToolsMode, multiGpuMode;
} nvmlSystemConfComputeSettings_t;
typedef struct nvmlSystemConfComputeSettings_v2_st {
    unsigned int version, environment, ccFeature, devToolsMode, multiGpuMode, tdispState;
} nvmlSystemConfComputeSettings_v2_t;
typedef struct nvmlSystemDriverBranchInfo_st {
    unsigned int version; char branch[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
} nvmlSystemDriverBranchInfo_t;
typedef struct nvmlSystemEventSet_st *nvmlSystemEventSet_t;
typedef struct nvmlSystemEventSetCreateRequest_st {
    unsigned int version; nvmlSystemEventSet_t set;
} nvmlSystemEventSetCreateRequest_t;
typedef struct nvmlSystemEventSetFreeRequest_st {
    unsigned int version; nvmlSystemEventSet_t set;
} nvmlSystemEventSetFreeRequest_t;
typedef struct nvmlSystemEventData_v1_st {
    unsigned long long eventType; unsigned int gpuId;
} nvmlSystemEventData_v1_t;
typedef struct nvmlSystemEventSetWaitRequest_st {
    unsigned int version, timeoutms; nvmlSystemEventSet_t set; nvmlSystemEventData_v1_t *data;
    unsigned int dataSize, numEvent;
} nvmlSystemEventSetWaitRequest_t;
typedef struct nvmlSystemRegisterEventRequest_st {
    unsigned int version; unsigned long long eventTypes; nvmlSystemEventSet_t set;
} nvmlSystemRegisterEventRequest_t;
typedef struct nvmlUnrepairableMemoryStatus_v1_st {
    unsigned int bUnrepairableMemory;
} nvmlUnrepairableMemoryStatus_v1_t;
typedef struct nvmlViolationTime_st { unsigned long long referenceTime, violationTime; } nvmlViolationTime_t;
typedef struct nvmlMask255_st { unsigned int mask[8]; } nvmlMask255_t;
typedef struct nvmlWorkloadPowerProfileCurrentProfiles_st {
    unsigned int version; nvmlMask255_t perfProfilesMask, requestedProfilesMask, enforcedProfilesMask;
} nvmlWorkloadPowerProfileCurrentProfiles_t;
typedef struct nvmlWorkloadPowerProfileInfo_st {
    unsigned int version, profileId, priority; nvmlMask255_t conflictingMask;
} nvmlWorkloadPowerProfileInfo_t;
typedef struct nvmlWorkloadPowerProfileProfilesInfo_st {
    unsigned int version; nvmlMask255_t perfProfilesMask; nvmlWorkloadPowerProfileInfo_t perfProfile[255];
} nvmlWorkloadPowerProfileProfilesInfo_t;
typedef struct nvmlWorkloadPowerProfileRequestedProfiles_st {
    unsigned int version; nvmlMask255_t requestedProfilesMask;
} nvmlWorkloadPowerProfileRequestedProfiles_t;
typedef unsigned int nvmlPowerProfileOperation_t;
typedef struct nvmlWorkloadPowerProfileUpdateProfiles_v1_st {
    nvmlPowerProfileOperation_t operation; nvmlMask255_t updateProfilesMask;
} nvmlWorkloadPowerProfileUpdateProfiles_v1_t;

/* ---- structures nobody here looks into -------------------------------- */
#define GS_NVML_OPAQUE(name) typedef struct gs_opaque_##name name
GS_NVML_OPAQUE(nvmlActiveVgpuInstanceInfo_t);
GS_NVML_OPAQUE(nvmlGetCPER_v1_t);
GS_NVML_OPAQUE(nvmlGridLicensableFeatures_t);
GS_NVML_OPAQUE(nvmlHwbcEntry_t);
GS_NVML_OPAQUE(nvmlLedState_t);
GS_NVML_OPAQUE(nvmlNvlinkGetRemapTableInfo_v1_t);
GS_NVML_OPAQUE(nvmlNvlinkLockRemapTable_v1_t);
GS_NVML_OPAQUE(nvmlNvlinkNvlePrivateInfo_v1_t);
GS_NVML_OPAQUE(nvmlNvlinkSetBwModeAsync_v1_t);
GS_NVML_OPAQUE(nvmlNvlinkSetNvleReady_v1_t);
GS_NVML_OPAQUE(nvmlNvlinkSetupNvleEncryptionKey_v1_t);
GS_NVML_OPAQUE(nvmlNvlinkTelemetrySamples_v1_t);
GS_NVML_OPAQUE(nvmlPRMCounterList_v1_t);
GS_NVML_OPAQUE(nvmlPRMTLV_v1_t);
GS_NVML_OPAQUE(nvmlPSUInfo_t);
GS_NVML_OPAQUE(nvmlPerfMetricsSamples_v1_t);
GS_NVML_OPAQUE(nvmlUnitFanSpeeds_t);
GS_NVML_OPAQUE(nvmlUnitInfo_t);
GS_NVML_OPAQUE(nvmlVgpuCreatablePlacementInfo_t);
GS_NVML_OPAQUE(nvmlVgpuHeterogeneousMode_t);
GS_NVML_OPAQUE(nvmlVgpuInstanceUtilizationSample_t);
GS_NVML_OPAQUE(nvmlVgpuInstancesUtilizationInfo_t);
GS_NVML_OPAQUE(nvmlVgpuLicenseInfo_t);
GS_NVML_OPAQUE(nvmlVgpuMetadata_t);
GS_NVML_OPAQUE(nvmlVgpuPgpuCompatibility_t);
GS_NVML_OPAQUE(nvmlVgpuPgpuMetadata_t);
GS_NVML_OPAQUE(nvmlVgpuPlacementId_t);
GS_NVML_OPAQUE(nvmlVgpuPlacementList_t);
GS_NVML_OPAQUE(nvmlVgpuProcessUtilizationSample_t);
GS_NVML_OPAQUE(nvmlVgpuProcessesUtilizationInfo_t);
GS_NVML_OPAQUE(nvmlVgpuRuntimeState_t);
GS_NVML_OPAQUE(nvmlVgpuSchedulerCapabilities_t);
GS_NVML_OPAQUE(nvmlVgpuSchedulerGetState_t);
GS_NVML_OPAQUE(nvmlVgpuSchedulerLogInfo_t);
GS_NVML_OPAQUE(nvmlVgpuSchedulerLogInfo_v2_t);
GS_NVML_OPAQUE(nvmlVgpuSchedulerLog_t);
GS_NVML_OPAQUE(nvmlVgpuSchedulerSetState_t);
GS_NVML_OPAQUE(nvmlVgpuSchedulerStateInfo_t);
GS_NVML_OPAQUE(nvmlVgpuSchedulerStateInfo_v2_t);
GS_NVML_OPAQUE(nvmlVgpuSchedulerState_t);
GS_NVML_OPAQUE(nvmlVgpuSchedulerState_v2_t);
GS_NVML_OPAQUE(nvmlVgpuTypeBar1Info_t);
GS_NVML_OPAQUE(nvmlVgpuTypeIdInfo_t);
GS_NVML_OPAQUE(nvmlVgpuTypeMaxInstance_t);
GS_NVML_OPAQUE(nvmlVgpuVersion_t);

/* ---- exported functions ----------------------------------------------- */
nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t);
nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t, nvmlComputeInstanceInfo_t *);
nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t, nvmlComputeInstanceInfo_t *);
nvmlReturn_t nvmlDeviceClearAccountingPids(nvmlDevice_t);
nvmlReturn_t nvmlDeviceClearCpuAffinity(nvmlDevice_t);
nvmlReturn_t nvmlDeviceClearEccErrorCounts(nvmlDevice_t, nvmlEccCounterType_t);
nvmlReturn_t nvmlDeviceClearFieldValues(nvmlDevice_t, int, nvmlFieldValue_t *);
nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t, unsigned int, nvmlGpuInstance_t *);
nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t, unsigned int,
    const nvmlGpuInstancePlacement_t *, nvmlGpuInstance_t *);
nvmlReturn_t nvmlDeviceDiscoverGpus(nvmlPciInfo_t *);
nvmlReturn_t nvmlDeviceFreezeNvLinkUtilizationCounter(nvmlDevice_t, unsigned int, unsigned int,
    nvmlEnableState_t);
nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t, nvmlRestrictedAPI_t, nvmlEnableState_t *);
nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t, nvmlEnableState_t *);
nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t, unsigned int, nvmlAccountingStats_t *);
nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t, nvmlAccountingStats_v2_t *);
nvmlReturn_t nvmlDeviceGetActiveVgpus(nvmlDevice_t, unsigned int *, nvmlVgpuInstance_t *);
nvmlReturn_t nvmlDeviceGetAdaptiveClockInfoStatus(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetAdaptiveTgpModeInfo_v1(nvmlDevice_t, nvmlAdaptiveTgpModeInfo_v1_t *);
nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t, nvmlDeviceAddressingMode_t *);
nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t, nvmlClockType_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t, nvmlDeviceArchitecture_t *);
nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t, nvmlDeviceAttributes_t *);
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t, nvmlDeviceAttributes_t *);
nvmlReturn_t nvmlDeviceGetAutoBoostedClocksEnabled(nvmlDevice_t, nvmlEnableState_t *, nvmlEnableState_t *);
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t, nvmlBAR1Memory_t *);
nvmlReturn_t nvmlDeviceGetBBXTimeData_v1(nvmlDevice_t, nvmlBBXTimeData_v1_t *);
nvmlReturn_t nvmlDeviceGetBankRemapperStatus_v1(nvmlDevice_t, nvmlEccBankRemapperStatus_v1_t *);
nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t, char *, unsigned int);
nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t, nvmlBrandType_t *);
nvmlReturn_t nvmlDeviceGetBridgeChipInfo(nvmlDevice_t, nvmlBridgeChipHierarchy_t *);
nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t, nvmlBusType_t *);
nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t, nvmlC2cModeInfo_v1_t *);
nvmlReturn_t nvmlDeviceGetCapabilities(nvmlDevice_t, nvmlDeviceCapabilities_t *);
nvmlReturn_t nvmlDeviceGetClkMonStatus(nvmlDevice_t, nvmlClkMonStatus_t *);
nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t, nvmlClockType_t, nvmlClockId_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t, nvmlClockType_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetClockOffsets(nvmlDevice_t, nvmlClockOffset_t *);
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t, nvmlComputeMode_t *);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t, unsigned int *, nvmlProcessInfo_v1_t *);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t, unsigned int *, nvmlProcessInfo_v2_t *);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *);
nvmlReturn_t nvmlDeviceGetConfComputeGpuAttestationReport(nvmlDevice_t,
    nvmlConfComputeGpuAttestationReport_t *);
nvmlReturn_t nvmlDeviceGetConfComputeGpuCertificate(nvmlDevice_t, nvmlConfComputeGpuCertificate_t *);
nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t, nvmlConfComputeMemSizeInfo_t *);
nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t, nvmlMemory_t *);
nvmlReturn_t nvmlDeviceGetCoolerInfo(nvmlDevice_t, nvmlCoolerInfo_t *);
nvmlReturn_t nvmlDeviceGetCount(unsigned int *);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *);
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t, unsigned int, unsigned long *);
nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t, unsigned int, unsigned long *,
    nvmlAffinityScope_t);
nvmlReturn_t nvmlDeviceGetCreatableVgpus(nvmlDevice_t, unsigned int *, nvmlVgpuTypeId_t *);
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t, int *, int *);
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetCurrentClockFreqs(nvmlDevice_t, nvmlDeviceCurrentClockFreqs_t *);
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t, unsigned long long *);
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t, unsigned long long *);
nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t, nvmlClockType_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t, nvmlEnableState_t *);
nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t, nvmlMemoryErrorType_t, nvmlEccCounterType_t,
    nvmlEccErrorCounts_t *);
nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t, nvmlDevice_t *);
nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t, nvmlEnableState_t *);
nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t, nvmlEnableState_t *);
nvmlReturn_t nvmlDeviceGetDramEncryptionMode(nvmlDevice_t, nvmlDramEncryptionInfo_t *,
    nvmlDramEncryptionInfo_t *);
nvmlReturn_t nvmlDeviceGetDriverModel(nvmlDevice_t, nvmlDriverModel_t *, nvmlDriverModel_t *);
nvmlReturn_t nvmlDeviceGetDriverModel_v2(nvmlDevice_t, nvmlDriverModel_t *, nvmlDriverModel_t *);
nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_t, nvmlGpuDynamicPstatesInfo_t *);
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t, nvmlEnableState_t *, nvmlEnableState_t *);
nvmlReturn_t nvmlDeviceGetEncoderCapacity(nvmlDevice_t, nvmlEncoderType_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t, unsigned int *, nvmlEncoderSessionInfo_t *);
nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t, unsigned int *, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t, unsigned int *, nvmlFBCSessionInfo_t *);
nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t, nvmlFBCStats_t *);
nvmlReturn_t nvmlDeviceGetFanControlPolicy_v2(nvmlDevice_t, unsigned int, nvmlFanControlPolicy_t *);
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetFanSpeedRPM(nvmlDevice_t, nvmlFanSpeedInfo_t *);
nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t, unsigned int, unsigned int *);
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t, int, nvmlFieldValue_t *);
nvmlReturn_t nvmlDeviceGetGpcClkMinMaxVfOffset(nvmlDevice_t, int *, int *);
nvmlReturn_t nvmlDeviceGetGpcClkVfOffset(nvmlDevice_t, int *);
nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t, nvmlGpuFabricInfo_t *);
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t, nvmlGpuFabricInfoV_t *);
nvmlReturn_t nvmlDeviceGetGpuFabricInfo_v4(nvmlDevice_t, nvmlGpuFabricInfo_v4_t *);
nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t, unsigned int, nvmlGpuInstance_t *);
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t, unsigned int,
    nvmlGpuInstancePlacement_t *, unsigned int *);
nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t, unsigned int,
    nvmlGpuInstancePlacement_t *, unsigned int *);
nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t, unsigned int, nvmlGpuInstanceProfileInfo_t *);
nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t, unsigned int,
    nvmlGpuInstanceProfileInfo_v2_t *);
nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t, unsigned int,
    nvmlGpuInstanceProfileInfo_v2_t *);
nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t, unsigned int, unsigned int *);
nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t, unsigned int, nvmlGpuInstance_t *, unsigned int *);
nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetGpuOperationMode(nvmlDevice_t, nvmlGpuOperationMode_t *, nvmlGpuOperationMode_t *);
nvmlReturn_t nvmlDeviceGetGpuUptime_v1(nvmlDevice_t, nvmlGpuUptime_v1_t *);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t, unsigned int *, nvmlProcessInfo_v1_t *);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t, unsigned int *, nvmlProcessInfo_v2_t *);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *);
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures(nvmlDevice_t, nvmlGridLicensableFeatures_t *);
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v2(nvmlDevice_t, nvmlGridLicensableFeatures_t *);
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v3(nvmlDevice_t, nvmlGridLicensableFeatures_t *);
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v4(nvmlDevice_t, nvmlGridLicensableFeatures_t *);
nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t, char *);
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int, nvmlDevice_t *);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int, nvmlDevice_t *);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *, nvmlDevice_t *);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *, nvmlDevice_t *);
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *, nvmlDevice_t *);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *, nvmlDevice_t *);
nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *, nvmlDevice_t *);
nvmlReturn_t nvmlDeviceGetHostVgpuMode(nvmlDevice_t, nvmlHostVgpuMode_t *);
nvmlReturn_t nvmlDeviceGetHostname_v1(nvmlDevice_t, nvmlHostname_v1_t *);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetInforomConfigurationChecksum(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_t, char *, unsigned int);
nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t, nvmlInforomObject_t, char *, unsigned int);
nvmlReturn_t nvmlDeviceGetIrqNum(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetLastBBXFlushTime(nvmlDevice_t, unsigned long long *, unsigned long *);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t, unsigned int *, nvmlProcessInfo_v1_t *);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t, unsigned int *, nvmlProcessInfo_v2_t *);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *);
nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t, nvmlMarginTemperature_t *);
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t, nvmlClockType_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t, nvmlClockType_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetMemClkMinMaxVfOffset(nvmlDevice_t, int *, int *);
nvmlReturn_t nvmlDeviceGetMemClkVfOffset(nvmlDevice_t, int *);
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t, unsigned int, unsigned long *, nvmlAffinityScope_t);
nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t, nvmlMemoryErrorType_t, nvmlEccCounterType_t,
    nvmlMemoryLocation_t, unsigned long long *);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t *);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t, nvmlMemory_v2_t *);
nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t, nvmlGetMemoryLimits_v1_t *);
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t, unsigned int, nvmlDevice_t *);
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t, nvmlClockType_t, nvmlPstates_t, unsigned int *,
    unsigned int *);
nvmlReturn_t nvmlDeviceGetMinMaxFanSpeed(nvmlDevice_t, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetModuleId(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t, char *, unsigned int);
nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t, unsigned int, nvmlNvLinkCapability_t,
    unsigned int *);
nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t, unsigned int, nvmlNvLinkErrorCounter_t,
    unsigned long long *);
nvmlReturn_t nvmlDeviceGetNvLinkInfo(nvmlDevice_t, nvmlNvLinkInfo_t *);
nvmlReturn_t nvmlDeviceGetNvLinkInfo_v3(nvmlDevice_t, nvmlNvLinkInfo_v3_t *);
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t, unsigned int, nvmlIntNvLinkDeviceType_t *);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t, unsigned int, nvmlPciInfo_t *);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t, unsigned int, nvmlPciInfo_t *);
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t, unsigned int, nvmlEnableState_t *);
nvmlReturn_t nvmlDeviceGetNvLinkTelemetrySamples_v1(nvmlDevice_t, nvmlNvlinkTelemetrySamples_v1_t *);
nvmlReturn_t nvmlDeviceGetNvLinkUtilizationControl(nvmlDevice_t, unsigned int, unsigned int,
    nvmlNvLinkUtilizationControl_t *);
nvmlReturn_t nvmlDeviceGetNvLinkUtilizationCounter(nvmlDevice_t, unsigned int, unsigned int,
    unsigned long long *, unsigned long long *);
nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t, unsigned int, unsigned int *);
nvmlReturn_t nvmlDeviceGetNvlinkBwMode(nvmlDevice_t, nvmlNvlinkGetBwMode_t *);
nvmlReturn_t nvmlDeviceGetNvlinkNvlePrivateInfo_v1(nvmlDevice_t, nvmlNvlinkNvlePrivateInfo_v1_t *);
nvmlReturn_t nvmlDeviceGetNvlinkRemapTableInfo_v1(nvmlDevice_t, nvmlNvlinkGetRemapTableInfo_v1_t *);
nvmlReturn_t nvmlDeviceGetNvlinkSupportedBwModes(nvmlDevice_t, nvmlNvlinkSupportedBwModes_t *);
nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t, nvmlDevice_t, nvmlGpuP2PCapsIndex_t, nvmlGpuP2PStatus_t *);
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t, nvmlPciInfo_v1_t *);
nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t, nvmlPciInfoExt_t *);
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t, nvmlPciInfo_v1_t *);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t, nvmlPciInfo_t *);
nvmlReturn_t nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t, nvmlPcieUtilCounter_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetPdi(nvmlDevice_t, nvmlPdi_t *);
nvmlReturn_t nvmlDeviceGetPerformanceModes(nvmlDevice_t, nvmlDevicePerfModes_t *);
nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t, nvmlPstates_t *);
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t, nvmlEnableState_t *);
nvmlReturn_t nvmlDeviceGetPgpuMetadataString(nvmlDevice_t, char *, unsigned int *);
nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t, nvmlPlatformInfo_t *);
nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t, nvmlEnableState_t *);
nvmlReturn_t nvmlDeviceGetPowerMizerMode_v1(nvmlDevice_t, nvmlDevicePowerMizerModes_v1_t *);
nvmlReturn_t nvmlDeviceGetPowerSource(nvmlDevice_t, nvmlPowerSource_t *);
nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t, nvmlPstates_t *);
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t, nvmlProcessUtilizationSample_t *, unsigned int *,
    unsigned long long lastSeenTimeStamp);
nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t, nvmlProcessesUtilizationInfo_t *);
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t, unsigned int *, unsigned int *, unsigned int *,
    unsigned int *);
nvmlReturn_t nvmlDeviceGetRemappedRows_v2(nvmlDevice_t, nvmlRemappedRowsInfo_v2_t *);
nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t, nvmlRepairStatus_t *);
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t, nvmlPageRetirementCause_t, unsigned int *,
    unsigned long long *);
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t, nvmlEnableState_t *);
nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t, nvmlPageRetirementCause_t, unsigned int *,
    unsigned long long *, unsigned long long *);
nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t, nvmlRowRemapperHistogramValues_t *);
nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t, nvmlProcessDetailList_t *);
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t, nvmlSamplingType_t, unsigned long long lastSeenTimeStamp,
    nvmlValueType_t *, unsigned int *, nvmlSample_t *);
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t, char *, unsigned int);
nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t, nvmlEccSramErrorStatus_t *);
nvmlReturn_t nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts(nvmlDevice_t,
    nvmlEccSramUniqueUncorrectedErrorCounts_t *);
nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t, unsigned long long *);
nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t, unsigned long long *);
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t, unsigned long long *);
nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t, unsigned int, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t, unsigned int *, unsigned int *);
nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t, nvmlPstates_t *, unsigned int);
nvmlReturn_t nvmlDeviceGetSupportedVgpus(nvmlDevice_t, unsigned int *, nvmlVgpuTypeId_t *);
nvmlReturn_t nvmlDeviceGetTargetFanSpeed(nvmlDevice_t, unsigned int, unsigned int *);
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t, nvmlTemperatureSensors_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t, nvmlTemperatureThresholds_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t, nvmlTemperature_t *);
nvmlReturn_t nvmlDeviceGetThermalSettings(nvmlDevice_t, unsigned int, nvmlGpuThermalSettings_t *);
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t, nvmlDevice_t, nvmlGpuTopologyLevel_t *);
nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t, nvmlGpuTopologyLevel_t, unsigned int *,
    nvmlDevice_t *);
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t, nvmlMemoryErrorType_t, nvmlEccCounterType_t,
    unsigned long long *);
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t, unsigned long long *);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t, char *, unsigned int);
nvmlReturn_t nvmlDeviceGetUnrepairableMemoryFlag_v1(nvmlDevice_t, nvmlUnrepairableMemoryStatus_v1_t *);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t, nvmlUtilization_t *);
nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t, char *, unsigned int);
nvmlReturn_t nvmlDeviceGetVgpuCapabilities(nvmlDevice_t, nvmlDeviceVgpuCapability_t, unsigned int *);
nvmlReturn_t nvmlDeviceGetVgpuHeterogeneousMode(nvmlDevice_t, nvmlVgpuHeterogeneousMode_t *);
nvmlReturn_t nvmlDeviceGetVgpuInstancesUtilizationInfo(nvmlDevice_t, nvmlVgpuInstancesUtilizationInfo_t *);
nvmlReturn_t nvmlDeviceGetVgpuMetadata(nvmlDevice_t, nvmlVgpuPgpuMetadata_t *, unsigned int *);
nvmlReturn_t nvmlDeviceGetVgpuProcessUtilization(nvmlDevice_t, unsigned long long lastSeenTimeStamp,
    unsigned int *, nvmlVgpuProcessUtilizationSample_t *);
nvmlReturn_t nvmlDeviceGetVgpuProcessesUtilizationInfo(nvmlDevice_t, nvmlVgpuProcessesUtilizationInfo_t *);
nvmlReturn_t nvmlDeviceGetVgpuSchedulerCapabilities(nvmlDevice_t, nvmlVgpuSchedulerCapabilities_t *);
nvmlReturn_t nvmlDeviceGetVgpuSchedulerLog(nvmlDevice_t, nvmlVgpuSchedulerLog_t *);
nvmlReturn_t nvmlDeviceGetVgpuSchedulerLog_v2(nvmlDevice_t, nvmlVgpuSchedulerLogInfo_v2_t *);
nvmlReturn_t nvmlDeviceGetVgpuSchedulerState(nvmlDevice_t, nvmlVgpuSchedulerGetState_t *);
nvmlReturn_t nvmlDeviceGetVgpuSchedulerState_v2(nvmlDevice_t, nvmlVgpuSchedulerStateInfo_v2_t *);
nvmlReturn_t nvmlDeviceGetVgpuTypeCreatablePlacements(nvmlDevice_t, nvmlVgpuTypeId_t,
    nvmlVgpuPlacementList_t *);
nvmlReturn_t nvmlDeviceGetVgpuTypeSupportedPlacements(nvmlDevice_t, nvmlVgpuTypeId_t,
    nvmlVgpuPlacementList_t *);
nvmlReturn_t nvmlDeviceGetVgpuUtilization(nvmlDevice_t, unsigned long long lastSeenTimeStamp,
    nvmlValueType_t *, unsigned int *, nvmlVgpuInstanceUtilizationSample_t *);
nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t, nvmlPerfPolicyType_t, nvmlViolationTime_t *);
nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t, nvmlGpuVirtualizationMode_t *);
nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlDeviceLockNvlinkRemapTable_v1(nvmlDevice_t, nvmlNvlinkLockRemapTable_v1_t *);
nvmlReturn_t nvmlDeviceModifyDrainState(nvmlPciInfo_t *, nvmlEnableState_t);
nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t, nvmlDevice_t, int *);
nvmlReturn_t nvmlDevicePerfMetricsGetSamples_v1(nvmlDevice_t, nvmlPerfMetricsSamples_v1_t *);
nvmlReturn_t nvmlDevicePowerSmoothingActivatePresetProfile(nvmlDevice_t, nvmlPowerSmoothingProfile_t *);
nvmlReturn_t nvmlDevicePowerSmoothingSetState(nvmlDevice_t, nvmlPowerSmoothingState_t *);
nvmlReturn_t nvmlDevicePowerSmoothingUpdatePresetProfileParam(nvmlDevice_t, nvmlPowerSmoothingProfile_t *);
nvmlReturn_t nvmlDeviceQueryDrainState(nvmlPciInfo_t *, nvmlEnableState_t *);
nvmlReturn_t nvmlDeviceReadPRMCounters_v1(nvmlDevice_t, nvmlPRMCounterList_v1_t *);
nvmlReturn_t nvmlDeviceReadWritePRM_v1(nvmlDevice_t, nvmlPRMTLV_v1_t *);
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t, unsigned long long eventTypes, nvmlEventSet_t);
nvmlReturn_t nvmlDeviceRemoveGpu(nvmlPciInfo_t *);
nvmlReturn_t nvmlDeviceRemoveGpu_v2(nvmlPciInfo_t *, nvmlDetachGpuState_t, nvmlPcieLinkState_t);
nvmlReturn_t nvmlDeviceResetApplicationsClocks(nvmlDevice_t);
nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t);
nvmlReturn_t nvmlDeviceResetMemoryLockedClocks(nvmlDevice_t);
nvmlReturn_t nvmlDeviceResetNvLinkErrorCounters(nvmlDevice_t, unsigned int);
nvmlReturn_t nvmlDeviceResetNvLinkUtilizationCounter(nvmlDevice_t, unsigned int, unsigned int);
nvmlReturn_t nvmlDeviceSetAPIRestriction(nvmlDevice_t, nvmlRestrictedAPI_t, nvmlEnableState_t);
nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t, nvmlEnableState_t);
nvmlReturn_t nvmlDeviceSetAdaptiveTgpMode_v1(nvmlDevice_t, nvmlEnableState_t);
nvmlReturn_t nvmlDeviceSetApplicationsClocks(nvmlDevice_t, unsigned int, unsigned int);
nvmlReturn_t nvmlDeviceSetAutoBoostedClocksEnabled(nvmlDevice_t, nvmlEnableState_t);
nvmlReturn_t nvmlDeviceSetClockOffsets(nvmlDevice_t, nvmlClockOffset_t *);
nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t, nvmlComputeMode_t);
nvmlReturn_t nvmlDeviceSetConfComputeUnprotectedMemSize(nvmlDevice_t, unsigned long long sizeKiB);
nvmlReturn_t nvmlDeviceSetCpuAffinity(nvmlDevice_t);
nvmlReturn_t nvmlDeviceSetDefaultAutoBoostedClocksEnabled(nvmlDevice_t, nvmlEnableState_t, unsigned int);
nvmlReturn_t nvmlDeviceSetDefaultFanSpeed_v2(nvmlDevice_t, unsigned int);
nvmlReturn_t nvmlDeviceSetDramEncryptionMode(nvmlDevice_t, const nvmlDramEncryptionInfo_t *);
nvmlReturn_t nvmlDeviceSetDriverModel(nvmlDevice_t, nvmlDriverModel_t, unsigned int);
nvmlReturn_t nvmlDeviceSetEccMode(nvmlDevice_t, nvmlEnableState_t);
nvmlReturn_t nvmlDeviceSetFanControlPolicy(nvmlDevice_t, unsigned int, nvmlFanControlPolicy_t);
nvmlReturn_t nvmlDeviceSetFanSpeed_v2(nvmlDevice_t, unsigned int, unsigned int);
nvmlReturn_t nvmlDeviceSetGpcClkVfOffset(nvmlDevice_t, int);
nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t, unsigned int, unsigned int);
nvmlReturn_t nvmlDeviceSetGpuOperationMode(nvmlDevice_t, nvmlGpuOperationMode_t);
nvmlReturn_t nvmlDeviceSetHostname_v1(nvmlDevice_t, nvmlHostname_v1_t *);
nvmlReturn_t nvmlDeviceSetMemClkVfOffset(nvmlDevice_t, int);
nvmlReturn_t nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t, nvmlSetMemoryLimits_v1_t *);
nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t, unsigned int, unsigned int);
nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t, unsigned int, nvmlReturn_t *);
nvmlReturn_t nvmlDeviceSetNvLinkDeviceLowPowerThreshold(nvmlDevice_t, nvmlNvLinkPowerThres_t *);
nvmlReturn_t nvmlDeviceSetNvLinkUtilizationControl(nvmlDevice_t, unsigned int, unsigned int,
    nvmlNvLinkUtilizationControl_t *, unsigned int);
nvmlReturn_t nvmlDeviceSetNvlinkBwMode(nvmlDevice_t, nvmlNvlinkSetBwMode_t *);
nvmlReturn_t nvmlDeviceSetNvlinkBwModeAsync_v1(nvmlDevice_t, nvmlNvlinkSetBwModeAsync_v1_t *);
nvmlReturn_t nvmlDeviceSetNvlinkNvleReady_v1(nvmlDevice_t, nvmlNvlinkSetNvleReady_v1_t *);
nvmlReturn_t nvmlDeviceCcuSetStreamState(nvmlDevice_t, unsigned int);
nvmlReturn_t nvmlDeviceSetPowerMode(nvmlDevice_t, unsigned int);
nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t, nvmlEnableState_t);
nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t, unsigned int);
nvmlReturn_t nvmlDeviceSetPowerManagementLimit_v2(nvmlDevice_t, nvmlPowerValue_v2_t *);
nvmlReturn_t nvmlDeviceSetPowerMizerMode_v1(nvmlDevice_t, nvmlDevicePowerMizerModes_v1_t *);
nvmlReturn_t nvmlDeviceSetRusdSettings_v1(nvmlDevice_t, nvmlRusdSettings_v1_t *);
nvmlReturn_t nvmlDeviceSetTemperatureThreshold(nvmlDevice_t, nvmlTemperatureThresholds_t, int *);
nvmlReturn_t nvmlDeviceSetVgpuCapabilities(nvmlDevice_t, nvmlDeviceVgpuCapability_t, nvmlEnableState_t);
nvmlReturn_t nvmlDeviceSetVgpuHeterogeneousMode(nvmlDevice_t, const nvmlVgpuHeterogeneousMode_t *);
nvmlReturn_t nvmlDeviceSetVgpuSchedulerState(nvmlDevice_t, nvmlVgpuSchedulerSetState_t *);
nvmlReturn_t nvmlDeviceSetVgpuSchedulerState_v2(nvmlDevice_t, nvmlVgpuSchedulerState_v2_t *);
nvmlReturn_t nvmlDeviceSetVirtualizationMode(nvmlDevice_t, nvmlGpuVirtualizationMode_t);
nvmlReturn_t nvmlDeviceSetupNvlinkNvleEncryptionKey_v1(nvmlDevice_t, nvmlNvlinkSetupNvleEncryptionKey_v1_t *);
nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t);
nvmlReturn_t nvmlDeviceVgpuForceGspUnload(nvmlDevice_t);
nvmlReturn_t nvmlDeviceWorkloadPowerProfileClearRequestedProfiles(nvmlDevice_t,
    nvmlWorkloadPowerProfileRequestedProfiles_t *);
nvmlReturn_t nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(nvmlDevice_t,
    nvmlWorkloadPowerProfileCurrentProfiles_t *);
nvmlReturn_t nvmlDeviceWorkloadPowerProfileGetProfilesInfo(nvmlDevice_t,
    nvmlWorkloadPowerProfileProfilesInfo_t *);
nvmlReturn_t nvmlDeviceWorkloadPowerProfileSetRequestedProfiles(nvmlDevice_t,
    nvmlWorkloadPowerProfileRequestedProfiles_t *);
nvmlReturn_t nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1(nvmlDevice_t,
    nvmlWorkloadPowerProfileUpdateProfiles_v1_t *);
const char *nvmlErrorString(nvmlReturn_t);
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *);
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t);
nvmlReturn_t nvmlEventSetGetContextCount_v1(nvmlEventSet_t, nvmlEventSetGetContextCount_v1_t *);
nvmlReturn_t nvmlEventSetGetContextData_v1(nvmlEventSet_t, nvmlEventSetGetContextData_v1_t *);
nvmlReturn_t nvmlEventSetGetContextInfo_v1(nvmlEventSet_t, nvmlEventSetGetContextInfo_v1_t *);
nvmlReturn_t nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1(nvmlEventSet_t,
    nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1_t *);
nvmlReturn_t nvmlEventSetRegisterGpuOperationalEvents_v1(nvmlEventSet_t,
    const nvmlGpuOperationalEventConfig_v1_t *);
nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t, nvmlEventData_t *, unsigned int);
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t, nvmlEventData_t *, unsigned int);
nvmlReturn_t nvmlEventSetWait_v3(nvmlEventSet_t, nvmlEventSetWait_v3_t *);
nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *);
nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(unsigned int, nvmlExcludedDeviceInfo_t *);
nvmlReturn_t nvmlGetVgpuCompatibility(nvmlVgpuMetadata_t *, nvmlVgpuPgpuMetadata_t *,
    nvmlVgpuPgpuCompatibility_t *);
nvmlReturn_t nvmlGetVgpuDriverCapabilities(nvmlVgpuDriverCapability_t, unsigned int *);
nvmlReturn_t nvmlGetVgpuVersion(nvmlVgpuVersion_t *, nvmlVgpuVersion_t *);
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *);
nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t, unsigned int, nvmlGpmSample_t);
nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t, nvmlGpmSupport_t *);
nvmlReturn_t nvmlGpmQueryIfStreamingEnabled(nvmlDevice_t, unsigned int *);
nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *);
nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t);
nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t, nvmlGpmSample_t);
nvmlReturn_t nvmlGpmSetStreamingEnabled(nvmlDevice_t, unsigned int);
nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t, unsigned int, nvmlComputeInstance_t *);
nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t, unsigned int,
    const nvmlComputeInstancePlacement_t *, nvmlComputeInstance_t *);
nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t);
nvmlReturn_t nvmlGpuInstanceGetActiveVgpus(nvmlGpuInstance_t, nvmlActiveVgpuInstanceInfo_t *);
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t, unsigned int, nvmlComputeInstance_t *);
nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t, unsigned int,
    nvmlComputeInstancePlacement_t *, unsigned int *);
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t, unsigned int, unsigned int,
    nvmlComputeInstanceProfileInfo_t *);
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t, unsigned int, unsigned int,
    nvmlComputeInstanceProfileInfo_v2_t *);
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t, unsigned int,
    unsigned int *);
nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t, unsigned int, nvmlComputeInstance_t *,
    unsigned int *);
nvmlReturn_t nvmlGpuInstanceGetCreatableVgpus(nvmlGpuInstance_t, nvmlVgpuTypeIdInfo_t *);
nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t, nvmlGpuInstanceInfo_t *);
nvmlReturn_t nvmlGpuInstanceGetVgpuHeterogeneousMode(nvmlGpuInstance_t, nvmlVgpuHeterogeneousMode_t *);
nvmlReturn_t nvmlGpuInstanceGetVgpuSchedulerLog(nvmlGpuInstance_t, nvmlVgpuSchedulerLogInfo_t *);
nvmlReturn_t nvmlGpuInstanceGetVgpuSchedulerLog_v2(nvmlGpuInstance_t, nvmlVgpuSchedulerLogInfo_v2_t *);
nvmlReturn_t nvmlGpuInstanceGetVgpuSchedulerState(nvmlGpuInstance_t, nvmlVgpuSchedulerStateInfo_t *);
nvmlReturn_t nvmlGpuInstanceGetVgpuSchedulerState_v2(nvmlGpuInstance_t, nvmlVgpuSchedulerStateInfo_v2_t *);
nvmlReturn_t nvmlGpuInstanceGetVgpuTypeCreatablePlacements(nvmlGpuInstance_t,
    nvmlVgpuCreatablePlacementInfo_t *);
nvmlReturn_t nvmlGpuInstanceSetVgpuHeterogeneousMode(nvmlGpuInstance_t, const nvmlVgpuHeterogeneousMode_t *);
nvmlReturn_t nvmlGpuInstanceSetVgpuSchedulerState(nvmlGpuInstance_t, nvmlVgpuSchedulerState_t *);
nvmlReturn_t nvmlGpuInstanceSetVgpuSchedulerState_v2(nvmlGpuInstance_t, nvmlVgpuSchedulerState_v2_t *);
nvmlReturn_t nvmlInit(void);
nvmlReturn_t nvmlInitWithFlags(unsigned int);
nvmlReturn_t nvmlInit_v2(void);
/* No public prototype: an out pointer to a table of functions, and a 16-byte identifier. */
nvmlReturn_t nvmlInternalGetExportTable(const void **, const void *);
nvmlReturn_t nvmlSetVgpuVersion(nvmlVgpuVersion_t *);
nvmlReturn_t nvmlShutdown(void);
nvmlReturn_t nvmlSystemEventSetCreate(nvmlSystemEventSetCreateRequest_t *);
nvmlReturn_t nvmlSystemEventSetFree(nvmlSystemEventSetFreeRequest_t *);
nvmlReturn_t nvmlSystemEventSetWait(nvmlSystemEventSetWaitRequest_t *);
nvmlReturn_t nvmlSystemGetCPER_v1(nvmlGetCPER_v1_t *);
nvmlReturn_t nvmlSystemGetConfComputeCapabilities(nvmlConfComputeSystemCaps_t *);
nvmlReturn_t nvmlSystemGetConfComputeGpusReadyState(unsigned int *);
nvmlReturn_t nvmlSystemGetConfComputeKeyRotationThresholdInfo(nvmlConfComputeGetKeyRotationThresholdInfo_t *);
nvmlReturn_t nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_t *);
nvmlReturn_t nvmlSystemGetConfComputeSettings_v2(nvmlSystemConfComputeSettings_v2_t *);
nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t *);
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *);
nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *, unsigned int);
nvmlReturn_t nvmlSystemGetDriverVersion(char *, unsigned int);
nvmlReturn_t nvmlSystemGetHicVersion(unsigned int *, nvmlHwbcEntry_t *);
nvmlReturn_t nvmlSystemGetNVMLVersion(char *, unsigned int);
nvmlReturn_t nvmlSystemGetNvlinkBwMode(unsigned int *);
nvmlReturn_t nvmlSystemGetProcessName(unsigned int, char *, unsigned int);
nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int, unsigned int *, nvmlDevice_t *);
nvmlReturn_t nvmlSystemRegisterEvents(nvmlSystemRegisterEventRequest_t *);
nvmlReturn_t nvmlSystemSetConfComputeGpusReadyState(unsigned int);
nvmlReturn_t nvmlSystemSetConfComputeKeyRotationThresholdInfo(nvmlConfComputeSetKeyRotationThresholdInfo_t *);
nvmlReturn_t nvmlSystemSetNvlinkBwMode(unsigned int);
nvmlReturn_t nvmlUnitGetCount(unsigned int *);
nvmlReturn_t nvmlUnitGetDevices(nvmlUnit_t, unsigned int *, nvmlDevice_t *);
nvmlReturn_t nvmlUnitGetFanSpeedInfo(nvmlUnit_t, nvmlUnitFanSpeeds_t *);
nvmlReturn_t nvmlUnitGetHandleByIndex(unsigned int, nvmlUnit_t *);
nvmlReturn_t nvmlUnitGetLedState(nvmlUnit_t, nvmlLedState_t *);
nvmlReturn_t nvmlUnitGetPsuInfo(nvmlUnit_t, nvmlPSUInfo_t *);
nvmlReturn_t nvmlUnitGetTemperature(nvmlUnit_t, unsigned int, unsigned int *);
nvmlReturn_t nvmlUnitGetUnitInfo(nvmlUnit_t, nvmlUnitInfo_t *);
nvmlReturn_t nvmlUnitSetLedState(nvmlUnit_t, nvmlLedColor_t);
nvmlReturn_t nvmlVgpuInstanceClearAccountingPids(nvmlVgpuInstance_t);
nvmlReturn_t nvmlVgpuInstanceGetAccountingMode(nvmlVgpuInstance_t, nvmlEnableState_t *);
nvmlReturn_t nvmlVgpuInstanceGetAccountingPids(nvmlVgpuInstance_t, unsigned int *, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetAccountingStats(nvmlVgpuInstance_t, unsigned int, nvmlAccountingStats_t *);
nvmlReturn_t nvmlVgpuInstanceGetEccMode(nvmlVgpuInstance_t, nvmlEnableState_t *);
nvmlReturn_t nvmlVgpuInstanceGetEncoderCapacity(nvmlVgpuInstance_t, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetEncoderSessions(nvmlVgpuInstance_t, unsigned int *,
    nvmlEncoderSessionInfo_t *);
nvmlReturn_t nvmlVgpuInstanceGetEncoderStats(nvmlVgpuInstance_t, unsigned int *, unsigned int *,
    unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetFBCSessions(nvmlVgpuInstance_t, unsigned int *, nvmlFBCSessionInfo_t *);
nvmlReturn_t nvmlVgpuInstanceGetFBCStats(nvmlVgpuInstance_t, nvmlFBCStats_t *);
nvmlReturn_t nvmlVgpuInstanceGetFbUsage(nvmlVgpuInstance_t, unsigned long long *);
nvmlReturn_t nvmlVgpuInstanceGetFrameRateLimit(nvmlVgpuInstance_t, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetGpuInstanceId(nvmlVgpuInstance_t, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetGpuPciId(nvmlVgpuInstance_t, char *, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetLicenseInfo(nvmlVgpuInstance_t, nvmlVgpuLicenseInfo_t *);
nvmlReturn_t nvmlVgpuInstanceGetLicenseInfo_v2(nvmlVgpuInstance_t, nvmlVgpuLicenseInfo_t *);
nvmlReturn_t nvmlVgpuInstanceGetLicenseStatus(nvmlVgpuInstance_t, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetMdevUUID(nvmlVgpuInstance_t, char *, unsigned int);
nvmlReturn_t nvmlVgpuInstanceGetMetadata(nvmlVgpuInstance_t, nvmlVgpuMetadata_t *, unsigned int *);
nvmlReturn_t nvmlVgpuInstanceGetPlacementId(nvmlVgpuInstance_t, nvmlVgpuPlacementId_t *);
nvmlReturn_t nvmlVgpuInstanceGetRuntimeStateSize(nvmlVgpuInstance_t, nvmlVgpuRuntimeState_t *);
nvmlReturn_t nvmlVgpuInstanceGetType(nvmlVgpuInstance_t, nvmlVgpuTypeId_t *);
nvmlReturn_t nvmlVgpuInstanceGetUUID(nvmlVgpuInstance_t, char *, unsigned int);
nvmlReturn_t nvmlVgpuInstanceGetVmDriverVersion(nvmlVgpuInstance_t, char *, unsigned int);
nvmlReturn_t nvmlVgpuInstanceGetVmID(nvmlVgpuInstance_t, char *, unsigned int, nvmlVgpuVmIdType_t *);
nvmlReturn_t nvmlVgpuInstanceSetEncoderCapacity(nvmlVgpuInstance_t, unsigned int);
nvmlReturn_t nvmlVgpuTypeGetBAR1Info(nvmlVgpuTypeId_t, nvmlVgpuTypeBar1Info_t *);
nvmlReturn_t nvmlVgpuTypeGetCapabilities(nvmlVgpuTypeId_t, nvmlVgpuCapability_t, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetClass(nvmlVgpuTypeId_t, char *, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetDeviceID(nvmlVgpuTypeId_t, unsigned long long *, unsigned long long *);
nvmlReturn_t nvmlVgpuTypeGetFbReservation(nvmlVgpuTypeId_t, unsigned long long *);
nvmlReturn_t nvmlVgpuTypeGetFrameRateLimit(nvmlVgpuTypeId_t, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetFramebufferSize(nvmlVgpuTypeId_t, unsigned long long *);
nvmlReturn_t nvmlVgpuTypeGetGpuInstanceProfileId(nvmlVgpuTypeId_t, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetGspHeapSize(nvmlVgpuTypeId_t, unsigned long long *);
nvmlReturn_t nvmlVgpuTypeGetLicense(nvmlVgpuTypeId_t, char *, unsigned int);
nvmlReturn_t nvmlVgpuTypeGetMaxInstances(nvmlDevice_t, nvmlVgpuTypeId_t, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetMaxInstancesPerGpuInstance(nvmlVgpuTypeMaxInstance_t *);
nvmlReturn_t nvmlVgpuTypeGetMaxInstancesPerVm(nvmlVgpuTypeId_t, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetName(nvmlVgpuTypeId_t, char *, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetNumDisplayHeads(nvmlVgpuTypeId_t, unsigned int *);
nvmlReturn_t nvmlVgpuTypeGetResolution(nvmlVgpuTypeId_t, unsigned int, unsigned int *, unsigned int *);

#ifdef __cplusplus
}
#endif
#endif
