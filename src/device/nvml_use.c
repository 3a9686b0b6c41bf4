#include "device/nvml_internal.h"

#include <stdio.h>
#include <string.h>

#include "device/holders.h"

enum { PROCESSES_MAX = 512, BLAMED_MAX = 4 };

/* ---- processes ---- */

struct process_list {
    struct bh_device_process *items;
    uint32_t count;
    bool cut; /* there were more */
};

static void
use_add_process(struct process_list *list, const nvmlProcessInfo_t *process)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i].pid == process->pid && list->items[i].gi == process->gpuInstanceId)
            return;
    if (list->count == PROCESSES_MAX) {
        list->cut = true;
        return;
    }
    list->items[list->count++] = (struct bh_device_process){
        .pid = process->pid,
        .gi = process->gpuInstanceId,
        .ci = process->computeInstanceId,
        .memory_mib = process->usedGpuMemory == NVML_VALUE_NOT_AVAILABLE ? 0 : process->usedGpuMemory >> 20
    };
}

typedef __typeof__(&nvmlDeviceGetComputeRunningProcesses_v3) list_call;

/* The processes of a GPU by one of NVML's three lists; a list that the board or the
 * library lacks is empty. */
static nvmlReturn_t
use_add_list(list_call call, nvmlDevice_t gpu, struct process_list *list)
{
    static nvmlProcessInfo_t found[PROCESSES_MAX];
    unsigned int count = BH_COUNT(found);
    nvmlReturn_t result = call ? call(gpu, &count, found) : NVML_ERROR_NOT_SUPPORTED;

    if (result == NVML_ERROR_NOT_SUPPORTED || result == NVML_ERROR_FUNCTION_NOT_FOUND)
        return NVML_SUCCESS;
    for (unsigned int i = 0; result == NVML_SUCCESS && i < count; i++)
        use_add_process(list, &found[i]);
    return result;
}

static nvmlReturn_t
use_list_processes(struct bh_nvml *nvml, nvmlDevice_t gpu, struct process_list *list)
{
    const list_call calls[] = { nvml->compute_processes, nvml->graphics_processes, nvml->mps_processes };
    nvmlReturn_t result = NVML_SUCCESS;

    for (size_t i = 0; i < BH_COUNT(calls) && result == NVML_SUCCESS; i++)
        result = use_add_list(calls[i], gpu, list);
    return result;
}

bh_rc
bh_nvml_processes(void *self, const char *uuid, struct bh_arena *arena,
                  struct bh_device_process **ret_processes, uint32_t *ret_count, struct bh_err *err)
{
    struct bh_nvml *nvml = self;
    struct process_list list = { 0 };
    struct bh_nvml_gpu gpu;
    nvmlReturn_t result;
    bh_rc rc = bh_nvml_gpu_find(nvml, uuid, &gpu, err);

    if (rc != BH_OK)
        return rc;
    if (!nvml->compute_processes)
        return bh_nvml_fail(err, NVML_ERROR_FUNCTION_NOT_FOUND, "%s: cannot list its processes", uuid);
    list.items = bh_arena_alloc(arena, PROCESSES_MAX * sizeof *list.items);
    if (!list.items)
        return bh_err_set(err, BH_FULL, "no room for the processes of %s", uuid);
    result = use_list_processes(nvml, gpu.handle, &list);
    if (result != NVML_SUCCESS)
        return bh_nvml_fail(err, result, "%s: cannot list its processes", uuid);
    if (list.cut) /* half a list would hide processes that still hold the GPU */
        return bh_err_set(err, BH_IO, "%s has more than %d processes", uuid, PROCESSES_MAX);
    *ret_processes = list.items;
    *ret_count = list.count;
    return BH_OK;
}

/* The library names more than a hundred per cent where it knows nothing, and entries without a
 * process. */
static uint32_t
use_copy_busy(const nvmlProcessUtilizationSample_t *found, uint32_t count, struct bh_device_busy *ret_busy)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++)
        if (found[i].pid != 0 && found[i].smUtil > 0 && found[i].smUtil <= 100)
            ret_busy[kept++] = (struct bh_device_busy){ found[i].pid, found[i].smUtil };
    return kept;
}

bh_rc
bh_nvml_busy(void *self, const char *uuid, struct bh_arena *arena, struct bh_device_samples *samples,
             struct bh_err *err)
{
    static nvmlProcessUtilizationSample_t found[PROCESSES_MAX];
    struct bh_nvml *nvml = self;
    unsigned int count = BH_COUNT(found);
    struct bh_device_busy *busy;
    struct bh_nvml_gpu gpu;
    nvmlReturn_t result;
    bh_rc rc = bh_nvml_gpu_find(nvml, uuid, &gpu, err);

