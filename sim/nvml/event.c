/* Exported calls about events.
 *
 * A set remembers how far it has read in the state's ring; waiting polls, so
 * that no process ever waits for another. */
#include "sim/nvml/nvml.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "sim/machine/handle.h"
#include "sim/machine/queue.h"

#define SETS_MAX 64
#define POLL_NS 20000000
#define SET_MAGIC 0x42484553u
#define SUPPORTED                                                                                            \
    (nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError | nvmlEventTypePState                   \
     | nvmlEventTypeXidCriticalError | nvmlEventTypeClock)

struct event_set {
    uint32_t magic; /* 0: free */
    uint64_t seq, gpus, types;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct event_set sets[SETS_MAX];

static struct event_set *
event_find_set(nvmlEventSet_t handle)
{
    for (unsigned i = 0; i < SETS_MAX; i++)
        if ((void *)&sets[i] == (void *)handle && sets[i].magic == SET_MAGIC)
            return &sets[i];
    return NULL;
}

NVML_API nvmlReturn_t
nvmlEventSetCreate(nvmlEventSet_t *set)
{
    nvmlReturn_t rc = sim_enter(__func__);
    struct event_set *made = NULL;

    if (rc != NVML_SUCCESS)
        return rc;
    if (set == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < SETS_MAX && made == NULL; i++)
        if (sets[i].magic == 0)
            made = &sets[i];
    if (made != NULL)
        *made = (struct event_set){ .magic = SET_MAGIC };
    pthread_mutex_unlock(&lock);
    *set = (nvmlEventSet_t)(void *)made;
    return made == NULL ? NVML_ERROR_MEMORY : NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlEventSetFree(nvmlEventSet_t set)
{
    nvmlReturn_t rc = sim_enter(__func__);
    struct event_set *found;

    if (rc != NVML_SUCCESS)
        return rc;
    pthread_mutex_lock(&lock);
    found = event_find_set(set);
    if (found != NULL)
        memset(found, 0, sizeof(*found));
    pthread_mutex_unlock(&lock);
    return found == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *eventTypes)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);

    return rc == NVML_SUCCESS ? SIM_PUT(eventTypes, SUPPORTED) : rc;
}

/* What happened before the first registration is not reported. */
NVML_API nvmlReturn_t
nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long eventTypes, nvmlEventSet_t set)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);
    struct event_set *found;

    if (rc != NVML_SUCCESS)
        return rc;
    if ((eventTypes & ~SUPPORTED) != 0)
        return NVML_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    found = event_find_set(set);
    if (found != NULL && found->gpus == 0)
        found->seq = sim_session_event_seq();
    if (found != NULL) {
        found->gpus |= 1ull << target.gpu.index;
        found->types |= eventTypes;
    }
    pthread_mutex_unlock(&lock);
    return found == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

static nvmlReturn_t
take_event(nvmlEventSet_t handle, nvmlEventData_t *data)
{
    nvmlReturn_t rc = NVML_ERROR_TIMEOUT;
    struct event_set *set;
    struct sim_event event;

    pthread_mutex_lock(&lock);
    set = event_find_set(handle);
    if (set == NULL)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    else if (sim_session_next_event(&set->seq, set->gpus, set->types, &event))
        rc = NVML_SUCCESS;
    pthread_mutex_unlock(&lock);
    if (rc == NVML_SUCCESS)
        *data = (nvmlEventData_t){ .device = (nvmlDevice_t)(uintptr_t)sim_handle_get(SIM_HANDLE_GPU,
                                                                                     event.gpu, 0, 0),
                                   .eventType = event.type,
                                   .eventData = event.value,
                                   .gpuInstanceId = event.gi,
                                   .computeInstanceId = event.ci };
    return rc;
}

static nvmlReturn_t
wait_event(const char *function, nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
    const struct timespec poll = { 0, POLL_NS };
    nvmlReturn_t rc = sim_enter(function);
    uint64_t until = sim_queue_now() + timeout_ms * 1000000ull;

    if (rc != NVML_SUCCESS)
        return rc;
    if (data == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (;;) {
        rc = take_event(set, data);
        if (rc != NVML_ERROR_TIMEOUT || sim_queue_now() >= until)
            return rc;
        nanosleep(&poll, NULL);
        sim_session_refresh();
    }
}

NVML_API nvmlReturn_t
nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms)
{
    return wait_event(__func__, set, data, timeoutms);
}

/* The first version does not know of instances. */
NVML_API nvmlReturn_t
nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms)
{
    nvmlReturn_t rc = wait_event(__func__, set, data, timeoutms);

    if (rc == NVML_SUCCESS)
        data->gpuInstanceId = data->computeInstanceId = NVML_INSTANCE_ID_NONE;
    return rc;
}
