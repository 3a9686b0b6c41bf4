#include "shim/calls/array.h"

#include "shim/charge/charge.h"
#include "shim/charge/context.h"
#include "shim/charge/ledger.h"
#include "shim/charge/ticket.h"
#include "shim/driver/driver.h"
#include "shim/driver/page.h"
#include "shim/process/handles.h"

#define HANDLE(pointer) ((uint64_t)(uintptr_t)(pointer))

/* A word: device 4 bits, context 12, grains. */
static struct bh_handles arrays;

void
bh_arrays_init(void)
{
    bh_handles_init(&arrays);
}

static void
array_give_back(uint64_t word)
{
    bh_charge_give((unsigned)(word & 15), word >> 16);
}

void
bh_arrays_drop(unsigned context)
{
    uint64_t at = 0, handle, word;

    while (bh_handles_next(&arrays, &at, &handle, &word))
        if ((word >> 4 & 0xfff) == context && bh_handles_take(&arrays, handle, &word))
            array_give_back(word);
}

/* ---- how large ---- */

static uint64_t
array_bytes_per_element(CUarray_format format, unsigned int channels)
{
    uint64_t each = 4; /* of a format that is not known; what is asked knows more */

    if (format == CU_AD_FORMAT_UNSIGNED_INT8 || format == CU_AD_FORMAT_SIGNED_INT8)
        each = 1;
    else if (format == CU_AD_FORMAT_UNSIGNED_INT16 || format == CU_AD_FORMAT_SIGNED_INT16
             || format == CU_AD_FORMAT_HALF)
        each = 2;
    return each * (channels == 0 ? 1 : channels);
}

static uint64_t
array_product(uint64_t bytes, size_t count)
{
    return __builtin_mul_overflow(bytes, count == 0 ? 1 : (uint64_t)count, &bytes) ? UINT64_MAX : bytes;
}

/* Of one level; 0: it takes no memory of its own. */
static uint64_t
array_bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    uint64_t bytes;

    if (shape == NULL || (shape->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0)
        return 0;
    bytes = array_bytes_per_element(shape->Format, shape->NumChannels);
    return array_product(array_product(array_product(bytes, shape->Width), shape->Height), shape->Depth);
}

/* ---- what the driver makes of it ---- */

static uint64_t
ask_array(const CUDA_ARRAY3D_DESCRIPTOR *shape, CUdevice device)
{
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = { 0 };
    CUarray array;

    if (REAL(cuArray3DCreate_v2)(&array, shape) != CUDA_SUCCESS)
        return 0;
    if (REAL(cuArrayGetMemoryRequirements)(&needs, array, device) != CUDA_SUCCESS)
        needs.size = 0;
    (void)REAL(cuArrayDestroy)(array);
    return needs.size;
}

static uint64_t
array_ask_mipmap(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned levels, CUdevice device)
{
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = { 0 };
    CUmipmappedArray array;

    if (REAL(cuMipmappedArrayCreate)(&array, shape, levels) != CUDA_SUCCESS)
        return 0;
    if (REAL(cuMipmappedArrayGetMemoryRequirements)(&needs, array, device) != CUDA_SUCCESS)
        needs.size = 0;
    (void)REAL(cuMipmappedArrayDestroy)(array);
    return needs.size;
}

/* Rows and levels are padded in a way that the driver alone knows, and it shows it only of an
 * array whose memory comes later: so one of the same shape is made, which takes none.  Of
 * `bytes` at least.  `levels` 0: no mipmapped array. */
static uint64_t
array_with_padding(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned levels, uint64_t bytes)
{
    CUDA_ARRAY3D_DESCRIPTOR later;
    struct bh_where where;
    CUdevice device;
    uint64_t needed;

    if (bytes == 0 || bytes == UINT64_MAX || bh_ledger_ready() != CUDA_SUCCESS
        || bh_context_here(&where) != CUDA_SUCCESS)
        return bytes;
    later = *shape;
    later.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
    device = bh_page->ordinal[where.device];
    needed = levels == 0 ? ask_array(&later, device) : array_ask_mipmap(&later, levels, device);
    return needed > bytes ? needed : bytes;
}

/* ---- making and ending ---- */

static CUresult
array_take_ticket(const CUDA_ARRAY3D_DESCRIPTOR *shape, struct bh_ticket *ret_ticket)
{
    return bh_ticket_take(array_with_padding(shape, 0, array_bytes_of(shape)), ret_ticket);
}

