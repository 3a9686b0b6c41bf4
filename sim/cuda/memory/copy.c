/* Fills and copies, by whatever addresses. */
#include "sim/cuda/work/stream.h"

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
find_mapped(const struct sim_region *region, uint64_t address, struct piece *ret_piece)
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
find_piece(uint64_t address, struct piece *ret_piece)
{
    struct sim_region *region = sim_region_find(address);
    struct sim_range range;

    *ret_piece = (struct piece) { .bytes = SIZE_MAX };
    if (region == NULL) {
        ret_piece->host = (uint8_t *)(uintptr_t)address;
        return !sim_space_has(address);
    }
    if (region->kind == SIM_REGION_RESERVED)
        return find_mapped(region, address, ret_piece);
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
is_memory(uint64_t address, uint64_t length)
{
    struct piece piece;

    while (length > 0) {
        const struct sim_region *region = sim_region_find(address);

        if (!find_piece(address, &piece))
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
work_on_pages(const struct piece *piece, size_t length, void *bytes, bool write)
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
move(const struct piece *target, const struct piece *source, size_t length)
{
    if (target->physical == NULL && source->physical == NULL) {
        memmove(target->host, source->host, length);
        return true;
    }
    if (source->physical == NULL)
        return work_on_pages(target, length, source->host, true);
    if (target->physical == NULL)
        return work_on_pages(source, length, target->host, false);
    for (size_t at = 0; at < length;) {
        size_t part = length - at < BOUNCE_BYTES ? length - at : BOUNCE_BYTES;
        uint8_t bounce[BOUNCE_BYTES];
        struct piece from = *source, to = *target;

        from.offset += at;
        to.offset += at;
        if (!work_on_pages(&from, part, bounce, false) ||
            !work_on_pages(&to, part, bounce, true))
            return false;
        at += part;
    }
    return true;
}

static CUresult
copy(const struct sim_work *work)
{
    uint64_t target = work->target, source = work->source;
    size_t left = work->count;

    while (left > 0) {
        struct piece to, from;
        size_t part = left;

        if (!find_piece(target, &to) || !find_piece(source, &from))
            return CUDA_ERROR_INVALID_VALUE;
        part = part < to.bytes ? part : to.bytes;
        part = part < from.bytes ? part : from.bytes;
        if (!move(&to, &from, part))
            return CUDA_ERROR_UNKNOWN;
        target += part;
        source += part;
        left -= part;
    }
    return CUDA_SUCCESS;
}

static void
fill_host(uint8_t *host, size_t length, uint32_t word)
{
    for (size_t i = 0; i < length; i++)
        host[i] = (uint8_t)(word >> i % sizeof(word) * 8);
}

/* Whole words on pages; what is left at either end goes as bytes. */
static bool
fill_pages(const struct piece *piece, size_t length, uint32_t word)
{
    struct sim_vram *vram = piece->physical->memory->vram;
    uint64_t at = piece->offset;

    while (length > 0) {
        uint32_t page = sim_physical_page(piece->physical, at);
        uint64_t offset = at % SIM_PAGE_BYTES;
        size_t part = length < SIM_PAGE_BYTES - offset ? length : SIM_PAGE_BYTES - offset;
        size_t whole = part / sizeof(word) * sizeof(word), rest = part - whole;

        if (!(piece->stuck && page == 0) &&
            (!sim_vram_fill(vram, page, offset, whole, word) ||
             (rest > 0 && !sim_vram_write(vram, page, offset + whole, &word, rest))))
            return false;
        word = rest > 0 ? word >> rest * 8 | word << (4 - rest) * 8 : word;
        at += part;
        length -= part;
    }
    return true;
}

static CUresult
fill(const struct sim_work *work)
{
    uint32_t word = work->width == 1   ? work->value * 0x01010101u
                    : work->width == 2 ? work->value * 0x00010001u
                                       : work->value;
    uint64_t target = work->target;
    size_t left = work->count * work->width;
    bool stuck =
        sim_memory_at(0) != NULL && (sim_memory_at(0)->faults & SIM_FAULT_STUCK) != 0;

    while (left > 0) {
        struct piece piece;
        size_t part = left;

        if (!find_piece(target, &piece))
            return CUDA_ERROR_INVALID_VALUE;
        part = part < piece.bytes ? part : piece.bytes;
        piece.stuck = stuck;
        if (piece.physical == NULL)
            fill_host(piece.host, part, word);
        else if (!fill_pages(&piece, part, word))
            return CUDA_ERROR_UNKNOWN;
        target += part;
        left -= part;
    }
    return CUDA_SUCCESS;
}

/* ---- work ---- */

static CUresult
check(const struct sim_work *work)
{
    size_t bytes = work->kind == SIM_WORK_FILL ? work->count * work->width : work->count;
    bool host = sim_region_find(work->target) == NULL;

    if (work->kind == SIM_WORK_FREE)
        return CUDA_SUCCESS;
    if (!is_memory(work->target, bytes) ||
        (work->kind == SIM_WORK_COPY && !is_memory(work->source, bytes)))
        return CUDA_ERROR_INVALID_VALUE;
    /* a fill of memory that the driver does not know */
    return work->kind == SIM_WORK_FILL && host && sim_host_find(work->target) == NULL
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

CUresult
sim_work_check(const struct sim_work *work)
{
    CUresult rc;

    sim_memory_lock();
    rc = check(work);
    sim_memory_unlock();
    return rc;
}

CUresult
sim_work_run(const struct sim_work *work)
{
    CUresult rc;

    sim_memory_lock();
    rc = check(work);
    if (rc == CUDA_SUCCESS && work->kind == SIM_WORK_FREE)
        rc = sim_alloc_free(work->target);
    else if (rc == CUDA_SUCCESS)
        rc = work->kind == SIM_WORK_FILL ? fill(work) : copy(work);
    sim_memory_unlock();
    return rc;
}

/* How a call came: at once, or into a stream; with the thread's own default stream or the
 * one of all. */
struct manner {
    bool async, own;
    CUstream stream;
};

static const struct manner now = { false, false, NULL };
static const struct manner now_own = { false, true, NULL };

/* A call that is no asynchronous one waits for what is in the default stream, and is done
 * when it returns. */
static CUresult
submit(const struct manner *manner, const struct sim_work *work)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_enter(&context);

    if (rc != CUDA_SUCCESS || work->count == 0)
        return rc;
    rc = sim_work_check(work);
    if (rc != CUDA_SUCCESS)
        return rc;
    return manner->async ? sim_cuda_stream_submit(manner->stream, manner->own, work)
                         : sim_cuda_stream_run(manner->own, work);
}

static CUresult
fill_with(const struct manner *manner, uint64_t target, size_t count,
          const struct sim_work *pattern)
{
    struct sim_work work = *pattern;

    work.kind = SIM_WORK_FILL;
    work.target = target;
    work.count = count;
    if (target % work.width != 0 || count > SIZE_MAX / work.width)
        return CUDA_ERROR_INVALID_VALUE;
    return submit(manner, &work);
}

#define FILL(manner, target, size, word, count)                                            \
    fill_with((manner), (target), (count),                                                 \
              &(struct sim_work) { .width = (size), .value = (word) })

/* One element's three ABIs, and its asynchronous two. */
#define FILLS(letter, size, type)                                                          \
    CUDA_API CUresult cuMemsetD##letter##_v2(CUdeviceptr target, type value, size_t count) \
    {                                                                                      \
        return FILL(&now, target, size, value, count);                                     \
    }                                                                                      \
    CUDA_API CUresult cuMemsetD##letter##_v2_ptds(CUdeviceptr target, type value,          \
                                                  size_t count)                            \
    {                                                                                      \
        return FILL(&now_own, target, size, value, count);                                 \
    }                                                                                      \
    CUDA_API CUresult cuMemsetD##letter##Async(CUdeviceptr target, type value,             \
                                               size_t count, CUstream stream)              \
    {                                                                                      \
        const struct manner manner = { true, false, stream };                              \
                                                                                           \
        return FILL(&manner, target, size, value, count);                                  \
    }                                                                                      \
    CUDA_API CUresult cuMemsetD##letter##Async_ptsz(CUdeviceptr target, type value,        \
                                                    size_t count, CUstream stream)         \
    {                                                                                      \
        const struct manner manner = { true, true, stream };                               \
                                                                                           \
        return FILL(&manner, target, size, value, count);                                  \
    }

