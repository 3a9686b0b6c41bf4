#include "shim/driver/rm_ledger.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>

#include "shim/driver/page.h"
#include "shim/driver/rm_abi.h"
#include "shim/driver/rm_objects.h"
#include "shim/driver/rm_slot.h"
#include "shim/process/state.h"

/* The largest page of video memory: by so much more than was asked for may be taken. */
#define PAGE_MOST (UINT64_C(512) << 20)
#define BYTES_MOST (UINT64_C(1) << 44)
enum { ROUNDS_MAX = 8 };

typedef int (*ioctl_t)(int fd, unsigned long request, ...);

/* A fork's child keeps these: its library goes the same way to the kernel. */
static void *_Atomic forward = (void *)ioctl;
static _Atomic bool present, missed;

/* Which of the driver's device instances is which GPU. */
enum { UNKNOWN, LEARNING, KNOWN };
struct known {
    _Atomic uint32_t state;
    uint8_t uuid[BH_RM_GID_BYTES];
};

static BH_STATE union {
    struct {
        struct known device[BH_RM_DEVICES_MAX];
        _Atomic bool lost; /* something could not be booked */
    };
    char whole[BH_STATE_ALIGN];
} state;

void
bh_rm_ledger_watch(void *library)
{
    struct bh_rm_slots slots;

    bh_rm_objects_init();
    bh_state_wipe_on_fork(&state, sizeof(state));
    slots = bh_rm_slot_take(library, "ioctl", (void *)bh_rm_ledger_ioctl, &forward);
    if (slots.missed > 0)
        atomic_store(&missed, true);
    if (slots.taken > 0)
        atomic_store(&present, true);
}

static void
ledger_lose(void)
{
    atomic_store_explicit(&state.lost, true, memory_order_relaxed);
}

/* ---- the page ---- */

/* The index of a device instance in the lease; -1: that is not known. */
static int
ledger_index_of(unsigned instance)
{
    const struct bh_share_limits *limits = bh_page->limits;

    if (limits->device_count == 1)
        return 0; /* the job sees no other */
    if (instance >= BH_RM_DEVICES_MAX || atomic_load(&state.device[instance].state) != KNOWN)
        return -1;
    for (uint32_t i = 0; i < limits->device_count; i++)
        if (memcmp(limits->device[i].uuid, state.device[instance].uuid, BH_RM_GID_BYTES) == 0)
            return (int)i;
    return -1;
}

/* False: some of it is on a device that is not known. */
static bool
ledger_sum_up(uint64_t ret_bytes[BH_SHARE_DEVICES_MAX])
{
    bool whole = true;

    memset(ret_bytes, 0, BH_SHARE_DEVICES_MAX * sizeof(*ret_bytes));
    for (uint64_t left = bh_rm_objects_devices(); left != 0; left &= left - 1) {
        unsigned instance = (unsigned)__builtin_ctzll(left);
        uint64_t bytes = bh_rm_objects_bytes(instance);
        int index = bytes == 0 ? -1 : ledger_index_of(instance);

        if (index >= 0)
            ret_bytes[index] += bytes;
        else if (bytes != 0)
            whole = false;
    }
    return whole;
}

static uint32_t
ledger_grains_of(uint64_t bytes)
{
    uint64_t grains = bytes / BH_SHARE_SEEN_BYTES + (bytes % BH_SHARE_SEEN_BYTES != 0);

    return grains < UINT32_MAX ? (uint32_t)grains : UINT32_MAX;
}

static uint32_t
ledger_kind_of(bool whole)
{
    if (!atomic_load(&present))
        return BH_SHARE_SEEN_ABSENT;
    return whole && !atomic_load(&state.lost) && !atomic_load(&missed) ? BH_SHARE_SEEN_WHOLE
                                                                       : BH_SHARE_SEEN_PARTLY;
}

/* Two threads may write at once, the older sum last: each looks again whether it still
 * holds what it wrote.  Not for ever: while others change it they also write it, and the
 * helper comes by. */
void
bh_rm_ledger_publish(void)
{
    uint64_t bytes[BH_SHARE_DEVICES_MAX], again[BH_SHARE_DEVICES_MAX];
    struct bh_share_seen *seen;
    bool whole;

    if (!bh_page_is_joined())
        return;
    seen = &bh_page->usage->seen[bh_page->slot];
    whole = ledger_sum_up(bytes);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        for (uint32_t i = 0; i < bh_page->limits->device_count; i++)
            atomic_store(&seen->grains[i], ledger_grains_of(bytes[i]));
        atomic_store(&bh_page->usage->seen_kind[bh_page->slot], ledger_kind_of(whole));
        whole = ledger_sum_up(again);
        if (memcmp(bytes, again, sizeof(bytes)) == 0)
            return;
        memcpy(bytes, again, sizeof(bytes));
    }
}

