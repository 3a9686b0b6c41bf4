#include "sim/cuda/memory/operation.h"

#include <string.h>

#include "sim/cuda/memory/alloc.h"
#include "sim/cuda/memory/host.h"

#define BOUNCE_BYTES 65536u

/* Memory from an address on, up to where it is no longer one piece. */
struct piece {
    struct sim_physical *physical; /* NULL: the host's bytes */
    uint64_t offset;               /* in it */
    uint8_t *host;
    size_t bytes;
    bool stuck; /* the first page does not take fills: a fault that was injected */
};

/* ---- from addresses to memory, under the lock ---- */

static bool
operation_find_mapped(const struct sim_region *region, uint64_t address, struct piece *ret_piece)
{
    uint64_t at = address - region->address;
    const struct sim_mapped *mapped = &region->mapped[at / SIM_PAGE_BYTES];

    if (mapped->physical == NULL || mapped->access == CU_MEM_ACCESS_FLAGS_PROT_NONE)
        return false;
    ret_piece->bytes = SIM_PAGE_BYTES - at % SIM_PAGE_BYTES;
    if (mapped->physical->memory == NULL)
        ret_piece->host = (uint8_t *)(uintptr_t)address;
    else
        ret_piece->physical = mapped->physical;
    ret_piece->offset = mapped->offset + at % SIM_PAGE_BYTES;
    return true;
}

/* False: it is no memory.  An address that is none of the device's is the host's. */
static bool
operation_find_piece(uint64_t address, struct piece *ret_piece)
{
    struct sim_region *region = sim_region_find(address);
    struct sim_range range;

    *ret_piece = (struct piece){ .bytes = SIZE_MAX };
    if (region == NULL) {
        ret_piece->host = (uint8_t *)(uintptr_t)address;
        return !sim_space_has(address);
    }
    if (region->kind == SIM_REGION_RESERVED)
        return operation_find_mapped(region, address, ret_piece);
    if (!sim_alloc_find(address, &range))
        return false;
    ret_piece->bytes = range.start + range.bytes - address;
    if (region->readable)
        ret_piece->host = (uint8_t *)(uintptr_t)address;
    else
        ret_piece->physical = region->physical;
    ret_piece->offset = region->offset + (address - region->address);
    return true;
}

/* Is all of it memory?  A range must lie in one allocation, as on the real one; or in
 * mappings side by side. */
static bool
operation_is_memory(uint64_t address, uint64_t length)
{
    struct piece piece;

    while (length > 0) {
        const struct sim_region *region = sim_region_find(address);

        if (!operation_find_piece(address, &piece))
            return false;
        if (piece.bytes >= length)
            return true;
        if (region == NULL || region->kind != SIM_REGION_RESERVED)
            return false;
        address += piece.bytes;
        length -= piece.bytes;
    }
    return true;
}

/* ---- bytes ---- */

static bool
operation_work_on_pages(const struct piece *piece, size_t length, void *bytes, bool write)
{
    struct sim_vram *vram = piece->physical->memory->vram;
    uint64_t at = piece->offset;
    uint8_t *cursor = bytes;

    while (length > 0) {
        uint32_t page = sim_physical_page(piece->physical, at);
        uint64_t offset = at % SIM_PAGE_BYTES;
        size_t part = length < SIM_PAGE_BYTES - offset ? length : SIM_PAGE_BYTES - offset;

        if (!(write ? sim_vram_write(vram, page, offset, cursor, part)
                    : sim_vram_read(vram, page, offset, cursor, part)))
            return false;
        cursor += part;
        at += part;
        length -= part;
    }
    return true;
}

static bool
operation_move(const struct piece *target, const struct piece *source, size_t length)
{
    if (target->physical == NULL && source->physical == NULL) {
        memmove(target->host, source->host, length);
        return true;
    }
    if (source->physical == NULL)
        return operation_work_on_pages(target, length, source->host, true);
    if (target->physical == NULL)
        return operation_work_on_pages(source, length, target->host, false);
    for (size_t at = 0; at < length;) {
        size_t part = length - at < BOUNCE_BYTES ? length - at : BOUNCE_BYTES;
        uint8_t bounce[BOUNCE_BYTES];
        struct piece from = *source, to = *target;

        from.offset += at;
        to.offset += at;
        if (!operation_work_on_pages(&from, part, bounce, false)
            || !operation_work_on_pages(&to, part, bounce, true))
            return false;
        at += part;
    }
    return true;
}

