/* What the vendor's nvidia-smi asks NVML for past its published calls: one table of functions
 * without names (nvmlInternalGetExportTable), without which it says that it is not the driver's.
 *
 * Nothing of the table is published.  What stands here was seen from outside, with tables of our
 * own and the programs of the drivers 470, 535, 550, 555, 580, 595 and 615: its first word is its
 * size in bytes, and what is NULL or lies beyond it is a function that this driver does not have,
 * which costs a line of the report.  Used by the view of a share and by the simulated library. */
#ifndef BULKHEAD_NVML_SMI_H
#define BULKHEAD_NVML_SMI_H

#include <stdint.h>

#define BH_SMI_TABLE_ID                                                                                      \
    {                                                                                                        \
        0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e, 0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4       \
    }

/* The functions of it that Bulkhead has; each returns nvmlReturn_t. */
enum {
    BH_SMI_SIZE = 0,
    BH_SMI_IS_WATCHED = 72, /* (nvmlDevice_t, unsigned *): whether dmon and pmon may run; 1 */
    BH_SMI_COMPUTE = 213,   /* (nvmlDevice_t, unsigned *count, struct bh_smi_process *) ... */
    BH_SMI_GRAPHICS = 214,
    BH_SMI_MPS = 215,
    BH_SMI_SLOTS
};

enum { BH_SMI_NAME_SIZE = 4096 };

/* An entry of the three lists, whose size protocol is that of the published ones. */
struct bh_smi_process {
    uint32_t pid;
    uint64_t used_bytes;
    uint32_t gpu_instance, compute_instance; /* UINT32_MAX: none */
    uint64_t unknown;
    char name[BH_SMI_NAME_SIZE];
};

_Static_assert(sizeof(struct bh_smi_process) == 4128, "as nvidia-smi counts them");

#endif
