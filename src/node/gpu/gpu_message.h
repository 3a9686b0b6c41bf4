#ifndef BH_NODE_GPU_GPU_MESSAGE_H
#define BH_NODE_GPU_GPU_MESSAGE_H

#include "base/fields.h"
#include "ports/device.h"

/* The messages between bulkhead-node and its gpu children, in the frames of wire/frame.h.  Both ends are the
 * same build, so nothing here is versioned.  They are here and not in wire/ because they carry the device
 * port's own structs. */

enum bh_gpu_message_kind {
#define BH_GPU_MESSAGE(id, number, type, from, doc) BH_GPU_MSG_##id = number,
#include "tables/gpu_messages.tbl"
#undef BH_GPU_MESSAGE
};

/* A request; each kind uses the members it needs. */
struct bh_gpu_request {
    uint64_t call; /* the answer repeats it */
    char gpu[48], profile[24];
    uint32_t start, gi;
    bool enabled; /* SCAN: its sensors, too */
    uint64_t since_us;
};

/* rc BH_OK: SCAN filled driver, gpus and instances, CARVE one instance, PROCESSES the
 * processes, BUSY the busy, HEALTH one health.  Else the error. */
struct bh_gpu_response {
    uint64_t call;
    uint32_t rc, sys_kind;
    int32_t sys;
    char msg[240], hint[160], driver[40];
    struct bh_list gpus;      /* struct bh_device_gpu */
    struct bh_list instances; /* struct bh_device_instance */
    struct bh_list processes; /* struct bh_device_process */
    struct bh_list busy;      /* struct bh_device_busy */
    struct bh_list healths;   /* struct bh_device_health: one */
    struct bh_list sensors;   /* struct bh_device_sensors: of a scan that asked for them */
};

/* The description of a message's struct, or NULL for an unknown number. */
const struct bh_fields *bh_gpu_message_fields(uint32_t number);

#endif