static CUresult
operation_copy(const struct sim_operation *operation)
{
    uint64_t target = operation->target, source = operation->source;
    size_t left = operation->count;

    while (left > 0) {
        struct piece to, from;
        size_t part = left;

        if (!operation_find_piece(target, &to) || !operation_find_piece(source, &from))
            return CUDA_ERROR_INVALID_VALUE;
        part = part < to.bytes ? part : to.bytes;
        part = part < from.bytes ? part : from.bytes;
        if (!operation_move(&to, &from, part))
            return CUDA_ERROR_UNKNOWN;
        target += part;
        source += part;
        left -= part;
    }
    return CUDA_SUCCESS;
}

static void
operation_fill_host(uint8_t *host, size_t length, uint32_t word)
{
    for (size_t i = 0; i < length; i++)
        host[i] = (uint8_t)(word >> i % sizeof(word) * 8);
}

/* Whole words on pages; what is left at either end goes as bytes. */
static bool
operation_fill_pages(const struct piece *piece, size_t length, uint32_t word)
{
    struct sim_vram *vram = piece->physical->memory->vram;
    uint64_t at = piece->offset;

    while (length > 0) {
        uint32_t page = sim_physical_page(piece->physical, at);
        uint64_t offset = at % SIM_PAGE_BYTES;
        size_t part = length < SIM_PAGE_BYTES - offset ? length : SIM_PAGE_BYTES - offset;
        size_t whole = part / sizeof(word) * sizeof(word), rest = part - whole;

        if (!(piece->stuck && page == 0)
            && (!sim_vram_fill(vram, page, offset, whole, word)
                || (rest > 0 && !sim_vram_write(vram, page, offset + whole, &word, rest))))
            return false;
        word = rest > 0 ? word >> rest * 8 | word << (4 - rest) * 8 : word;
        at += part;
        length -= part;
    }
    return true;
}

static CUresult
operation_fill(const struct sim_operation *operation)
{
    uint32_t word = operation->width == 1   ? operation->value * 0x01010101u
                    : operation->width == 2 ? operation->value * 0x00010001u
                                            : operation->value;
    uint64_t target = operation->target;
    size_t left = operation->count * operation->width;
    bool stuck = sim_memory_at(0) != NULL && (sim_memory_at(0)->faults & SIM_FAULT_STUCK) != 0;

    while (left > 0) {
        struct piece piece;
        size_t part = left;

        if (!operation_find_piece(target, &piece))
            return CUDA_ERROR_INVALID_VALUE;
        part = part < piece.bytes ? part : piece.bytes;
        piece.stuck = stuck;
        if (piece.physical == NULL)
            operation_fill_host(piece.host, part, word);
        else if (!operation_fill_pages(&piece, part, word))
            return CUDA_ERROR_UNKNOWN;
        target += part;
        left -= part;
    }
    return CUDA_SUCCESS;
}

/* ---- what is done in the order of its stream ---- */

static CUresult
operation_check(const struct sim_operation *operation)
{
    size_t bytes =
        operation->kind == SIM_OPERATION_FILL ? operation->count * operation->width : operation->count;
    bool host = sim_region_find(operation->target) == NULL;

    if (operation->kind == SIM_OPERATION_FREE)
        return CUDA_SUCCESS;
    if (!operation_is_memory(operation->target, bytes)
        || (operation->kind == SIM_OPERATION_COPY && !operation_is_memory(operation->source, bytes)))
        return CUDA_ERROR_INVALID_VALUE;
    /* a fill of memory that the driver does not know */
    return operation->kind == SIM_OPERATION_FILL && host && sim_host_find(operation->target) == NULL
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

CUresult
sim_operation_check(const struct sim_operation *operation)
{
    CUresult rc;

    sim_memory_lock();
    rc = operation_check(operation);
    sim_memory_unlock();
    return rc;
}

CUresult
sim_operation_run(const struct sim_operation *operation)
{
    CUresult rc;

    sim_memory_lock();
    rc = operation_check(operation);
    if (rc == CUDA_SUCCESS && operation->kind == SIM_OPERATION_FREE)
        rc = sim_alloc_free(operation->target);
    else if (rc == CUDA_SUCCESS)
        rc = operation->kind == SIM_OPERATION_FILL ? operation_fill(operation) : operation_copy(operation);
    sim_memory_unlock();
    return rc;
}
