/* Device memory: allocations, fills and copies. */
#include "simdrv/cuda.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "simdrv/contexts.h"
#include "simdrv/session.h"
#include "simdrv/usage.h"

#define USERS_MAX 1024
#define EXTENTS_MAX 4096
#define LOOK_AGAIN_NS 20000000u

/* An allocation.  Its address is that of its mapping of the memory file, which makes it
 * unlike all others and counts it; its bytes are pages of the GPU. */
struct area {
    struct area *next;
    const struct CUctx_st *context;
    uint8_t *address;
    size_t bytes, mapped;
    size_t extents;
    struct sim_extent extent[];
};

static struct {
    pthread_mutex_t lock;
    struct area *first;
} memory = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- how much there is ---- */

void *
sim_cuda_map(const struct sim_cuda_device *device, size_t bytes)
{
    char path[SIM_PATH_MAX];
    void *map = MAP_FAILED;
    int fd = sim_session_memory_path(&device->gpu, device->gi, path)
                 ? open(path, O_RDONLY | O_CLOEXEC)
                 : -1;

    if (fd < 0)
        return NULL;
    map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return map == MAP_FAILED ? NULL : map;
}

static CUresult
free_bytes(const struct sim_cuda_device *device, uint64_t *ret_free)
{
    static struct sim_context users[USERS_MAX]; /* under the lock */
    char path[SIM_PATH_MAX];
    uint64_t total = sim_cuda_bytes(device), used;

    if (!sim_session_memory_path(&device->gpu, device->gi, path))
        return CUDA_ERROR_OPERATING_SYSTEM;
    used = sim_contexts_used(path, users, USERS_MAX);
    *ret_free = used < total ? (total - used) / SIM_PAGE_BYTES * SIM_PAGE_BYTES : 0;
    return CUDA_SUCCESS;
}

/* The context that a call works in, and its device. */
static CUresult
enter(struct CUctx_st **ret_context, struct sim_cuda_device *ret_device)
{
    CUresult rc = sim_cuda_current(ret_context);

    return rc == CUDA_SUCCESS ? sim_cuda_device((*ret_context)->device, ret_device) : rc;
}

CUDA_API CUresult
cuMemGetInfo_v2(size_t *free_size, size_t *total)
{
    struct sim_cuda_device device;
    struct CUctx_st *context;
    CUresult rc = enter(&context, &device);
    uint64_t left = 0;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (free_size == NULL || total == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&memory.lock);
    rc = free_bytes(&device, &left);
    pthread_mutex_unlock(&memory.lock);
    if (rc != CUDA_SUCCESS)
        return rc;
    *free_size = (size_t)left;
    *total = (size_t)sim_cuda_bytes(&device);
    return CUDA_SUCCESS;
}

/* ---- allocations ---- */

static CUresult
make_area(const struct CUctx_st *context, const struct sim_cuda_device *device,
          struct area *area)
{
    uint32_t pages = (uint32_t)(area->mapped / SIM_PAGE_BYTES);
    bool clear = (device->gpu.memory_faults & SIM_FAULT_LEAK) == 0;

    area->address = sim_cuda_map(device, area->mapped);
    if (area->address == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    area->extents = sim_vram_take(context->vram, pages, clear, area->extent, EXTENTS_MAX);
    if (area->extents > 0)
        return CUDA_SUCCESS;
    munmap(area->address, area->mapped);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Under the lock. */
static CUresult
allocate(const struct CUctx_st *context, const struct sim_cuda_device *device, size_t bytes,
         struct area **ret_area)
{
    struct area *area = malloc(sizeof(*area) + EXTENTS_MAX * sizeof(area->extent[0]));
    uint64_t left = 0;
    CUresult rc = area == NULL ? CUDA_ERROR_OUT_OF_MEMORY : free_bytes(device, &left);

    if (rc == CUDA_SUCCESS && bytes > left)
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (rc == CUDA_SUCCESS) {
        *area = (struct area) { .context = context, .bytes = bytes };
        area->mapped = (bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES * SIM_PAGE_BYTES;
        rc = area->mapped > left ? CUDA_ERROR_OUT_OF_MEMORY
                                 : make_area(context, device, area);
    }
    if (rc != CUDA_SUCCESS) {
        free(area);
        return rc;
    }
    *ret_area = realloc(area, sizeof(*area) + area->extents * sizeof(area->extent[0]));
    if (*ret_area == NULL)
        *ret_area = area;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    struct sim_cuda_device device;
    struct CUctx_st *context;
    CUresult rc = enter(&context, &device);
    struct area *area = NULL;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (address == NULL || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&memory.lock);
    rc = allocate(context, &device, bytes, &area);
    if (rc == CUDA_SUCCESS) {
        area->next = memory.first;
        memory.first = area;
        *address = (uintptr_t)area->address;
    }
    pthread_mutex_unlock(&memory.lock);
    return rc;
}

/* Unlink the area that `link` points at, and free it. */
static void
drop(struct area **link)
{
    struct area *area = *link;

    *link = area->next;
    sim_vram_release(area->context->vram, area->extent, area->extents);
    munmap(area->address, area->mapped);
    free(area);
}

CUDA_API CUresult
cuMemFree_v2(CUdeviceptr address)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);

    if (rc != CUDA_SUCCESS || address == 0)
        return rc;
    rc = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&memory.lock);
    for (struct area **link = &memory.first; *link != NULL; link = &(*link)->next)
        if ((uintptr_t)(*link)->address == address) {
            drop(link);
            rc = CUDA_SUCCESS;
            break;
        }
    pthread_mutex_unlock(&memory.lock);
    return rc;
}

