#ifndef BH_PORTS_DEVICE_H
#define BH_PORTS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/time.h"

/* What can be asked of GPUs.  The one back end is NVML (src/device), on the vendor's
 * library or on the simulated one; it lives in a child process, because a driver
 * call may never return. */

/* How busy something was between the driver's last two samples of it, half a second apart at
 * least, in parts of 10,000 of that time.  By NVML's GPM, of which boards before Hopper have
 * nothing. */
struct bh_device_activity {
    uint32_t busy_bp;            /* a kernel or another engine's work was on it */
    uint32_t sm_bp;              /* a warp was on an SM, mean over all SMs */
    uint32_t tensor_bp, dram_bp; /* of the pipes' and of the memory's peak */
};

#define BH_DEVICE_UNKNOWN UINT32_MAX
#define BH_DEVICE_UNKNOWN_64 UINT64_MAX

struct bh_device_instance {
    char gpu[48], uuid[48]; /* parent GPU; "MIG-..." */
    char profile[24];
    uint32_t start, size; /* memory units */
    uint32_t gi, ci;
    uint32_t memory_mib, memory_used_mib; /* used: BH_DEVICE_UNKNOWN without a compute instance */
    uint32_t gi_minor, ci_minor;          /* /dev/nvidia-caps/nvidia-cap<minor> */
    struct bh_device_activity activity;   /* of its GPU instance */
};

struct bh_device_gpu {
    char uuid[48], pci[20], product[64];
    uint32_t index, minor, memory_mib;
    bool mig_capable, mig_enabled, lost;
    uint32_t temperature_c, power_mw;
    uint32_t utilisation; /* %, or 255: not known */
    uint64_t memory_used_mib, ecc_uncorrected;
    struct bh_device_activity activity;
}; /* what the board or the driver does not say is BH_DEVICE_UNKNOWN or BH_DEVICE_UNKNOWN_64 */

/* What is read of a GPU for its samples alone, because it costs the driver more; likewise unknown. */
struct bh_device_sensors {
    char gpu[48];
    uint32_t sm_clock_mhz, memory_clock_mhz, memory_temperature_c;
    uint32_t memory_percent, encoder_percent, decoder_percent; /* of the time; none in MIG mode */
    uint32_t reserved_mib;                                     /* of its memory, by the driver */
    uint32_t vgpu_licensed;                                    /* 0 or 1 */
    uint32_t remap_failed;                                     /* 0 or 1; rows: not while it has instances */
    uint64_t remapped_uncorrectable, remapped_correctable, pcie_replays;
    uint64_t energy_mj;                                   /* since the driver was loaded */
    uint64_t nvlink_kib;                                  /* sent and received, all links, likewise */
    uint64_t pcie_transmit_bytes_s, pcie_receive_bytes_s; /* by GPM; before Hopper of a moment */
};

struct bh_inventory {
    char driver[40];
    struct bh_device_gpu *gpus;
    uint32_t gpu_count;
    struct bh_device_instance *instances;
    uint32_t instance_count;
    struct bh_device_sensors *sensors; /* of a scan for samples; GPUs that are lost are left out */
    uint32_t sensor_count;
};

struct bh_device_process {
    uint32_t pid;    /* as seen by this process */
    uint32_t gi, ci; /* 0xffffffff: no MIG instance */
    uint64_t memory_mib;
};

/* A process that kept a GPU's SMs busy.  The driver looks a few times a second: each sample counts
 * for the one process that it finds at work then, so short spans say little, and the parts of all
 * processes add up to at most the whole. */
struct bh_device_busy {
    uint32_t pid;     /* as seen by this process; it may have ended since */
    uint32_t percent; /* of the time of the samples that were asked for; 1 .. 100 */
};

struct bh_device_samples {
    uint64_t since_us; /* asked for: those after it, since the epoch */
    struct bh_device_busy *items;
    uint32_t count;
};

struct bh_device_event {
    char gpu[48];
    uint32_t xid, gi; /* gi 0xffffffff: the whole GPU */
};

/* The signs of a GPU's health, as far as its driver answers.  Counters only grow, until the driver is loaded
 * anew or the GPU is reset. */
struct bh_device_health {
    uint32_t recovery;               /* NVML field 230; UINT32_MAX: not known */
    bool reset_wanted, drain_wanted; /* fields 226 and 227 */
    bool remap_pending, remap_failed, retired_pending;
    uint64_t ecc_uncorrected, ecc_corrected; /* volatile */
    uint64_t pcie_replays, nvlink_replays, nvlink_crc;
    uint64_t thermal_ns, power_ns; /* slowed down for it so long */
};

/* Failures of all: BH_UNAVAILABLE (no driver), BH_UNCERTAIN (the driver did not
 * answer in time: scan to learn the truth), BH_IO (driver error, number kept),
 * BH_NOT_FOUND (GPU or instance gone). */
struct bh_device_ops {
    const char *name; /* "nvml" */

    bh_rc (*scan)(void *self, struct bh_arena *arena, struct bh_inventory *ret_inventory, struct bh_err *err);
    /* Set the GPU's MIG mode.  BH_CONFLICT: in use, or a reset is needed; the hint names the users and the
     * remedy.  Reads the mode back. */
    bh_rc (*set_mig)(void *self, const char *gpu, bool enabled, struct bh_err *err);
    /* One GPU instance at `start` with one full-size compute instance, read back and
     * compared.  A half-made instance is undone.  BH_FULL: the place is taken. */
    bh_rc (*carve)(void *self, const char *gpu, const char *profile, uint32_t start,
                   struct bh_device_instance *ret_instance, struct bh_err *err);
    /* BH_CONFLICT: processes still use it. */
    bh_rc (*destroy)(void *self, const char *gpu, uint32_t gi, struct bh_err *err);
    bh_rc (*processes)(void *self, const char *gpu, struct bh_arena *arena,
                       struct bh_device_process **ret_processes, uint32_t *ret_count, struct bh_err *err);
    /* By the samples after samples->since_us, of which the driver keeps those of the last ten
     * seconds or so.  BH_UNAVAILABLE: it samples no processes, as in MIG mode. */
    bh_rc (*busy)(void *self, const char *gpu, struct bh_arena *arena, struct bh_device_samples *samples,
                  struct bh_err *err);
    /* Just after a scan, from which it takes the rates of PCIe where GPM has them. */
    bh_rc (*sensors)(void *self, const char *gpu, struct bh_device_sensors *ret_sensors, struct bh_err *err);
    /* BH_NOT_FOUND: it has fallen off the bus. */
    bh_rc (*health)(void *self, const char *gpu, struct bh_device_health *ret_health, struct bh_err *err);
    /* BH_TIMEOUT: nothing happened within `wait`. */
    bh_rc (*next_event)(void *self, bh_ns wait, struct bh_device_event *ret_event, struct bh_err *err);
    void (*close)(void *self);
};

struct bh_device {
    const struct bh_device_ops *ops;
    void *self;
};

#endif