    if (rc != BH_OK)
        return rc;
    result = nvml_call(nvml, process_samples, gpu.handle, found, &count, samples->since_us);
    if (result == NVML_ERROR_NOT_FOUND) /* no process used it */
        count = 0;
    else if (result != NVML_SUCCESS)
        return bh_nvml_fail(err, result, "%s: cannot tell which processes use it", uuid);
    busy = bh_arena_alloc(arena, PROCESSES_MAX * sizeof *busy);
    if (!busy)
        return bh_err_set(err, BH_FULL, "no room for the processes of %s", uuid);
    samples->count = use_copy_busy(found, count < PROCESSES_MAX ? count : PROCESSES_MAX, busy);
    samples->items = busy;
    return BH_OK;
}

bh_rc
bh_nvml_blame(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, struct bh_err *err)
{
    struct bh_device_process processes[PROCESSES_MAX];
    struct process_list list = { .items = processes };
    char memory[sizeof err->hint], node[32];
    struct bh_buf hint;
    uint32_t found;

    bh_buf_init_fixed(&hint, memory, sizeof memory);
    snprintf(node, sizeof node, "/dev/nvidia%u", gpu->minor);
    found = bh_holders_put(&hint, "/proc", gpu->minor, BLAMED_MAX);
    if (found == 0 && use_list_processes(nvml, gpu->handle, &list) == NVML_SUCCESS) {
        for (uint32_t i = 0; i < list.count && i < BLAMED_MAX; i++) {
            bh_buf_puts(&hint, i ? "; " : "");
            bh_holders_put_one(&hint, "/proc", list.items[i].pid);
        }
        found = list.count;
    }
    if (hint.overflow)
        return bh_err_hint(err, "%u processes use it: fuser -v %s", found, node);
    if (found == 0)
        return bh_err_hint(err, "nobody was found to use it; look for MPS, DCGM and nvsm");
    return bh_err_hint(err, "%s", bh_buf_text(&hint) ? memory : node);
}

/* ---- events ---- */

static const unsigned long long wanted_events =
    nvmlEventTypeXidCriticalError | nvmlEventTypeDoubleBitEccError;

/* XID of a double-bit ECC error, for a driver that reports only the event. */
enum { XID_DOUBLE_BIT = 48 };

/* Ask for the events of every GPU; one that cannot (lost, or none supported) is left
 * out, and only when no GPU is left it is a failure. */
static bh_rc
use_register_all(struct bh_nvml *nvml, nvmlEventSet_t set, struct bh_err *err)
{
    unsigned int count = 0, registered = 0;
    nvmlReturn_t last = nvml_call(nvml, count, &count);

    for (unsigned int i = 0; i < count; i++) {
        unsigned long long supported = 0;
        nvmlDevice_t gpu = NULL;

        last = nvml_call(nvml, by_index, i, &gpu);
        if (last == NVML_SUCCESS)
            last = nvml_call(nvml, event_types, gpu, &supported);
        if (last == NVML_SUCCESS)
            last = nvml_call(nvml, register_events, gpu, supported & wanted_events, set);
        registered += last == NVML_SUCCESS;
    }
    if (registered == 0)
        return bh_nvml_fail(err, last == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : last, "no GPU reports events");
    return BH_OK;
}

static bh_rc
use_open_events(struct bh_nvml *nvml, struct bh_err *err)
{
    nvmlEventSet_t set = NULL;
    nvmlReturn_t result = nvml_call(nvml, event_set, &set);
    bh_rc rc;

    if (result != NVML_SUCCESS)
        return bh_nvml_fail(err, result, "cannot make an event set");
    rc = use_register_all(nvml, set, err);
    if (rc != BH_OK) {
        (void)nvml_call(nvml, free_event_set, set);
        return rc;
    }
    nvml->events = set;
    return BH_OK;
}

bh_rc
bh_nvml_next_event(void *self, bh_ns wait, struct bh_device_event *ret_event, struct bh_err *err)
{
    struct bh_nvml *nvml = self;
    /* the older wait leaves the instances unset */
    nvmlEventData_t event = { .gpuInstanceId = BH_NVML_NO_ID };
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "";
    bh_ns ms = wait / BH_NS_PER_MS;
    nvmlReturn_t result;
    bh_rc rc = nvml->events ? BH_OK : use_open_events(nvml, err);

    if (rc != BH_OK)
        return rc;
    result = nvml_call(nvml, wait_event, nvml->events, &event, ms > INT32_MAX ? INT32_MAX : (unsigned int)ms);
    if (result == NVML_ERROR_TIMEOUT)
        return bh_err_set(err, BH_TIMEOUT, "no event");
    if (result == NVML_SUCCESS)
        result = nvml_call(nvml, uuid, event.device, uuid, sizeof uuid);
    if (result != NVML_SUCCESS)
        return bh_nvml_fail(err, result, "cannot wait for events");
    *ret_event = (struct bh_device_event){ .xid = event.eventType & nvmlEventTypeXidCriticalError
                                                      ? (uint32_t)event.eventData
                                                      : XID_DOUBLE_BIT,
                                           .gi = event.gpuInstanceId };
    snprintf(ret_event->gpu, sizeof ret_event->gpu, "%.47s", uuid);
    return BH_OK;
}