FILLS(8, 1, unsigned char)
FILLS(16, 2, unsigned short)
FILLS(32, 4, unsigned int)

CUDA_API CUresult
cuMemsetD8(CUdeviceptr_v1 target, unsigned char value, unsigned int count)
{
    return cuMemsetD8_v2(target, value, count);
}

CUDA_API CUresult
cuMemsetD32(CUdeviceptr_v1 target, unsigned int value, unsigned int count)
{
    return cuMemsetD32_v2(target, value, count);
}

/* ---- copies ---- */

static CUresult
copy_with(const struct manner *manner, uint64_t target, uint64_t source, size_t bytes)
{
    const struct sim_work work = {
        .kind = SIM_WORK_COPY, .target = target, .source = source, .count = bytes
    };

    if (bytes > 0 && (target == 0 || source == 0))
        return CUDA_ERROR_INVALID_VALUE;
    return submit(manner, &work);
}

/* An address that a call says is the device's. */
static bool
is_device(uint64_t address)
{
    bool known;

    sim_memory_lock();
    known = sim_space_has(address) || sim_host_find(address) != NULL;
    sim_memory_unlock();
    return known;
}

static CUresult
to_device(const struct manner *manner, uint64_t target, const void *source, size_t bytes)
{
    if (sim_cuda_ready() && bytes > 0 && !is_device(target))
        return CUDA_ERROR_INVALID_VALUE;
    return copy_with(manner, target, (uintptr_t)source, bytes);
}

