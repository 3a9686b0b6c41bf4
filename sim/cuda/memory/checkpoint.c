/* Checkpoints: a process's device memory leaves the GPU and comes back.
 *
 * The caller does it all, in the files of the memory; the process itself need do nothing.
 * A lock closes the gate of its slots (sim/machine/vram.h), at which its calls wait, and
 * waits until none is under way.  A checkpoint copies its pages into a file in main memory,
 * which the process opened for it, and gives them back.  A restore takes as many pages,
 * writes the bytes to them, and leaves in the file which page became which; the process
 * reads that at its next call. */
#include "sim/cuda/cuda.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim/cuda/memory/aside.h"
#include "sim/machine/contexts.h"
#include "sim/machine/files.h"
#include "sim/machine/folder.h"
#include "sim/machine/ledger.h"
#include "sim/machine/queue.h"
#include "sim/machine/session.h"
#include "sim/machine/usage.h"

#define CONTEXTS_MAX 4096
#define POLL_NS 200000
#define AUTO_FREE __attribute__((cleanup(checkpoint_free_saved)))

static void
checkpoint_free_saved(void *saved)
{
    free(*(void **)saved);
}

/* A process on one device, as the ledger and NVML know it. */
struct target {
    struct sim_vram *vram;
    struct sim_slot *record;
    uint32_t slot;
    uint32_t pid;
    bool always_busy; /* a fault that was injected */
};

struct targets {
    unsigned count;
    struct target target[SIM_CUDA_DEVICES_MAX];
};

/* ---- the process that is meant ---- */

static void
checkpoint_close_targets(struct targets *targets)
{
    for (unsigned i = 0; i < targets->count; i++)
        sim_vram_close(targets->target[i].vram);
    targets->count = 0;
}

static bool
checkpoint_open_target(const struct sim_cuda_device *device, const struct sim_context *context,
                       struct target *target)
{
    uint32_t slot = context->slot;
    char folder[SIM_PATH_MAX];

    target->slot = slot;
    target->pid = context->pid;
    target->always_busy = (device->gpu.memory_faults & SIM_FAULT_CUDA_BUSY) != 0;
    if (!sim_folder_vram_path(&device->gpu, device->gi, folder))
        return false;
    target->vram = sim_vram_open(folder, &device->gpu, sim_cuda_bytes(device));
    if (target->vram == NULL)
        return false;
    target->record = sim_ledger_slot(target->vram, slot);
    return true;
}

/* The devices that are visible here, each with its memory file. */
static size_t
checkpoint_list_devices(struct sim_cuda_device devices[SIM_CUDA_DEVICES_MAX],
                        struct sim_mapping files[SIM_CUDA_DEVICES_MAX])
{
    char path[SIM_PATH_MAX];
    size_t found = 0;
    int count = 0;

    (void)cuDeviceGetCount(&count);
    for (CUdevice number = 0; number < count && found < SIM_CUDA_DEVICES_MAX; number++)
        found += sim_cuda_device(number, &devices[found]) == CUDA_SUCCESS
                 && sim_folder_memory_path(&devices[found].gpu, devices[found].gi, path)
                 && sim_mapping_find(path, &files[found]);
    return found;
}

static const struct sim_context *
checkpoint_find_context(const struct sim_context *contexts, size_t count, int pid,
                        const struct sim_mapping *file)
{
    for (size_t i = 0; i < count; i++)
        if (contexts[i].pid == (uint32_t)pid && contexts[i].slot != 0
            && contexts[i].file.device == file->device && contexts[i].file.inode == file->inode)
            return &contexts[i];
    return NULL;
}

/* The slots of a process on the devices that are visible here, by what it maps: one on
 * each. */
static CUresult
checkpoint_open_targets(int pid, struct targets *ret_targets)
{
    struct sim_context *contexts = calloc(CONTEXTS_MAX, sizeof(*contexts));
    struct sim_cuda_device *devices = calloc(SIM_CUDA_DEVICES_MAX, sizeof(*devices));
    struct sim_mapping files[SIM_CUDA_DEVICES_MAX];
    bool has_room = contexts != NULL && devices != NULL;
    size_t count = has_room ? checkpoint_list_devices(devices, files) : 0;
    size_t found = has_room ? sim_contexts_scan(files, count, contexts, CONTEXTS_MAX) : 0;

    ret_targets->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct sim_context *context = checkpoint_find_context(contexts, found, pid, &files[i]);

        if (context != NULL
            && checkpoint_open_target(&devices[i], context, &ret_targets->target[ret_targets->count]))
            ret_targets->count++;
    }
    free(devices);
    free(contexts);
    return ret_targets->count > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
