/* Calls as libcuda.so makes them, for tests of the ledger. */
#ifndef BH_SHIM_RM_REQUESTS_H
#define BH_SHIM_RM_REQUESTS_H

#include <stdint.h>
#include <sys/ioctl.h>

#include "shim/driver/rm_abi.h"

#define RM_REQUEST(number, type) _IOC(_IOC_READ | _IOC_WRITE, BH_RM_MAGIC, (number), sizeof(type))

/* An object, and the parameters that it is made with. */
struct rm_new {
    union {
        struct bh_rm_memory memory;
        struct bh_rm_device device;
        uint8_t room[128];
    } params;
    struct bh_rm_alloc_long alloc;
};

static inline void *
rm_object(struct rm_new *made, uint32_t client, uint32_t parent, uint32_t object, uint32_t class)
{
    *made = (struct rm_new){ .alloc.head = { client, parent, object, class, 0 } };
    return &made->alloc;
}

static inline void *
rm_client(struct rm_new *made, uint32_t client)
{
    return rm_object(made, 0, 0, client, BH_RM_CLASS_CLIENT);
}

static inline void *
rm_device(struct rm_new *made, uint32_t client, uint32_t object, uint32_t instance)
{
    rm_object(made, client, client, object, BH_RM_CLASS_DEVICE);
    made->params.device.instance = instance;
    made->alloc.head.params = (uintptr_t)&made->params;
    return &made->alloc;
}

static inline void *
rm_memory(struct rm_new *made, uint32_t client, uint32_t parent, uint32_t object, uint64_t bytes)
{
    rm_object(made, client, parent, object, BH_RM_CLASS_VIDEO);
    made->params.memory.size = bytes;
    made->params.memory.limit = bytes - 1;
    made->alloc.head.params = (uintptr_t)&made->params;
    return &made->alloc;
}

#define RM_ALLOC RM_REQUEST(BH_RM_ALLOC, struct bh_rm_alloc_long)
#define RM_FREE RM_REQUEST(BH_RM_FREE, struct bh_rm_free)
#define RM_DUP RM_REQUEST(BH_RM_DUP, struct bh_rm_dup)
#define RM_CONTROL RM_REQUEST(BH_RM_CONTROL, struct bh_rm_control)

#endif
