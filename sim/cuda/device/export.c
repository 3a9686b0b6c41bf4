/* cuGetExportTable: tables of functions without names, of which the CUDA runtime wants
 * three when it starts.  It goes no further on this driver: a table that it asks for next
 * answers a riddle by which the vendor's driver shows that it is the vendor's, and this one
 * is not. */
#include "sim/cuda/cuda.h"

#include <string.h>

#define TABLE_SLOTS 16
#define HOOKS 1024

/* The handle of a device's primary context, made or not. */
static CUresult
find_primary(CUcontext *context, CUdevice device)
{
    struct sim_cuda_device there;
    CUresult rc = sim_cuda_device(device, &there);

    if (rc == CUDA_SUCCESS)
        *context = sim_cuda_primary_handle(device);
    return rc;
}

/* Flags that tools set to be called, for functions and for kinds of events: none does. */
static void
find_hooks(const uint32_t **hooks, size_t *count)
{
    static const uint32_t none[HOOKS];

    *hooks = none;
    *count = HOOKS;
}

static CUresult
export_refuse(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

#define X (void *)export_refuse
#define BYTES (void *)(TABLE_SLOTS * sizeof(void *)) /* a table begins with its size */

static const struct {
    unsigned char id[16];
    void *slot[TABLE_SLOTS];
} tables[] = {
    { { 0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9 },
      { BYTES, X, (void *)find_primary, X, X, X, X, X, X, X, X, X, X, X, X, X } },
    { { 0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66 },
      { BYTES, X, (void *)find_hooks, X, X, X, (void *)find_hooks, X, X, X, X, X, X, X, X, X } },
    { { 0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9, 0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d, 0xd9 },
      { BYTES, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X } },
};

CUDA_API CUresult
cuGetExportTable(const void **ret_table, const CUuuid *id)
{
    if (ret_table == NULL || id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        if (memcmp(tables[i].id, id->bytes, sizeof(id->bytes)) == 0) {
            *ret_table = tables[i].slot;
            return CUDA_SUCCESS;
        }
    *ret_table = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}