static CUresult
to_host(const struct manner *manner, void *target, uint64_t source, size_t bytes)
{
    if (sim_cuda_ready() && bytes > 0 && !is_device(source))
        return CUDA_ERROR_INVALID_VALUE;
    return copy_with(manner, (uintptr_t)target, source, bytes);
}

static CUresult
on_device(const struct manner *manner, uint64_t target, uint64_t source, size_t bytes)
{
    if (sim_cuda_ready() && bytes > 0 && (!is_device(source) || !is_device(target)))
        return CUDA_ERROR_INVALID_VALUE;
    return copy_with(manner, target, source, bytes);
}

/* A direction's ABIs: the oldest, the present one, that for streams of a thread's own, and
 * the asynchronous three. */
#define COPIES(way, work, to, from, old_to, old_from)                                      \
    CUDA_API CUresult cuMemcpy##way(old_to target, old_from source, unsigned int bytes)    \
    {                                                                                      \
        return work(&now, target, source, bytes);                                          \
    }                                                                                      \
    CUDA_API CUresult cuMemcpy##way##_v2(to target, from source, size_t bytes)             \
    {                                                                                      \
        return work(&now, target, source, bytes);                                          \
    }                                                                                      \
    CUDA_API CUresult cuMemcpy##way##_v2_ptds(to target, from source, size_t bytes)        \
    {                                                                                      \
        return work(&now_own, target, source, bytes);                                      \
    }                                                                                      \
    CUDA_API CUresult cuMemcpy##way##Async(old_to target, old_from source,                 \
                                           unsigned int bytes, CUstream stream)            \
    {                                                                                      \
        const struct manner manner = { true, false, stream };                              \
                                                                                           \
        return work(&manner, target, source, bytes);                                       \
    }                                                                                      \
    CUDA_API CUresult cuMemcpy##way##Async_v2(to target, from source, size_t bytes,        \
                                              CUstream stream)                             \
    {                                                                                      \
        const struct manner manner = { true, false, stream };                              \
                                                                                           \
        return work(&manner, target, source, bytes);                                       \
    }                                                                                      \
    CUDA_API CUresult cuMemcpy##way##Async_v2_ptsz(to target, from source, size_t bytes,   \
                                                   CUstream stream)                        \
    {                                                                                      \
        const struct manner manner = { true, true, stream };                               \
                                                                                           \
        return work(&manner, target, source, bytes);                                       \
    }

COPIES(HtoD, to_device, CUdeviceptr, const void *, CUdeviceptr_v1, const void *)
COPIES(DtoH, to_host, void *, CUdeviceptr, void *, CUdeviceptr_v1)
COPIES(DtoD, on_device, CUdeviceptr, CUdeviceptr, CUdeviceptr_v1, CUdeviceptr_v1)

CUDA_API CUresult
cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t bytes)
{
    return copy_with(&now, target, source, bytes);
}

CUDA_API CUresult
cuMemcpy_ptds(CUdeviceptr target, CUdeviceptr source, size_t bytes)
{
    return copy_with(&now_own, target, source, bytes);
}

CUDA_API CUresult
cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    const struct manner manner = { true, false, stream };

    return copy_with(&manner, target, source, bytes);
}

CUDA_API CUresult
cuMemcpyAsync_ptsz(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    const struct manner manner = { true, true, stream };

    return copy_with(&manner, target, source, bytes);
}

/* ---- rectangles ---- */

static bool
is_plain(CUmemorytype type)
{
    return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
           type == CU_MEMORYTYPE_UNIFIED;
}

/* Rows of memory; those of arrays are not built. */
CUDA_API CUresult
cuMemcpy2D_v2(const CUDA_MEMCPY2D *rows)
{
    uint64_t target, source;
    CUresult rc = CUDA_SUCCESS;

    if (rows == NULL || !is_plain(rows->srcMemoryType) || !is_plain(rows->dstMemoryType) ||
        rows->WidthInBytes > rows->srcPitch || rows->WidthInBytes > rows->dstPitch)
        return sim_cuda_ready() ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    source = rows->srcMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)rows->srcHost
                                                       : rows->srcDevice;
    target = rows->dstMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)rows->dstHost
                                                       : rows->dstDevice;
    source += rows->srcY * rows->srcPitch + rows->srcXInBytes;
    target += rows->dstY * rows->dstPitch + rows->dstXInBytes;
    for (size_t i = 0; i < rows->Height && rc == CUDA_SUCCESS; i++)
        rc = copy_with(&now, target + i * rows->dstPitch, source + i * rows->srcPitch,
                       rows->WidthInBytes);
    return rc;
}