void
sim_cuda_memory_drop(const struct CUctx_st *context)
{
    pthread_mutex_lock(&memory.lock);
    for (struct area **link = &memory.first; *link != NULL;) {
        if ((*link)->context == context)
            drop(link);
        else
            link = &(*link)->next;
    }
    pthread_mutex_unlock(&memory.lock);
}

/* ---- fills and copies ---- */

/* What is to be done with the bytes: exactly one of the three. */
struct work {
    const uint8_t *source;
    uint8_t *target;
    uint32_t word;
    bool stuck; /* the first page does not take fills: a fault that was injected */
};

static bool
work_on_page(struct sim_vram *vram, uint32_t page, uint64_t offset, size_t length,
             struct work *work)
{
    bool done;

    if (work->source != NULL) {
        done = sim_vram_write(vram, page, offset, work->source, length);
        work->source += length;
    } else if (work->target != NULL) {
        done = sim_vram_read(vram, page, offset, work->target, length);
        work->target += length;
    } else {
        done = (work->stuck && page == 0) ||
               sim_vram_fill(vram, page, offset, length, work->word);
    }
    return done;
}

/* The instance's page that holds byte `at` of the area. */
static uint32_t
page_at(const struct area *area, uint64_t at)
{
    uint64_t index = at / SIM_PAGE_BYTES;
    size_t i = 0;

    while (index >= area->extent[i].count)
        index -= area->extent[i++].count;
    return area->extent[i].page + (uint32_t)index;
}

static CUresult
work_on_area(const struct area *area, uint64_t at, uint64_t length, struct work *work)
{
    while (length > 0) {
        uint64_t offset = at % SIM_PAGE_BYTES;
        uint64_t part = length < SIM_PAGE_BYTES - offset ? length : SIM_PAGE_BYTES - offset;

        if (!work_on_page(area->context->vram, page_at(area, at), offset, part, work))
            return CUDA_ERROR_UNKNOWN;
        at += part;
        length -= part;
    }
    return CUDA_SUCCESS;
}

/* Copies come in thousands: whether the device still stands is looked at now and then. */
static CUresult
enter_quickly(struct CUctx_st **ret_context)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_current(ret_context);
    uint64_t now = sim_boot_ns();

    if (rc != CUDA_SUCCESS ||
        ((*ret_context)->looked_ns != 0 && now - (*ret_context)->looked_ns < LOOK_AGAIN_NS))
        return rc;
    rc = sim_cuda_device((*ret_context)->device, &device);
    if (rc != CUDA_SUCCESS)
        return rc;
    (*ret_context)->looked_ns = now;
    (*ret_context)->faults = device.gpu.memory_faults;
    return CUDA_SUCCESS;
}

/* A range must lie in one allocation, as on the real one. */
static CUresult
work_on(CUdeviceptr address, size_t length, struct work *work)
{
    struct CUctx_st *context;
    CUresult rc = enter_quickly(&context);

    if (rc != CUDA_SUCCESS || length == 0)
        return rc;
    work->stuck = (context->faults & SIM_FAULT_STUCK) != 0;
    rc = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&memory.lock);
    for (const struct area *area = memory.first; area != NULL; area = area->next) {
        uint64_t start = (uintptr_t)area->address;

        if (address < start || address - start >= area->bytes)
            continue;
        if (length <= area->bytes - (address - start))
            rc = work_on_area(area, address - start, length, work);
        break;
    }
    pthread_mutex_unlock(&memory.lock);
    return rc;
}

CUDA_API CUresult
cuMemsetD32_v2(CUdeviceptr address, unsigned int value, size_t count)
{
    struct work work = { .word = value };

    if (address % sizeof(value) != 0 || count > SIZE_MAX / sizeof(value))
        return CUDA_ERROR_INVALID_VALUE;
    return work_on(address, count * sizeof(value), &work);
}

CUDA_API CUresult
cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count)
{
    struct work work = { .word = value * 0x01010101u };
    size_t head = address % 4 == 0 ? 0 : 4 - address % 4, tail;
    uint8_t bytes[4] = { value, value, value, value };
    CUresult rc = CUDA_SUCCESS;

    head = head < count ? head : count;
    tail = (count - head) % 4;
    if (head > 0)
        rc = work_on(address, head, &(struct work) { .source = bytes });
    if (rc == CUDA_SUCCESS && count - head - tail > 0)
        rc = work_on(address + head, count - head - tail, &work);
    if (rc == CUDA_SUCCESS && tail > 0)
        rc = work_on(address + count - tail, tail, &(struct work) { .source = bytes });
    return rc;
}

CUDA_API CUresult
cuMemcpyHtoD_v2(CUdeviceptr address, const void *source, size_t bytes)
{
    struct work work = { .source = source };

    return source == NULL ? CUDA_ERROR_INVALID_VALUE : work_on(address, bytes, &work);
}

CUDA_API CUresult
cuMemcpyDtoH_v2(void *target, CUdeviceptr address, size_t bytes)
{
    struct work work = { .target = target };

    return target == NULL ? CUDA_ERROR_INVALID_VALUE : work_on(address, bytes, &work);
}