/* ---- what came into being ---- */

static void
ledger_put(const struct bh_rm_object *object)
{
    if (!bh_rm_objects_put(object))
        ledger_lose();
    if (object->bytes > 0)
        bh_rm_ledger_publish();
}

/* Bytes that memory took: `size` was asked for, `limit` is its last byte. */
static uint64_t
ledger_bytes_taken(uint64_t size, uint64_t limit)
{
    if (limit >= size && limit - size < PAGE_MOST && limit != UINT64_MAX)
        size = limit + 1;
    if (size <= BYTES_MOST)
        return size;
    ledger_lose();
    return 0;
}

static uint64_t
ledger_bytes_of_memory(const struct bh_rm_alloc *alloc, uint32_t params_size)
{
    struct bh_rm_memory memory;

    if (alloc->params == 0 || (params_size != 0 && params_size < sizeof(memory))) {
        ledger_lose();
        return 0;
    }
    memcpy(&memory, (const void *)(uintptr_t)alloc->params, sizeof(memory));
    if ((memory.attr & BH_RM_ATTR_LOCATION) != 0 || (memory.flags & BH_RM_FLAG_VIRTUAL) != 0)
        return 0;
    return ledger_bytes_taken(memory.size, memory.limit);
}

static uint32_t
ledger_instance_of_device(const struct bh_rm_alloc *alloc, uint32_t params_size)
{
    struct bh_rm_device device = { 0 };

    if (alloc->params != 0 && (params_size == 0 || params_size >= sizeof(device)))
        memcpy(&device, (const void *)(uintptr_t)alloc->params, sizeof(device));
    return device.instance < BH_RM_DEVICES_MAX ? device.instance : BH_RM_DEVICE_UNKNOWN;
}

static void
ledger_note_object(const struct bh_rm_alloc *alloc, uint32_t params_size)
{
    struct bh_rm_object object = { alloc->client, alloc->object, alloc->parent, BH_RM_DEVICE_INHERITED, 0 };

    switch (alloc->class) {
    case BH_RM_CLASS_ROOT:
    case BH_RM_CLASS_ROOT_OTHER:
    case BH_RM_CLASS_CLIENT:
        object.client = object.parent = alloc->object;
        break;
    case BH_RM_CLASS_DEVICE:
        object.device = ledger_instance_of_device(alloc, params_size);
        break;
    case BH_RM_CLASS_VIDEO:
    case BH_RM_CLASS_VIDEO_PRIVILEGED:
        object.bytes = ledger_bytes_of_memory(alloc, params_size);
        break;
    default:
        break;
    }
    ledger_put(&object);
}

static void
ledger_note_alloc(const void *argument, size_t size)
{
    struct bh_rm_alloc_short brief;
    struct bh_rm_alloc_long full;

    if (size == sizeof(brief)) {
        memcpy(&brief, argument, sizeof(brief));
        if (brief.status == 0)
            ledger_note_object(&brief.head, brief.params_size);
    } else if (size == sizeof(full)) {
        memcpy(&full, argument, sizeof(full));
        if (full.status == 0)
            ledger_note_object(&full.head, full.params_size);
    } else {
        ledger_lose(); /* a driver that says it in a way that is not known */
    }
}

static void
ledger_note_alloc_memory(const void *argument, size_t size)
{
    struct bh_rm_alloc_memory alloc;
    bool video;

    if (size != sizeof(alloc)) {
        ledger_lose();
        return;
    }
    memcpy(&alloc, argument, sizeof(alloc));
    video = alloc.class == BH_RM_CLASS_VIDEO || alloc.class == BH_RM_CLASS_VIDEO_PRIVILEGED;
    if (alloc.status == 0)
        ledger_put(&(struct bh_rm_object){ alloc.client, alloc.object, alloc.parent, BH_RM_DEVICE_INHERITED,
                                           video ? ledger_bytes_taken(alloc.limit, alloc.limit) : 0 });
}

