/* Managed memory, which the driver moves between a device and main memory: what it is of a
 * lease is the site's word (docs/shares.md). */
#include "shim/charge/ledger.h"
#include "shim/charge/ticket.h"
#include "shim/driver/driver.h"
#include "shim/driver/page.h"

static bool
is_managed(CUdevice_attribute attribute)
{
    return attribute == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY
           || attribute == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
}

/* Programs ask before they allocate, and then do without. */
CUresult
cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    CUresult rc = REAL(cuDeviceGetAttribute)(value, attribute, device);

    if (rc == CUDA_SUCCESS && is_managed(attribute) && bh_page_is_joined() && bh_page_has_no_managed())
        *value = 0;
    return rc;
}

static CUresult
allocate_charged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    struct bh_ticket ticket;
    CUresult made, rc = bh_ticket_take(bytes, &ticket);

    if (rc != CUDA_SUCCESS)
        return rc;
    made = REAL(cuMemAllocManaged)(address, bytes, flags);
    return bh_ticket_settle(&ticket, made, made == CUDA_SUCCESS ? *address : 0, bh_ticket_undo);
}

CUresult
cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    CUresult rc = bh_ledger_ready();

    if (rc != CUDA_SUCCESS)
        return rc;
    if (bh_page_has_no_managed())
        return CUDA_ERROR_NOT_SUPPORTED;
    if (bh_page->limits->managed == BH_SHARE_MANAGED_FREE)
        return REAL(cuMemAllocManaged)(address, bytes, flags);
    return allocate_charged(address, bytes, flags);
}
