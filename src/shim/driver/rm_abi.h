/* What libcuda.so says to the kernel's part of the driver, as far as the ledger reads it.
 *
 * Not code of NVIDIA's: numbers and places, each with where it is written down.  "open" is
 * the driver's published kernel part, github.com/NVIDIA/open-gpu-kernel-modules, looked at
 * in versions of 515 to 580; "gvisor" is the same interface as gVisor's nvproxy has it
 * (pkg/abi/nvgpu), which names the versions that changed something.
 *
 * A request is _IOWR('F', number, size of its parameters); a call that the kernel took
 * returns 0 and has its result in `status`, 0 when it went well. */
#ifndef BH_SHIM_DRIVER_RM_ABI_H
#define BH_SHIM_DRIVER_RM_ABI_H

#include <stddef.h>
#include <stdint.h>

#define BH_RM_MAGIC 'F' /* open: kernel-open/common/inc/nv-ioctl-numbers.h */

enum {
    /* open: src/nvidia/arch/nvalloc/unix/include/nv_escape.h */
    BH_RM_ALLOC_MEMORY = 0x27,
    BH_RM_FREE = 0x29,
    BH_RM_CONTROL = 0x2a,
    BH_RM_ALLOC = 0x2b,
    BH_RM_DUP = 0x34,
    BH_RM_VID_HEAP = 0x4a,
    /* open: kernel-open/common/inc/nv-ioctl-numbers.h */
    BH_RM_WRAPPED = 211,
};

/* open: src/nvidia/generated/g_allclasses.h */
enum {
    BH_RM_CLASS_ROOT = 0x0,
    BH_RM_CLASS_ROOT_OTHER = 0x1,
    BH_RM_CLASS_VIDEO_PRIVILEGED = 0x3f,
    BH_RM_CLASS_VIDEO = 0x40, /* video memory: the one of libcuda */
    BH_RM_CLASS_CLIENT = 0x41,
    BH_RM_CLASS_DEVICE = 0x80,
};

/* NVOS21_PARAMETERS and NVOS64_PARAMETERS, distinguished by their size; gvisor: frontend.go.  A new object's
 * handle is chosen by either side, and stands here afterwards. */
struct bh_rm_alloc {
    uint32_t client, parent, object, class;
    uint64_t params;
};
struct bh_rm_alloc_short {
    struct bh_rm_alloc head;
    uint32_t params_size, status;
};
struct bh_rm_alloc_long {
    struct bh_rm_alloc head;
    uint64_t rights;
    uint32_t params_size, flags, status, unused;
};
_Static_assert(sizeof(struct bh_rm_alloc_short) == 32, "NVOS21_PARAMETERS");
_Static_assert(sizeof(struct bh_rm_alloc_long) == 48, "NVOS64_PARAMETERS");

/* The head of NV0080_ALLOC_PARAMETERS, for a device; open: class/cl0080.h.  None at all is
 * device 0. */
struct bh_rm_device {
    uint32_t instance;
};

/* The head of NV_MEMORY_ALLOCATION_PARAMS, for memory; open: nvos.h, gvisor: classes.go
 * (545 made it longer at its end).  `size` was asked for; what was taken is `limit` + 1, as
 * open: kernel/mem_mgr/video_mem.c leaves it. */
struct bh_rm_memory {
    uint32_t owner, type, flags, width, height, pitch, attr, attr2;
    uint32_t format, compression, zcull, unused;
    uint64_t range_low, range_high, size, alignment, offset, limit;
};
_Static_assert(offsetof(struct bh_rm_memory, size) == 64, "NV_MEMORY_ALLOCATION_PARAMS");
_Static_assert(offsetof(struct bh_rm_memory, limit) == 88, "NV_MEMORY_ALLOCATION_PARAMS");

/* NVOS00_PARAMETERS: an object goes, and what is below it; gvisor: frontend.go, object.go */
struct bh_rm_free {
    uint32_t client, parent, object, status;
};

/* NVOS55_PARAMETERS: another handle of an object; gvisor: frontend.go */
struct bh_rm_dup {
    uint32_t client, parent, object, source_client, source, flags, status;
};
_Static_assert(sizeof(struct bh_rm_dup) == 28, "NVOS55_PARAMETERS");

/* NVOS02_PARAMETERS with its descriptor: the older way to memory; gvisor: frontend.go */
struct bh_rm_alloc_memory {
    uint32_t client, parent, object, class, flags, unused;
    uint64_t address, limit;
    uint32_t status, unused2;
    int32_t fd;
    uint32_t unused3;
};
_Static_assert(sizeof(struct bh_rm_alloc_memory) == 56, "NVOS02_PARAMETERS with a descriptor");

/* NVOS32_PARAMETERS, the oldest one; open: nvos.h, gvisor: frontend.go.  A free has `owner`,
 * `memory` and flags alone. */
struct bh_rm_vid_heap {
    uint32_t client, parent, function, space;
    int16_t heap;
    uint16_t unused;
    uint32_t status;
    uint64_t total, free;
    struct {
        uint32_t owner, memory, type, flags, attr, format, compression, zcull;
        uint32_t stride, width, height, unused;
        uint64_t size, alignment, offset, limit;
    } what;
    uint8_t rest[64];
};
_Static_assert(sizeof(struct bh_rm_vid_heap) == 184, "NVOS32_PARAMETERS");
enum { BH_RM_HEAP_ALLOC = 2, BH_RM_HEAP_FREE = 3, BH_RM_HEAP_ALLOC_RANGE = 14 };

/* Of `attr` and `flags` of memory; open: nvos.h */
#define BH_RM_ATTR_LOCATION (UINT32_C(3) << 25) /* 0: video memory */
#define BH_RM_FLAG_VIRTUAL UINT32_C(0x00080000)

/* NVOS54_PARAMETERS, and the control that returns a device's UUID: open: nvos.h and
 * ctrl/ctrl2080/ctrl2080gpu.h */
struct bh_rm_control {
    uint32_t client, object, command, flags;
    uint64_t params;
    uint32_t params_size, status;
};
_Static_assert(sizeof(struct bh_rm_control) == 32, "NVOS54_PARAMETERS");
#define BH_RM_GET_GID UINT32_C(0x2080014a)
struct bh_rm_gid {
    uint32_t index, flags, length;
    uint8_t data[256];
};
enum { BH_RM_GID_FORMAT = 3, BH_RM_GID_BINARY = 2, BH_RM_GID_BYTES = 16 };

/* nv_ioctl_xfer_t: a call within a call; open: kernel-open/common/inc/nv-ioctl.h */
struct bh_rm_wrapped {
    uint32_t number, size;
    uint64_t address;
};

#endif
