#ifndef BH_DEVICE_NVML_INTERNAL_H
#define BH_DEVICE_NVML_INTERNAL_H

#include "base/arena.h"
#include "bulkhead/nvml_abi.h"
#include "ports/device.h"

/* What the files of this folder share: the loaded library and its calls. */

enum { BH_NVML_GPUS_MAX = 64, BH_NVML_PROFILES_MAX = 32, BH_NVML_INSTANCES_MAX = 8 };

#define BH_NVML_NO_ID UINT32_MAX

/* The last sample of how busy a GPU (place 0) or its instance gi (gi + 1) is. */
enum { BH_NVML_WATCHES = 16 };
struct bh_nvml_watch {
    nvmlGpmSample_t sample;                     /* NULL: none yet */
    bh_ns at;                                   /* monotonic */
    struct bh_device_activity activity;         /* between it and the one before */
    uint64_t transmit_bytes_s, receive_bytes_s; /* of PCIe, likewise */
};

struct bh_nvml {
    void *library;
    char *proc_root;
    nvmlEventSet_t events; /* NULL before the first next_event */
    struct {
        char uuid[48], pci[20];
    } known[BH_NVML_GPUS_MAX]; /* by index: a lost GPU may no longer answer */
    struct bh_nvml_watch watches[BH_NVML_GPUS_MAX][BH_NVML_WATCHES]; /* by minor */
#define BH_NVML(member, symbol, older) __typeof__(&symbol) member;
#include "tables/nvml_used.tbl"
#undef BH_NVML
};

/* nvml_call(nvml, uuid, device, text, size): what the call answers, or
 * FUNCTION_NOT_FOUND when this library has no such symbol. */
#define nvml_call(nvml, member, ...)                                                                         \
    ((nvml)->member ? (nvml)->member(__VA_ARGS__) : NVML_ERROR_FUNCTION_NOT_FOUND)

/* A profile as this GPU's driver offers it. */
struct bh_nvml_profile {
    char name[24];
    uint32_t id; /* the driver's number, not NVML's enum */
    uint32_t slices, memory_mib, most;
};

struct bh_nvml_profiles {
    struct bh_nvml_profile items[BH_NVML_PROFILES_MAX];
    uint32_t count;
};

/* A GPU during one operation. */
struct bh_nvml_gpu {
    nvmlDevice_t handle;
    const char *uuid;
    uint32_t minor;
    struct bh_nvml_profiles profiles; /* after bh_nvml_load_profiles */
};

/* nvml_error.c: set `err` from a result, "<message>: <NVML's text>" with the hint that
 * belongs to it. */
bh_rc bh_nvml_fail(struct bh_err *err, nvmlReturn_t result, const char *format, ...) BH_PRINTF(3, 4);

/* Whether a result says that the GPU cannot be used until it is reset. */
bool bh_nvml_lost(nvmlReturn_t result);

/* nvml_profiles.c: ask for the MIG profiles of a GPU; none on a board without MIG.
 * Some forty driver calls: once an operation. */
void bh_nvml_load_profiles(struct bh_nvml *nvml, struct bh_nvml_gpu *gpu);

/* The name of a profile whose driver does not say it (before NVML 11.7), as go-nvlib
 * derives it: number is NVML's enum. */
void bh_nvml_profile_name(uint32_t number, const nvmlGpuInstanceProfileInfo_t *profile, uint64_t total_bytes,
                          char ret_name[24]);

/* nvml_activity.c: how busy the GPU (gi BH_NVML_NO_ID) or an instance on it was since the last
 * sample, which this replaces when it is old enough.  All unknown: no sample before, or none to
 * be had. */
extern const struct bh_device_activity bh_nvml_no_activity;
struct bh_device_activity bh_nvml_activity(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, uint32_t gi);

/* The rates of PCIe between those samples of the GPU; unchanged where they are not known. */
void bh_nvml_activity_pcie(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu,
                           uint64_t *ret_transmit_bytes_s, uint64_t *ret_receive_bytes_s);

/* Give samples back: the driver may take an instance or a GPU as in use while it is watched, and
 * the next instance of that number is another one. */
void bh_nvml_activity_forget(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, uint32_t gi);
void bh_nvml_activity_forget_gpu(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu);

/* nvml_memory.c: the memory of a GPU, or that of a MIG device; a library without the newer call says nothing
 * reserved. */
nvmlReturn_t bh_nvml_memory(struct bh_nvml *nvml, nvmlDevice_t handle, nvmlMemory_v2_t *ret_memory);

/* nvml_scan.c */
bh_rc bh_nvml_scan(void *self, struct bh_arena *arena, struct bh_inventory *ret_inventory,
                   struct bh_err *err);

/* The GPU of that UUID.  BH_NOT_FOUND. */
bh_rc bh_nvml_gpu_find(struct bh_nvml *nvml, const char *uuid, struct bh_nvml_gpu *ret_gpu,
                       struct bh_err *err);

/* nvml_instances.c: the compute instances of a GPU instance, at most
 * BH_NVML_INSTANCES_MAX. */
nvmlReturn_t bh_nvml_cis(struct bh_nvml *nvml, nvmlGpuInstance_t gi, nvmlComputeInstance_t *ret_cis,
                         uint32_t *ret_count);

/* Append the instances of a GPU with its profiles loaded; a GPU instance without compute instance is
 * one with an empty uuid and ci BH_NVML_NO_ID.  BH_FULL: more than `max`. */
bh_rc bh_nvml_instances(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, struct bh_inventory *inventory,
                        uint32_t max, struct bh_err *err);

/* Describe one instance of a GPU with its profiles loaded; `ci` NULL: none was made. */
nvmlReturn_t bh_nvml_describe(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, nvmlGpuInstance_t gi,
                              nvmlComputeInstance_t ci, struct bh_device_instance *ret_instance);

/* nvml_mig.c */
bh_rc bh_nvml_set_mig(void *self, const char *gpu, bool enabled, struct bh_err *err);

/* nvml_carve.c */
bh_rc bh_nvml_carve(void *self, const char *gpu, const char *profile, uint32_t start,
                    struct bh_device_instance *ret_instance, struct bh_err *err);
bh_rc bh_nvml_destroy(void *self, const char *gpu, uint32_t gi, struct bh_err *err);

/* nvml_use.c: processes and events */
bh_rc bh_nvml_processes(void *self, const char *gpu, struct bh_arena *arena,
                        struct bh_device_process **ret_processes, uint32_t *ret_count, struct bh_err *err);
bh_rc bh_nvml_busy(void *self, const char *gpu, struct bh_arena *arena, struct bh_device_samples *samples,
                   struct bh_err *err);
bh_rc bh_nvml_next_event(void *self, bh_ns wait, struct bh_device_event *ret_event, struct bh_err *err);

/* nvml_sensors.c */
bh_rc bh_nvml_sensors(void *self, const char *gpu, struct bh_device_sensors *ret_sensors, struct bh_err *err);

/* A field's value, whatever type it has. */
unsigned long long bh_nvml_field_number(const nvmlFieldValue_t *value);

/* nvml_health.c */
bh_rc bh_nvml_health(void *self, const char *gpu, struct bh_device_health *ret_health, struct bh_err *err);

/* Put the programs that use the GPU into the error's hint: processes that the driver lists, and those with
 * its node open (monitoring programs are only found this way). */
bh_rc bh_nvml_blame(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, struct bh_err *err);

#endif
