#ifndef BH_WIRE_SAMPLES_H
#define BH_WIRE_SAMPLES_H

#include "wire/isolation.h"
#include "wire/message.h"

/* What bulkhead-node reads every few seconds: of jobs, GPUs and MIG instances.  A number that the
 * driver does not give is BH_UNSET, and in JSON left out; 0 is 0. */

struct bh_msg_sample {
    uint64_t lease, cpu_ns, memory_bytes, gpu_memory_mib;
    uint64_t share_cap_bytes, share_charged_bytes, share_driver_bytes, share_slice_ns; /* 0: no share */
    uint32_t gpu_utilisation, share_permille, share_promised; /* % or 255 unknown; of its turns */
};

/* A GPU instance; one that is not Bulkhead's has partition 0. */
struct bh_msg_instance {
    uint64_t partition;
    char gpu[BH_UUID_MAX], profile[BH_PROFILE_NAME_MAX];
    uint32_t gi, memory_mib, memory_used_mib;
    uint32_t busy_bp, sm_bp, tensor_bp, dram_bp; /* of 10,000, by GPM */
};

/* What a GPU says of itself besides struct bh_msg_gpu; ports/device.h has the words. */
struct bh_msg_sensors {
    char gpu[BH_UUID_MAX];
    uint32_t sm_clock_mhz, memory_clock_mhz, memory_temperature_c;
    uint32_t memory_percent, encoder_percent, decoder_percent, reserved_mib, vgpu_licensed, remap_failed;
    uint64_t remapped_uncorrectable, remapped_correctable, pcie_replays, energy_mj, nvlink_kib;
    uint64_t pcie_transmit_bytes_s, pcie_receive_bytes_s;
};

/* How often a GPU reported an XID within the last BH_XID_WINDOW_NS. */
#define BH_XID_WINDOW_NS (UINT64_C(300) * 1000000000)
struct bh_msg_xid_count {
    char gpu[BH_UUID_MAX];
    uint32_t xid, count;
};

/* Every few seconds while jobs run; lost samples are not repeated. */
struct bh_msg_samples {
    uint64_t at_ns;
    struct bh_list gpus, samples;            /* bh_msg_gpu, bh_msg_sample */
    struct bh_list instances, sensors, xids; /* bh_msg_instance, bh_msg_sensors, bh_msg_xid_count */
    struct bh_msg_isolation isolation;
};

#endif
