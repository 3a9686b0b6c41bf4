#include "sim/cuda/memory/physical.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim/cuda/memory/aside.h"
#include "sim/machine/folder.h"
#include "sim/machine/session.h"

static struct {
    pthread_mutex_t lock;
    unsigned count;
    struct sim_memory *opened[SIM_CUDA_DEVICES_MAX];
    struct sim_memory memory[SIM_CUDA_DEVICES_MAX];
    struct sim_physical *first;
} process = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct sim_memory *
sim_memory_at(unsigned index)
{
    return index < __atomic_load_n(&process.count, __ATOMIC_ACQUIRE) ? process.opened[index] : NULL;
}

static struct sim_slot *
physical_slot_of(const struct sim_memory *memory)
{
    return sim_ledger_slot(memory->vram, memory->slot);
}

/* ---- after a restore, under the lock ---- */

/* A restore gave the process other pages: the file says which became which. */
static void
physical_move(struct sim_physical *physical, const struct sim_saved *saved, uint32_t count)
{
    struct sim_extents now = { 0 };

    for (uint32_t i = 0; i < physical->pages.count; i++) {
        const struct sim_extent *extent = sim_extents_at(&physical->pages, i);

        for (uint32_t at = 0; at < extent->count; at++)
            (void)!sim_extents_add(physical->memory->vram, &now,
                                   sim_saved_find(saved, count, extent->page + at));
    }
    free(physical->pages.more);
    physical->pages = now;
}

static void
physical_follow(struct sim_memory *memory)
{
    uint32_t count = sim_aside_count(memory->aside);
    size_t length = count * sizeof(struct sim_saved);
    void *saved = MAP_FAILED;

    memory->moves = __atomic_load_n(&physical_slot_of(memory)->moves, __ATOMIC_ACQUIRE);
    if (count > 0)
        saved = mmap(NULL, length, PROT_READ, MAP_SHARED, memory->aside, 0);
    if (saved == MAP_FAILED)
        return;
    for (struct sim_physical *physical = process.first; physical != NULL; physical = physical->next)
        if (physical->memory == memory && physical->slot == memory->slot)
            physical_move(physical, saved, count);
    munmap(saved, length);
    (void)!ftruncate(memory->aside, 0);
}

/* ---- the lock, and the gate before it ---- */

static void
physical_wait_at(uint32_t *gate)
{
    uint32_t state;

    while ((state = __atomic_load_n(gate, __ATOMIC_SEQ_CST)) != CU_PROCESS_STATE_RUNNING)
        syscall(SYS_futex, gate, FUTEX_WAIT, state, NULL, NULL, 0);
}

void
sim_memory_wait(void)
{
    struct sim_memory *memory;

    for (unsigned i = 0; (memory = sim_memory_at(i)) != NULL; i++)
        physical_wait_at(&physical_slot_of(memory)->gate);
}

static void
physical_set_busy(uint32_t busy)
{
    struct sim_memory *memory;

    for (unsigned i = 0; (memory = sim_memory_at(i)) != NULL; i++)
        __atomic_store_n(&physical_slot_of(memory)->busy, busy, __ATOMIC_SEQ_CST);
}

static bool
physical_is_open(void)
{
    struct sim_memory *memory;

    for (unsigned i = 0; (memory = sim_memory_at(i)) != NULL; i++)
        if (__atomic_load_n(&physical_slot_of(memory)->gate, __ATOMIC_SEQ_CST) != CU_PROCESS_STATE_RUNNING)
            return false;
    return true;
}

/* Closing the gate waits until no call is busy; a call looks at the gate after it counts itself as
 * busy. */
void
sim_memory_lock(void)
{
    struct sim_memory *memory;

    for (;;) {
        sim_memory_wait();
        pthread_mutex_lock(&process.lock);
        physical_set_busy(1);
        if (physical_is_open())
            break;
        physical_set_busy(0);
        pthread_mutex_unlock(&process.lock);
    }
    for (unsigned i = 0; (memory = sim_memory_at(i)) != NULL; i++)
        if (__atomic_load_n(&physical_slot_of(memory)->moves, __ATOMIC_ACQUIRE) != memory->moves)
            physical_follow(memory);
}

void
sim_memory_unlock(void)
{
    physical_set_busy(0);
    pthread_mutex_unlock(&process.lock);
}

/* A child has none of its parent's memory, but the files that hold it. */
void
sim_memory_forget(void)
{
    for (unsigned i = 0; i < process.count; i++) {
        sim_ledger_abandon(process.opened[i]->vram);
        close(process.opened[i]->aside);
    }
    for (struct sim_physical *physical = process.first; physical != NULL; physical = physical->next)
        if (physical->fd >= 0)
            close(physical->fd);
    memset(process.memory, 0, sizeof(process.memory));
    process.count = 0;
    process.first = NULL;
    pthread_mutex_init(&process.lock, NULL);
}

/* ---- a device's memory ---- */

/* A page of the memory file whose number is the slot's: by it NVML finds the slot of a
 * process, and the process of a slot. */