static void
ledger_note_heap(const void *argument, size_t size, uint64_t before)
{
    struct bh_rm_vid_heap heap;
    bool video;

    if (size != sizeof(heap)) {
        ledger_lose();
        return;
    }
    memcpy(&heap, argument, sizeof(heap));
    if (heap.status != 0)
        return;
    if (heap.function == BH_RM_HEAP_ALLOC || heap.function == BH_RM_HEAP_ALLOC_RANGE) {
        video = (heap.what.attr & BH_RM_ATTR_LOCATION) == 0 && (heap.what.flags & BH_RM_FLAG_VIRTUAL) == 0;
        ledger_put(&(struct bh_rm_object){ heap.client, heap.what.memory, heap.parent, BH_RM_DEVICE_INHERITED,
                                           video ? ledger_bytes_taken(heap.what.size, heap.what.limit) : 0 });
    } else if (heap.function == BH_RM_HEAP_FREE) {
        bh_rm_objects_free(heap.client, heap.what.memory, before);
        bh_rm_ledger_publish();
    }
}

static void
ledger_note_dup(const void *argument, size_t size)
{
    struct bh_rm_dup dup;

    if (size != sizeof(dup)) {
        ledger_lose();
        return;
    }
    memcpy(&dup, argument, sizeof(dup));
    if (dup.status != 0)
        return;
    if (!bh_rm_objects_dup(
            &(struct bh_rm_object){ dup.client, dup.object, dup.parent, BH_RM_DEVICE_INHERITED, 0 },
            dup.source_client, dup.source))
        ledger_lose();
}

/* ---- what went ---- */

static void
ledger_note_free(const void *argument, size_t size, uint64_t before)
{
    struct bh_rm_free gone;

    if (size != sizeof(gone)) {
        ledger_lose();
        return;
    }
    memcpy(&gone, argument, sizeof(gone));
    if (gone.status != 0)
        return;
    bh_rm_objects_free(gone.client, gone.object, before);
    bh_rm_ledger_publish();
}

/* ---- which GPU a device is ---- */

static void
ledger_note_control(const void *argument, size_t size)
{
    struct bh_rm_control control;
    struct bh_rm_gid gid;
    uint32_t instance, unknown = UNKNOWN;

    if (size != sizeof(control))
        return;
    memcpy(&control, argument, sizeof(control));
    if (control.command != BH_RM_GET_GID || control.status != 0 || control.params == 0
        || control.params_size != sizeof(gid)
        || !bh_rm_objects_device(control.client, control.object, &instance))
        return;
    memcpy(&gid, (const void *)(uintptr_t)control.params, sizeof(gid));
    if ((gid.flags & BH_RM_GID_FORMAT) != BH_RM_GID_BINARY || gid.length != BH_RM_GID_BYTES
        || !atomic_compare_exchange_strong(&state.device[instance].state, &unknown, LEARNING))
        return;
    memcpy(state.device[instance].uuid, gid.data, BH_RM_GID_BYTES);
    atomic_store(&state.device[instance].state, KNOWN);
    bh_rm_ledger_publish();
}

/* ---- calls ---- */

static void
ledger_note_call(unsigned number, size_t size, const void *argument, uint64_t before)
{
    switch (number) {
    case BH_RM_ALLOC:
        ledger_note_alloc(argument, size);
        break;
    case BH_RM_ALLOC_MEMORY:
        ledger_note_alloc_memory(argument, size);
        break;
    case BH_RM_VID_HEAP:
        ledger_note_heap(argument, size, before);
        break;
    case BH_RM_DUP:
        ledger_note_dup(argument, size);
        break;
    case BH_RM_FREE:
        ledger_note_free(argument, size, before);
        break;
    case BH_RM_CONTROL:
        ledger_note_control(argument, size);
        break;
    default:
        break;
    }
}

void
bh_rm_ledger_note(unsigned long request, const void *argument, uint64_t before)
{
    struct bh_rm_wrapped wrapped;

    if (_IOC_TYPE(request) != BH_RM_MAGIC || argument == NULL)
        return;
    if (_IOC_NR(request) != BH_RM_WRAPPED) {
        ledger_note_call(_IOC_NR(request), _IOC_SIZE(request), argument, before);
    } else if (_IOC_SIZE(request) == sizeof(wrapped)) {
        memcpy(&wrapped, argument, sizeof(wrapped));
        if (wrapped.address != 0)
            ledger_note_call(wrapped.number, wrapped.size, (const void *)(uintptr_t)wrapped.address, before);
    }
}

int
bh_rm_ledger_ioctl(int fd, unsigned long request, void *argument)
{
    ioctl_t call = (ioctl_t)atomic_load_explicit(&forward, memory_order_relaxed);
    uint64_t before;
    int result;

    if (_IOC_TYPE(request) != BH_RM_MAGIC)
        return call(fd, request, argument);
    before = bh_rm_objects_now();
    result = call(fd, request, argument);
    if (result == 0)
        bh_rm_ledger_note(request, argument, before);
    return result;
}
