/* The structs of the NVML ABI that Bulkhead uses.  Include nvml_abi.h instead.
 *
 * Every struct is followed by its size on LP64; versioned ones also by the
 * word that the caller stores in `version` (size | version << 24).  A wrong
 * word is refused with NVML_ERROR_ARGUMENT_VERSION_MISMATCH. */
#ifndef BULKHEAD_NVML_STRUCTS_H
#define BULKHEAD_NVML_STRUCTS_H

#include "bulkhead/nvml_codes.h"

#define NVML_STRUCT_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), "NVML ABI: " #type)
#define NVML_STRUCT_WORD(type, version) ((unsigned int)sizeof(type) | (unsigned int)(version) << 24)

typedef struct {
    char busIdLegacy[16];
    unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;
NVML_STRUCT_SIZE(nvmlPciInfo_t, 68);

typedef struct {
    unsigned int version, domain, bus, device, pciDeviceId, pciSubSystemId, baseClass, subClass;
    char busId[32];
} nvmlPciInfoExt_v1_t;
NVML_STRUCT_SIZE(nvmlPciInfoExt_v1_t, 64);
#define nvmlPciInfoExt_v1_t_WORD NVML_STRUCT_WORD(nvmlPciInfoExt_v1_t, 1)
typedef nvmlPciInfoExt_v1_t nvmlPciInfoExt_t;

typedef struct {
    unsigned int gpu, memory;
} nvmlUtilization_t;
NVML_STRUCT_SIZE(nvmlUtilization_t, 8);

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;
NVML_STRUCT_SIZE(nvmlMemory_t, 24);

typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
NVML_STRUCT_SIZE(nvmlMemory_v2_t, 40);
#define nvmlMemory_v2_t_WORD NVML_STRUCT_WORD(nvmlMemory_v2_t, 2)

typedef struct {
    unsigned long long bar1Total, bar1Free, bar1Used;
} nvmlBAR1Memory_t;
NVML_STRUCT_SIZE(nvmlBAR1Memory_t, 24);

typedef struct {
    unsigned long long l1Cache, l2Cache, deviceMemory, registerFile;
} nvmlEccErrorCounts_t;
NVML_STRUCT_SIZE(nvmlEccErrorCounts_t, 32);

typedef struct {
    unsigned int version;
    unsigned long long aggregateUncParity, aggregateUncSecDed, aggregateCor, volatileUncParity,
        volatileUncSecDed, volatileCor, aggregateUncBucketL2, aggregateUncBucketSm, aggregateUncBucketPcie,
        aggregateUncBucketMcu, aggregateUncBucketOther;
    unsigned int bThresholdExceeded;
} nvmlEccSramErrorStatus_v1_t;
NVML_STRUCT_SIZE(nvmlEccSramErrorStatus_v1_t, 104);
#define nvmlEccSramErrorStatus_v1_t_WORD NVML_STRUCT_WORD(nvmlEccSramErrorStatus_v1_t, 1)
typedef nvmlEccSramErrorStatus_v1_t nvmlEccSramErrorStatus_t;

typedef struct {
    unsigned int corrActiveRemaps, corrInactiveRemaps, uncActiveRemaps, uncInactiveRemaps, bPending,
        bFailureOccurred;
} nvmlRemappedRowsInfo_v2_t;
NVML_STRUCT_SIZE(nvmlRemappedRowsInfo_v2_t, 24);

typedef struct {
    unsigned int max, high, partial, low, none;
} nvmlRowRemapperHistogramValues_t;
NVML_STRUCT_SIZE(nvmlRowRemapperHistogramValues_t, 20);

typedef struct {
    unsigned int version, bChannelRepairPending, bTpcRepairPending;
} nvmlRepairStatus_v1_t;
NVML_STRUCT_SIZE(nvmlRepairStatus_v1_t, 12);
#define nvmlRepairStatus_v1_t_WORD NVML_STRUCT_WORD(nvmlRepairStatus_v1_t, 1)
typedef nvmlRepairStatus_v1_t nvmlRepairStatus_t;

typedef struct {
    unsigned int bUnrepairableMemory;
} nvmlUnrepairableMemoryStatus_v1_t;
NVML_STRUCT_SIZE(nvmlUnrepairableMemoryStatus_v1_t, 4);

typedef struct {
    unsigned int version;
    nvmlTemperatureSensors_t sensorType;
    int temperature;
} nvmlTemperature_v1_t;
NVML_STRUCT_SIZE(nvmlTemperature_v1_t, 12);
#define nvmlTemperature_v1_t_WORD NVML_STRUCT_WORD(nvmlTemperature_v1_t, 1)
typedef nvmlTemperature_v1_t nvmlTemperature_t;

typedef struct {
    unsigned int version;
    int marginTemperature;
} nvmlMarginTemperature_v1_t;
NVML_STRUCT_SIZE(nvmlMarginTemperature_v1_t, 8);
#define nvmlMarginTemperature_v1_t_WORD NVML_STRUCT_WORD(nvmlMarginTemperature_v1_t, 1)
typedef nvmlMarginTemperature_v1_t nvmlMarginTemperature_t;

typedef struct {
    unsigned long long referenceTime, violationTime;
} nvmlViolationTime_t;
NVML_STRUCT_SIZE(nvmlViolationTime_t, 16);

typedef union {
    double dVal;
    int siVal;
    unsigned int uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    signed long long sllVal;
    unsigned short usVal;
} nvmlValue_t;
NVML_STRUCT_SIZE(nvmlValue_t, 8);

typedef struct {
    unsigned long long timeStamp;
    nvmlValue_t sampleValue;
} nvmlSample_t;
NVML_STRUCT_SIZE(nvmlSample_t, 16);

typedef struct {
    unsigned int fieldId, scopeId;
    long long timestamp, latencyUsec;
    nvmlValueType_t valueType;
    nvmlReturn_t nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;
NVML_STRUCT_SIZE(nvmlFieldValue_t, 40);

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;
NVML_STRUCT_SIZE(nvmlProcessInfo_v1_t, 16);

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_v2_t;
NVML_STRUCT_SIZE(nvmlProcessInfo_v2_t, 24);
typedef nvmlProcessInfo_v2_t nvmlProcessInfo_t;

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;
NVML_STRUCT_SIZE(nvmlProcessDetail_v1_t, 32);

typedef struct {
    unsigned int version, mode, numProcArrayEntries;
    nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_v1_t;
NVML_STRUCT_SIZE(nvmlProcessDetailList_v1_t, 24);
#define nvmlProcessDetailList_v1_t_WORD NVML_STRUCT_WORD(nvmlProcessDetailList_v1_t, 1)
typedef nvmlProcessDetailList_v1_t nvmlProcessDetailList_t;

typedef struct {
    unsigned int pid;
    unsigned long long timeStamp;
    unsigned int smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;
NVML_STRUCT_SIZE(nvmlProcessUtilizationSample_t, 32);

typedef struct {
    unsigned int cpuCaps, gpusCaps;
} nvmlConfComputeSystemCaps_t;
NVML_STRUCT_SIZE(nvmlConfComputeSystemCaps_t, 8);

typedef struct {
    unsigned int environment, ccFeature, devToolsMode;
} nvmlConfComputeSystemState_t;
NVML_STRUCT_SIZE(nvmlConfComputeSystemState_t, 12);

typedef struct {
    unsigned int version, environment, ccFeature, devToolsMode, multiGpuMode;
} nvmlSystemConfComputeSettings_v1_t;
NVML_STRUCT_SIZE(nvmlSystemConfComputeSettings_v1_t, 20);
#define nvmlSystemConfComputeSettings_v1_t_WORD NVML_STRUCT_WORD(nvmlSystemConfComputeSettings_v1_t, 1)
typedef nvmlSystemConfComputeSettings_v1_t nvmlSystemConfComputeSettings_t;

typedef struct {
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned int cliqueId;
    nvmlGpuFabricState_t state;
} nvmlGpuFabricInfo_t;
NVML_STRUCT_SIZE(nvmlGpuFabricInfo_t, 28);

typedef struct {
    unsigned int version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned int cliqueId;
    nvmlGpuFabricState_t state;
    unsigned int healthMask;
} nvmlGpuFabricInfo_v2_t;
NVML_STRUCT_SIZE(nvmlGpuFabricInfo_v2_t, 36);
#define nvmlGpuFabricInfo_v2_t_WORD NVML_STRUCT_WORD(nvmlGpuFabricInfo_v2_t, 2)

typedef struct {
    unsigned int version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned int cliqueId;
    nvmlGpuFabricState_t state;
    unsigned int healthMask;
    unsigned char healthSummary;
} nvmlGpuFabricInfo_v3_t;
NVML_STRUCT_SIZE(nvmlGpuFabricInfo_v3_t, 40);
#define nvmlGpuFabricInfo_v3_t_WORD NVML_STRUCT_WORD(nvmlGpuFabricInfo_v3_t, 3)
typedef nvmlGpuFabricInfo_v3_t nvmlGpuFabricInfoV_t;

typedef union {
    char str[41];
    unsigned char bytes[16];
} nvmlUUIDValue_t;

typedef struct {
    unsigned int version, type;
    nvmlUUIDValue_t value;
} nvmlUUID_v1_t;
NVML_STRUCT_SIZE(nvmlUUID_v1_t, 52);
#define nvmlUUID_v1_t_WORD NVML_STRUCT_WORD(nvmlUUID_v1_t, 1)
typedef nvmlUUID_v1_t nvmlUUID_t;

typedef struct {
    unsigned int version, capMask;
} nvmlDeviceCapabilities_v1_t;
NVML_STRUCT_SIZE(nvmlDeviceCapabilities_v1_t, 8);
#define nvmlDeviceCapabilities_v1_t_WORD NVML_STRUCT_WORD(nvmlDeviceCapabilities_v1_t, 1)
typedef nvmlDeviceCapabilities_v1_t nvmlDeviceCapabilities_t;

typedef struct {
    unsigned int version, value;
} nvmlDeviceAddressingMode_v1_t;
NVML_STRUCT_SIZE(nvmlDeviceAddressingMode_v1_t, 8);
#define nvmlDeviceAddressingMode_v1_t_WORD NVML_STRUCT_WORD(nvmlDeviceAddressingMode_v1_t, 1)
typedef nvmlDeviceAddressingMode_v1_t nvmlDeviceAddressingMode_t;

typedef struct {
    unsigned int version;
    unsigned char ibGuid[16], rackGuid[16], chassisPhysicalSlotNumber, computeSlotIndex, nodeIndex, peerType,
        moduleId;
} nvmlPlatformInfo_v1_t;
NVML_STRUCT_SIZE(nvmlPlatformInfo_v1_t, 44);
#define nvmlPlatformInfo_v1_t_WORD NVML_STRUCT_WORD(nvmlPlatformInfo_v1_t, 1)

typedef struct {
    unsigned int version;
    unsigned char ibGuid[16], chassisSerialNumber[16], slotNumber, trayIndex, hostId, peerType, moduleId;
} nvmlPlatformInfo_v2_t;
NVML_STRUCT_SIZE(nvmlPlatformInfo_v2_t, 44);
#define nvmlPlatformInfo_v2_t_WORD NVML_STRUCT_WORD(nvmlPlatformInfo_v2_t, 2)
typedef nvmlPlatformInfo_v2_t nvmlPlatformInfo_t;

typedef struct {
    unsigned int version;
    char branch[80];
} nvmlSystemDriverBranchInfo_v1_t;
NVML_STRUCT_SIZE(nvmlSystemDriverBranchInfo_v1_t, 84);
#define nvmlSystemDriverBranchInfo_v1_t_WORD NVML_STRUCT_WORD(nvmlSystemDriverBranchInfo_v1_t, 1)
typedef nvmlSystemDriverBranchInfo_v1_t nvmlSystemDriverBranchInfo_t;

#endif