static void *
physical_map_presence(const struct sim_cuda_device *device, uint32_t slot)
{
    char path[SIM_PATH_MAX];
    void *map = MAP_FAILED;
    int fd = sim_folder_memory_path(&device->gpu, device->gi, path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return NULL;
    map = mmap(NULL, SIM_BLOCK_BYTES, PROT_READ, MAP_SHARED, fd, (off_t)slot * SIM_BLOCK_BYTES);
    close(fd);
    if (map == MAP_FAILED)
        return NULL;
    madvise(map, SIM_BLOCK_BYTES, MADV_DONTFORK);
    return map;
}

static uint64_t
physical_birth_of(const struct sim_cuda_device *device)
{
    return device->gi == NULL ? device->gpu.birth : device->gi->birth;
}

static CUresult
physical_open_memory(const struct sim_cuda_device *device, struct sim_memory *memory)
{
    char folder[SIM_PATH_MAX];

    if (!sim_folder_vram_path(&device->gpu, device->gi, folder))
        return CUDA_ERROR_OPERATING_SYSTEM;
    memory->vram = sim_vram_open(folder, &device->gpu, sim_cuda_bytes(device));
    if (memory->vram == NULL)
        return CUDA_ERROR_OPERATING_SYSTEM;
    memory->aside = sim_aside_new();
    if (memory->aside < 0 || !sim_ledger_join(memory->vram)) {
        if (memory->aside >= 0)
            close(memory->aside);
        sim_vram_close(memory->vram);
        memory->vram = NULL;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory->slot = sim_ledger_own(memory->vram);
    __atomic_store_n(&physical_slot_of(memory)->aside, (uint32_t)memory->aside + 1, __ATOMIC_RELEASE);
    memory->birth = physical_birth_of(device);
    memory->faults = device->gpu.memory_faults;
    process.opened[process.count] = memory;
    __atomic_store_n(&process.count, process.count + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&physical_slot_of(memory)->busy, 1, __ATOMIC_SEQ_CST);
    return CUDA_SUCCESS;
}

CUresult
sim_memory_open(CUdevice number, struct sim_memory **ret_memory)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(number, &device);
    struct sim_memory *memory;

    if (rc != CUDA_SUCCESS)
        return rc;
    memory = &process.memory[number];
    memory->number = number;
    if (memory->vram == NULL)
        rc = physical_open_memory(&device, memory);
    else
        memory->faults = device.gpu.memory_faults;
    if (rc == CUDA_SUCCESS)
        *ret_memory = memory;
    return rc;
}

CUresult
sim_memory_use(struct sim_memory *memory)
{
    struct sim_cuda_device device;
    CUresult rc = CUDA_SUCCESS;

    if (memory->presence == NULL) {
        rc = sim_cuda_device(memory->number, &device);
        if (rc != CUDA_SUCCESS)
            return rc;
        memory->presence = physical_map_presence(&device, memory->slot);
        if (memory->presence == NULL)
            return CUDA_ERROR_OPERATING_SYSTEM;
    }
    memory->users++;
    return rc;
}

void
sim_memory_leave(struct sim_memory *memory)
{
    if (--memory->users > 0)
        return;
    munmap(memory->presence, SIM_BLOCK_BYTES);
    memory->presence = NULL;
}

/* ---- physical memory ---- */

static struct sim_physical *
physical_make(struct sim_memory *memory, size_t bytes)
{
    struct sim_physical *physical = malloc(sizeof(*physical));

    if (physical == NULL)
        return NULL;
    *physical = (struct sim_physical){ .references = 1,
                                       .memory = memory,
                                       .slot = memory == NULL ? 0 : memory->slot,
                                       .fd = -1,
                                       .bytes = bytes,
                                       .next = process.first };
    if (process.first != NULL)
        process.first->previous = physical;
    process.first = physical;
    return physical;
}

static void
physical_unmake(struct sim_physical *physical)
{
    if (physical->previous != NULL)
        physical->previous->next = physical->next;
    else
        process.first = physical->next;
    if (physical->next != NULL)
        physical->next->previous = physical->previous;
    free(physical);
}

CUresult
sim_physical_new(struct sim_memory *memory, size_t bytes, unsigned how, struct sim_physical **ret_physical)
{
    uint64_t pages = bytes / SIM_PAGE_BYTES + (bytes % SIM_PAGE_BYTES != 0);
    struct sim_physical *physical = pages > UINT32_MAX ? NULL : physical_make(memory, 0);
    CUresult rc;

    if (physical == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    rc = sim_memory_use(memory);
    if (rc != CUDA_SUCCESS) {
        physical_unmake(physical);
        return rc;
    }
    if ((memory->faults & SIM_FAULT_LEAK) == 0 || (how & SIM_TAKE_TOP) != 0)
        how |= SIM_TAKE_CLEAR;
    if (!sim_ledger_take(memory->vram, (uint32_t)pages, how, &physical->pages)) {
        sim_memory_leave(memory);
        physical_unmake(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical->bytes = pages * SIM_PAGE_BYTES;
    *ret_physical = physical;
    return CUDA_SUCCESS;
}

CUresult
sim_physical_new_host(size_t bytes, struct sim_physical **ret_physical)
{
    struct sim_physical *physical = physical_make(NULL, bytes);

    if (physical == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    physical->fd = memfd_create("bulkhead-sim-host", MFD_CLOEXEC);
    if (physical->fd < 0 || ftruncate(physical->fd, (off_t)bytes) != 0) {
        sim_physical_release(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_physical = physical;
    return CUDA_SUCCESS;
}

/* What is shared goes by closing the last file: other processes that have it open keep it. */
static void
physical_give_back(struct sim_physical *physical)
{
    struct sim_memory *memory = physical->memory;
    struct sim_extents none = { 0 };

    if (physical->slot == memory->slot) {
        sim_ledger_release(memory->vram, physical->slot, &physical->pages);
    } else {
        free(physical->pages.more);
        physical->pages = none;
        close(physical->fd);
        physical->fd = -1;
        sim_ledger_reap(memory->vram);
    }
    sim_memory_leave(memory);
}

void
sim_physical_release(struct sim_physical *physical)
{
    if (physical == NULL || --physical->references > 0)
        return;
    if (physical->memory != NULL)
        physical_give_back(physical);
    if (physical->fd >= 0)
        close(physical->fd);
    physical_unmake(physical);
}

CUresult
sim_physical_share(struct sim_physical *physical, uint32_t location)
{
    uint32_t slot = 0;

    if (physical->fd >= 0)
        return CUDA_SUCCESS;
    physical->fd =
        sim_ledger_share(physical->memory->vram, &physical->pages, physical->bytes, location, &slot);
    if (physical->fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    physical->slot = slot;
    return CUDA_SUCCESS;
}

/* `fd` becomes the object's. */
static CUresult
physical_join_shared(struct sim_memory *memory, uint32_t slot, int fd, struct sim_physical **ret_physical)
{
    size_t bytes = (size_t)SIM_READ(sim_ledger_slot(memory->vram, slot)->bytes);
    struct sim_physical *physical = physical_make(memory, bytes);
    CUresult rc = physical == NULL ? CUDA_ERROR_OUT_OF_MEMORY : sim_memory_use(memory);

    if (rc == CUDA_SUCCESS && !sim_ledger_pages(memory->vram, slot, &physical->pages)) {
        sim_memory_leave(memory);
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (rc == CUDA_SUCCESS && bytes > sim_extents_pages(&physical->pages) * SIM_PAGE_BYTES) {
        free(physical->pages.more); /* others wrote what it says, or whose its pages are */
        sim_memory_leave(memory);
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    if (rc != CUDA_SUCCESS) {
        if (physical != NULL)
            physical_unmake(physical);
        close(fd);
        return rc;
    }
    physical->slot = slot;
    physical->fd = fd;
    *ret_physical = physical;
    return CUDA_SUCCESS;
}

/* A file of the machine's memory: it can be sealed, as files on disks cannot. */
static CUresult
physical_adopt_host(int fd, struct sim_physical **ret_physical)
{
    struct sim_physical *physical;
    struct stat st;

    if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) != 0 || st.st_size <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    physical = physical_make(NULL, (size_t)st.st_size);
    if (physical == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    physical->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (physical->fd < 0) {
        physical_unmake(physical);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *ret_physical = physical;
    return CUDA_SUCCESS;
}

CUresult
sim_physical_adopt(int fd, struct sim_physical **ret_physical)
{
    struct sim_memory *memory;
    int count = 0, copy;

    (void)cuDeviceGetCount(&count);
    for (CUdevice number = 0; number < count; number++) {
        uint32_t slot =
            sim_memory_open(number, &memory) == CUDA_SUCCESS ? sim_ledger_shared_slot(memory->vram, fd) : 0;

        if (slot == 0)
            continue;
        copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        return copy < 0 ? CUDA_ERROR_OPERATING_SYSTEM
                        : physical_join_shared(memory, slot, copy, ret_physical);
    }
    return physical_adopt_host(fd, ret_physical);
}

CUresult
sim_physical_reopen(struct sim_memory *memory, uint32_t slot, uint32_t generation,
                    struct sim_physical **ret_physical)
{
    int fd = sim_ledger_reopen(memory->vram, slot, generation);

    return fd < 0 ? CUDA_ERROR_INVALID_HANDLE : physical_join_shared(memory, slot, fd, ret_physical);
}

uint32_t
sim_physical_page(struct sim_physical *physical, uint64_t at)
{
    uint64_t index = at / SIM_PAGE_BYTES;
    uint32_t i = 0;

    while (index >= sim_extents_at(&physical->pages, i)->count)
        index -= sim_extents_at(&physical->pages, i++)->count;
    return sim_extents_at(&physical->pages, i)->page + (uint32_t)index;
}