/* False: there is no room to note it. */
static bool
array_note(const struct bh_ticket *ticket, uint64_t handle)
{
    uint64_t word = ticket->device | (uint64_t)ticket->context << 4 | ticket->grains << 16;

    return ticket->grains == 0 || bh_handles_put(&arrays, handle, word);
}

static CUresult
settle_array(const struct bh_ticket *ticket, CUresult rc, const CUarray *handle)
{
    if (rc == CUDA_SUCCESS && array_note(ticket, HANDLE(*handle)))
        return rc;
    if (rc == CUDA_SUCCESS)
        (void)REAL(cuArrayDestroy)(*handle);
    bh_charge_give(ticket->device, ticket->grains);
    return rc == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : rc;
}

static CUresult
array_settle_mipmap(const struct bh_ticket *ticket, CUresult rc, const CUmipmappedArray *handle)
{
    if (rc == CUDA_SUCCESS && array_note(ticket, HANDLE(*handle)))
        return rc;
    if (rc == CUDA_SUCCESS)
        (void)REAL(cuMipmappedArrayDestroy)(*handle);
    bh_charge_give(ticket->device, ticket->grains);
    return rc == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : rc;
}

/* Of a descriptor `a` that has no depth or flags: 0. */
#define CREATE_ARRAY(name, type, depth, flags)                                                               \
    CUresult name(CUarray *handle, const type *a)                                                            \
    {                                                                                                        \
        CUDA_ARRAY3D_DESCRIPTOR shape = { 0 };                                                               \
        struct bh_ticket ticket;                                                                             \
        CUresult rc;                                                                                         \
                                                                                                             \
        if (a != NULL)                                                                                       \
            shape =                                                                                          \
                (CUDA_ARRAY3D_DESCRIPTOR){ a->Width, a->Height, depth, a->Format, a->NumChannels, flags };   \
        rc = array_take_ticket(a == NULL ? NULL : &shape, &ticket);                                          \
        return rc != CUDA_SUCCESS ? rc : settle_array(&ticket, REAL(name)(handle, a), handle);               \
    }

CREATE_ARRAY(cuArrayCreate, CUDA_ARRAY_DESCRIPTOR_v1, 0, 0)
CREATE_ARRAY(cuArrayCreate_v2, CUDA_ARRAY_DESCRIPTOR, 0, 0)
CREATE_ARRAY(cuArray3DCreate, CUDA_ARRAY3D_DESCRIPTOR_v1, a->Depth, a->Flags)

CUresult
cuArray3DCreate_v2(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR *allocate_array)
{
    struct bh_ticket ticket;
    CUresult rc = array_take_ticket(allocate_array, &ticket);

    if (rc != CUDA_SUCCESS)
        return rc;
    return settle_array(&ticket, REAL(cuArray3DCreate_v2)(handle, allocate_array), handle);
}

CUresult
cuMipmappedArrayCreate(CUmipmappedArray *handle, const CUDA_ARRAY3D_DESCRIPTOR *mipmapped_array_desc,
                       unsigned int num_mipmap_levels)
{
    uint64_t bytes = array_bytes_of(mipmapped_array_desc);
    struct bh_ticket ticket;
    CUresult rc;

    /* All levels below the first come to a third of it at most. */
    if (num_mipmap_levels > 1 && __builtin_add_overflow(bytes, bytes / 3, &bytes))
        bytes = UINT64_MAX;
    rc = bh_ticket_take(array_with_padding(mipmapped_array_desc, num_mipmap_levels, bytes), &ticket);
    if (rc != CUDA_SUCCESS)
        return rc;
    return array_settle_mipmap(
        &ticket, REAL(cuMipmappedArrayCreate)(handle, mipmapped_array_desc, num_mipmap_levels), handle);
}

static CUresult
array_ended(bool known, uint64_t handle, uint64_t word, CUresult rc)
{
    if (known && rc == CUDA_SUCCESS)
        array_give_back(word);
    else if (known)
        (void)BH_HOLDS(bh_handles_put(&arrays, handle, word));
    return rc;
}

CUresult
cuArrayDestroy(CUarray array)
{
    uint64_t word = 0;
    bool known = bh_handles_take(&arrays, HANDLE(array), &word);

    return array_ended(known, HANDLE(array), word, REAL(cuArrayDestroy)(array));
}

CUresult
cuMipmappedArrayDestroy(CUmipmappedArray mipmapped_array)
{
    uint64_t word = 0;
    bool known = bh_handles_take(&arrays, HANDLE(mipmapped_array), &word);

    return array_ended(known, HANDLE(mipmapped_array), word, REAL(cuMipmappedArrayDestroy)(mipmapped_array));
}
