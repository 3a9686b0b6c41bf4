/* The structs of the NVML ABI about MIG instances, events and performance
 * samples.  Include nvml_abi.h instead. */
#ifndef BULKHEAD_NVML_INSTANCES_H
#define BULKHEAD_NVML_INSTANCES_H

#include "bulkhead/nvml_structs.h"

typedef struct {
    unsigned int multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount,
        sharedJpegCount, sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
    unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;
NVML_STRUCT_SIZE(nvmlDeviceAttributes_t, 40);

typedef struct {
    unsigned int start, size;
} nvmlGpuInstancePlacement_t;
NVML_STRUCT_SIZE(nvmlGpuInstancePlacement_t, 8);

typedef struct {
    unsigned int id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount, copyEngineCount,
        decoderCount, encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
} nvmlGpuInstanceProfileInfo_t;
NVML_STRUCT_SIZE(nvmlGpuInstanceProfileInfo_t, 48);

typedef struct {
    unsigned int version, id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount, copyEngineCount,
        decoderCount, encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
    char name[96];
} nvmlGpuInstanceProfileInfo_v2_t;
NVML_STRUCT_SIZE(nvmlGpuInstanceProfileInfo_v2_t, 152);
#define nvmlGpuInstanceProfileInfo_v2_t_WORD NVML_STRUCT_WORD(nvmlGpuInstanceProfileInfo_v2_t, 2)

typedef struct {
    unsigned int version, id, sliceCount, instanceCount, multiprocessorCount, copyEngineCount, decoderCount,
        encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
    char name[96];
    unsigned int capabilities;
} nvmlGpuInstanceProfileInfo_v3_t;
NVML_STRUCT_SIZE(nvmlGpuInstanceProfileInfo_v3_t, 152);
#define nvmlGpuInstanceProfileInfo_v3_t_WORD NVML_STRUCT_WORD(nvmlGpuInstanceProfileInfo_v3_t, 3)

typedef struct {
    nvmlDevice_t device;
    unsigned int id, profileId;
    nvmlGpuInstancePlacement_t placement;
} nvmlGpuInstanceInfo_t;
NVML_STRUCT_SIZE(nvmlGpuInstanceInfo_t, 24);

typedef struct {
    unsigned int start, size;
} nvmlComputeInstancePlacement_t;
NVML_STRUCT_SIZE(nvmlComputeInstancePlacement_t, 8);

typedef struct {
    unsigned int id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
        sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
} nvmlComputeInstanceProfileInfo_t;
NVML_STRUCT_SIZE(nvmlComputeInstanceProfileInfo_t, 36);

typedef struct {
    unsigned int version, id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
        sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
    char name[96];
} nvmlComputeInstanceProfileInfo_v2_t;
NVML_STRUCT_SIZE(nvmlComputeInstanceProfileInfo_v2_t, 136);
#define nvmlComputeInstanceProfileInfo_v2_t_WORD NVML_STRUCT_WORD(nvmlComputeInstanceProfileInfo_v2_t, 2)

typedef struct {
    unsigned int version, id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
        sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
    char name[96];
    unsigned int capabilities;
} nvmlComputeInstanceProfileInfo_v3_t;
NVML_STRUCT_SIZE(nvmlComputeInstanceProfileInfo_v3_t, 140);
#define nvmlComputeInstanceProfileInfo_v3_t_WORD NVML_STRUCT_WORD(nvmlComputeInstanceProfileInfo_v3_t, 3)

typedef struct {
    nvmlDevice_t device;
    nvmlGpuInstance_t gpuInstance;
    unsigned int id, profileId;
    nvmlComputeInstancePlacement_t placement;
} nvmlComputeInstanceInfo_t;
NVML_STRUCT_SIZE(nvmlComputeInstanceInfo_t, 32);

typedef struct {
    nvmlDevice_t device;
    unsigned long long eventType, eventData;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;
NVML_STRUCT_SIZE(nvmlEventData_t, 32);

typedef struct {
    unsigned int metricId;
    nvmlReturn_t nvmlReturn;
    double value;
    struct {
        char *shortName, *longName, *unit;
    } metricInfo;
} nvmlGpmMetric_t;
NVML_STRUCT_SIZE(nvmlGpmMetric_t, 40);

typedef struct {
    unsigned int version, numMetrics;
    nvmlGpmSample_t sample1, sample2;
    nvmlGpmMetric_t metrics[333];
} nvmlGpmMetricsGet_t;
NVML_STRUCT_SIZE(nvmlGpmMetricsGet_t, 13344);

typedef struct {
    unsigned int version, isSupportedDevice;
} nvmlGpmSupport_t;
NVML_STRUCT_SIZE(nvmlGpmSupport_t, 8);

#endif