checkpoint_begin(int pid, CUprocessState wanted, struct targets *ret_targets)
{
    CUresult rc;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    rc = checkpoint_open_targets(pid, ret_targets);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (__atomic_load_n(&ret_targets->target[0].record->gate, __ATOMIC_SEQ_CST) == (uint32_t)wanted)
        return CUDA_SUCCESS;
    checkpoint_close_targets(ret_targets);
    return CUDA_ERROR_ILLEGAL_STATE;
}

static void
checkpoint_set_gates(struct targets *targets, CUprocessState state)
{
    for (unsigned i = 0; i < targets->count; i++) {
        uint32_t *gate = &targets->target[i].record->gate;

        __atomic_store_n(gate, (uint32_t)state, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, gate, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

/* ---- the file ---- */

/* The process says which descriptor it is; another file of its own would be opened with our
 * rights. */
static int
checkpoint_open_file(const struct target *target)
{
    uint32_t aside = __atomic_load_n(&target->record->aside, __ATOMIC_ACQUIRE);
    char path[SIM_PATH_MAX], name[sizeof("/memfd:" SIM_ASIDE_NAME)] = "";

    if (aside == 0 || !sim_path(path, "/proc/%u/fd/%u", target->pid, aside - 1)
        || readlink(path, name, sizeof(name) - 1) < 0)
        return -1;
    if (strcmp(name, "/memfd:" SIM_ASIDE_NAME) == 0)
        return open(path, O_RDWR | O_CLOEXEC);
    errno = EBADF;
    return -1;
}

static bool
checkpoint_is_zero(const uint8_t *bytes, size_t length)
{
    return length == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0);
}

static bool
checkpoint_is_hole(int fd, off_t at)
{
    off_t found = lseek(fd, at, SEEK_DATA);

    return found < 0 ? errno == ENXIO : found >= at + (off_t)SIM_PAGE_BYTES;
}

/* Copy a page out or in.  Where it is all zeros the file has a hole. */
static bool
checkpoint_move_page(struct target *target, uint32_t page, int fd, off_t at, bool out)
{
    static __thread uint8_t bytes[SIM_PAGE_BYTES];

    if (out && sim_vram_is_clear(target->vram, page))
        return true;
    if (!out && checkpoint_is_hole(fd, at))
        return sim_vram_fill(target->vram, page, 0, SIM_PAGE_BYTES, 0);
    if (out)
        return sim_vram_read(target->vram, page, 0, bytes, sizeof(bytes))
               && (checkpoint_is_zero(bytes, sizeof(bytes))
                   || pwrite(fd, bytes, sizeof(bytes), at) == (ssize_t)sizeof(bytes));
    if (pread(fd, bytes, sizeof(bytes), at) != (ssize_t)sizeof(bytes))
        return false;
    return checkpoint_is_zero(bytes, sizeof(bytes))
               ? sim_vram_fill(target->vram, page, 0, SIM_PAGE_BYTES, 0)
               : sim_vram_write(target->vram, page, 0, bytes, sizeof(bytes));
}

/* ---- out ---- */

/* What a restore moved, and the process has not read yet: to it the pages still have the
 * numbers from before that.  NULL: there is none. */
static struct sim_saved *
checkpoint_read_unread(int fd, uint32_t count)
{
    size_t length = count * sizeof(struct sim_saved);
    struct sim_saved *old = sim_aside_count(fd) == count && count > 0 ? malloc(length) : NULL;

    if (old != NULL && pread(fd, old, length, 0) != (ssize_t)length) {
        free(old);
        old = NULL;
    }
    return old;
}

static bool
checkpoint_save_pages(struct target *target, struct sim_extents *pages, uint32_t count, int fd)
{
    AUTO_FREE struct sim_saved *old = checkpoint_read_unread(fd, count);
    uint32_t index = 0;

    if (ftruncate(fd, 0) != 0 || ftruncate(fd, sim_aside_at(count, count)) != 0)
        return false;
    for (uint32_t i = 0; i < pages->count; i++) {
        const struct sim_extent *extent = sim_extents_at(pages, i);

        for (uint32_t at = 0; at < extent->count; at++, index++) {
            const uint32_t page = extent->page + at;
            const struct sim_saved saved = { old == NULL ? page : old[index].before, 0 };

            if (pwrite(fd, &saved, sizeof(saved), (off_t)(index * sizeof(saved))) != (ssize_t)sizeof(saved)
                || !checkpoint_move_page(target, page, fd, sim_aside_at(index, count), true))
                return false;
        }
    }
    return true;
}

static bool
checkpoint_save(struct target *target)
{
    int fd = checkpoint_open_file(target);
    struct sim_extents pages = { 0 };
    bool saved = fd >= 0 && sim_ledger_pages(target->vram, target->slot, &pages)
                 && checkpoint_save_pages(target, &pages, sim_extents_pages(&pages), fd);

    if (saved)
        sim_ledger_release(target->vram, target->slot, &pages);
    else
        free(pages.more);
    if (fd >= 0)
        close(fd);
    return saved;
}

/* ---- and back ---- */

static bool
checkpoint_load_pages(struct target *target, struct sim_extents *pages, uint32_t count, int fd)
{
    uint32_t index = 0;

    for (uint32_t i = 0; i < pages->count; i++) {
        const struct sim_extent *extent = sim_extents_at(pages, i);

        for (uint32_t at = 0; at < extent->count; at++, index++) {
            off_t where = (off_t)(index * sizeof(struct sim_saved));
            struct sim_saved saved;

            if (pread(fd, &saved, sizeof(saved), where) != (ssize_t)sizeof(saved))
                return false;
            saved.after = extent->page + at;
            if (!checkpoint_move_page(target, saved.after, fd, sim_aside_at(index, count), false)
                || pwrite(fd, &saved, sizeof(saved), where) != (ssize_t)sizeof(saved))
                return false;
        }
    }
    return true;
}

/* The pages come as this process's and are then the target's: one that dies between has taken
 * nothing. */
static CUresult
checkpoint_load(struct target *target)
{
    int fd = checkpoint_open_file(target);
    uint32_t count = fd < 0 ? 0 : sim_aside_count(fd);
    struct sim_extents pages = { 0 };
    CUresult rc = CUDA_SUCCESS;

    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (!sim_ledger_join(target->vram) || !sim_ledger_take(target->vram, count, 0, &pages))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    else if (!checkpoint_load_pages(target, &pages, count, fd)) {
        sim_ledger_release(target->vram, sim_ledger_own(target->vram), &pages);
        rc = CUDA_ERROR_OPERATING_SYSTEM;
    } else {
        sim_ledger_give(target->vram, target->slot, &pages);
        __atomic_fetch_add(&target->record->moves, 1, __ATOMIC_SEQ_CST);
    }
    close(fd);
    return rc;
}

/* ---- the calls ---- */

static bool
checkpoint_is_busy(const struct targets *targets)
{
    for (unsigned i = 0; i < targets->count; i++)
        if (targets->target[i].always_busy
            || __atomic_load_n(&targets->target[i].record->busy, __ATOMIC_SEQ_CST) != 0)
            return true;
    return false;
}

/* With a time limit of 0 the wait has none, as with the vendor's. */
CUDA_API CUresult
cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
{
    const struct timespec pause = { 0, POLL_NS };
    uint64_t limit = args == NULL ? 0 : (uint64_t)args->timeoutMs * 1000000u;
    uint64_t start = sim_queue_now();
    struct targets targets;
    CUresult rc = checkpoint_begin(pid, CU_PROCESS_STATE_RUNNING, &targets);

    if (rc != CUDA_SUCCESS)
        return rc;
    checkpoint_set_gates(&targets, CU_PROCESS_STATE_LOCKED);
    while (rc == CUDA_SUCCESS && checkpoint_is_busy(&targets)) {
        if (limit != 0 && sim_queue_now() - start > limit)
            rc = CUDA_ERROR_NOT_READY;
        if (kill(pid, 0) != 0 && errno == ESRCH)
            rc = CUDA_ERROR_INVALID_VALUE;
        nanosleep(&pause, NULL);
    }
    if (rc != CUDA_SUCCESS)
        checkpoint_set_gates(&targets, CU_PROCESS_STATE_RUNNING);
    checkpoint_close_targets(&targets);
    return rc;
}

/* Is it an object of the target's that has memory? */
static bool
checkpoint_is_shared_by(const struct target *target, uint32_t slot)
{
    const struct sim_slot *record = sim_ledger_slot(target->vram, slot);

    return SIM_READ(record->kind) == SIM_SLOT_SHARED && sim_ledger_held(target->vram, slot) > 0
           && SIM_READ(record->creator) == target->slot
           && SIM_READ(record->creator_generation) == SIM_READ(target->record->generation);
}

/* Does the process share memory with others?  That cannot leave. */
static bool
checkpoint_is_sharing(const struct targets *targets)
{
    for (unsigned i = 0; i < targets->count; i++)
        for (uint32_t slot = 1; slot < SIM_SLOTS_MAX; slot++)
            if (checkpoint_is_shared_by(&targets->target[i], slot))
                return true;
    return false;
}

CUDA_API CUresult
cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args)
{
    struct targets targets;
    CUresult rc = checkpoint_begin(pid, CU_PROCESS_STATE_LOCKED, &targets);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (checkpoint_is_sharing(&targets)) {
        checkpoint_close_targets(&targets);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    for (unsigned i = 0; i < targets.count && rc == CUDA_SUCCESS; i++)
        if (!checkpoint_save(&targets.target[i]))
            rc = CUDA_ERROR_OPERATING_SYSTEM;
    checkpoint_set_gates(&targets,
                         rc == CUDA_SUCCESS ? CU_PROCESS_STATE_CHECKPOINTED : CU_PROCESS_STATE_FAILED);
    checkpoint_close_targets(&targets);
    return rc;
}

/* A GPU that is full leaves the process as it is. */
CUDA_API CUresult
cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
{
    unsigned loaded = 0;
    struct targets targets;
    CUresult rc = args != NULL && args->gpuPairsCount != 0
                      ? CUDA_ERROR_NOT_SUPPORTED
                      : checkpoint_begin(pid, CU_PROCESS_STATE_CHECKPOINTED, &targets);

    if (rc != CUDA_SUCCESS)
        return rc;
    while (rc == CUDA_SUCCESS && loaded < targets.count) {
        rc = checkpoint_load(&targets.target[loaded]);
        loaded += rc == CUDA_SUCCESS;
    }
    if (rc == CUDA_SUCCESS)
        checkpoint_set_gates(&targets, CU_PROCESS_STATE_LOCKED);
    else if (loaded > 0) /* half of it is back */
        checkpoint_set_gates(&targets, CU_PROCESS_STATE_FAILED);
    checkpoint_close_targets(&targets);
    return rc;
}

CUDA_API CUresult
cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args)
{
    struct targets targets;
    CUresult rc = checkpoint_begin(pid, CU_PROCESS_STATE_LOCKED, &targets);

    if (rc != CUDA_SUCCESS)
        return rc;
    checkpoint_set_gates(&targets, CU_PROCESS_STATE_RUNNING);
    checkpoint_close_targets(&targets);
    return rc;
}

static CUresult
checkpoint_ask(int pid, const void *answer, struct targets *targets)
{
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    return answer == NULL ? CUDA_ERROR_INVALID_VALUE : checkpoint_open_targets(pid, targets);
}

CUDA_API CUresult
cuCheckpointProcessGetState(int pid, CUprocessState *state)
{
    struct targets targets;
    CUresult rc = checkpoint_ask(pid, state, &targets);

    if (rc != CUDA_SUCCESS)
        return rc;
    *state = (CUprocessState)__atomic_load_n(&targets.target[0].record->gate, __ATOMIC_SEQ_CST);
    checkpoint_close_targets(&targets);
    return CUDA_SUCCESS;
}

/* No thread of the process is needed: the caller's does it. */
CUDA_API CUresult
cuCheckpointProcessGetRestoreThreadId(int pid, int *tid)
{
    struct targets targets;
    CUresult rc = checkpoint_ask(pid, tid, &targets);

    if (rc != CUDA_SUCCESS)
        return rc;
    *tid = pid;
    checkpoint_close_targets(&targets);
    return CUDA_SUCCESS;
}
