/* Any sequence of calls of the driver's library: what the ledger has of each device is what
 * a simple model has, and when all clients are gone nothing is left. */
#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "shim/driver/rm_ledger.h"
#include "shim/driver/rm_objects.h"
#include "tests/fuzz/fuzz.h"
#include "tests/shim/rm_requests.h"

enum { STEP_BYTES = 6, CLIENTS = 3, HANDLES = 12, OBJECTS_MAX = 4096, NOBODY = -1 };

/* ---- the model ---- */

static struct body {
    uint64_t bytes;
    uint32_t device;
    int references;
} bodies[OBJECTS_MAX];

static struct thing {
    bool there;
    uint32_t client, handle, parent, device;
    int above; /* the object it was made below; NOBODY: below the client, or not known */
    bool stray;
    int body;
} things[OBJECTS_MAX];
static int count, body_count;

static int
find(uint32_t client, uint32_t handle)
{
    for (int i = 0; i < count; i++)
        if (things[i].there && things[i].client == client && things[i].handle == handle)
            return i;
    return NOBODY;
}

static void
remove_thing(int at)
{
    things[at].there = false;
    bodies[things[at].body].references--;
    for (int i = 0; i < count; i++)
        if (things[i].there && things[i].above == at)
            remove_thing(i);
}

static void
remove_handle(uint32_t client, uint32_t handle)
{
    int at = find(client, handle);

    if (at != NOBODY)
        remove_thing(at);
    for (int i = 0; i < count; i++)
        if (things[i].there && things[i].client == client
            && (handle == client || (things[i].stray && things[i].parent == handle)))
            remove_thing(i);
}

static void
add(uint32_t client, uint32_t parent, uint32_t handle, uint32_t device, int body)
{
    struct thing *thing = &things[count];

    if (handle == client || find(client, handle) != NOBODY)
        remove_handle(client, handle);
    *thing = (struct thing){ true, client, handle, parent, device, NOBODY, false, body };
    thing->above = find(client, parent);
    if (device == BH_RM_DEVICE_INHERITED)
        thing->device = thing->above == NOBODY ? BH_RM_DEVICE_UNKNOWN : things[thing->above].device;
    thing->stray = thing->above == NOBODY && parent != client;
    if (parent == client)
        thing->above = NOBODY; /* goes with its client alone */
    count++;
}

static int
new_body(uint64_t bytes)
{
    bodies[body_count] = (struct body){ bytes, BH_RM_DEVICE_UNKNOWN, 1 };
    return body_count++;
}

static void
compare(void)
{
    uint64_t bytes[BH_RM_DEVICES_MAX + 1] = { 0 };

    for (int i = 0; i < body_count; i++)
        if (bodies[i].references > 0)
            bytes[bodies[i].device] += bodies[i].bytes;
    for (uint32_t i = 0; i <= BH_RM_DEVICES_MAX; i++)
        BH_ASSERT(bh_rm_objects_bytes(i) == bytes[i]);
}

/* ---- both ---- */

static void
note(unsigned long request, const void *argument)
{
    bh_rm_ledger_note(request, argument, bh_rm_objects_now());
}

static void
make(const uint8_t step[STEP_BYTES], uint32_t client, uint32_t parent, uint32_t handle)
{
    static const uint32_t classes[] = { 0x41, 0x80, 0x40, 0x40, 0x3f, 0x3e, 0x2080, 0 };
    uint32_t class = classes[step[4] % 8], device = BH_RM_DEVICE_INHERITED;
    uint64_t bytes = ((uint64_t)step[5] + 1) << (step[4] >> 3);
    bool refused = step[0] >> 4 == 15;
    struct rm_new made;

    rm_memory(&made, client, parent, handle, bytes);
    made.alloc.head.class = class;
    made.alloc.status = refused ? step[5] + 1u : 0;
    made.alloc.params_size = step[0] >> 7 ? sizeof(made.params) : 0;
    if (class == BH_RM_CLASS_DEVICE) {
        made.params.device.instance = step[5] % 40;
        device = step[5] % 40 < BH_RM_DEVICES_MAX ? step[5] % 40 : BH_RM_DEVICE_UNKNOWN;
    }
    note(RM_ALLOC, &made.alloc);
    if (refused)
        return;
    if (class == 0x41 || class == 0)
        client = parent = handle;
    add(client, parent, handle, device, new_body(class == 0x40 || class == 0x3f ? bytes : 0));
    bodies[body_count - 1].device = things[count - 1].device;
}

static void
dup(uint32_t client, uint32_t parent, uint32_t handle, uint32_t from, uint32_t source)
{
    int at = find(from, source);

    note(RM_DUP, &(struct bh_rm_dup){ client, parent, handle, from, source, 0, 0 });
    if (at == NOBODY)
        return;
    bodies[things[at].body].references++;
    add(client, parent, handle, BH_RM_DEVICE_INHERITED, things[at].body);
}

/* What no driver says: other lengths, other numbers, results that are no success. */
static void
speak_nonsense(const uint8_t step[STEP_BYTES])
{
    uint64_t room[64];
    struct bh_rm_wrapped wrapped = { step[1], step[2] % 8u, (uintptr_t)room };
    uint32_t number = step[1], size = step[2];

    memset(room, step[3] | 1, sizeof(room)); /* so every status is one */
    if (step[4] % 2 == 0)
        note(_IOC(_IOC_READ | _IOC_WRITE, BH_RM_MAGIC, BH_RM_WRAPPED, sizeof(wrapped)), &wrapped);
    else if (number != BH_RM_WRAPPED)
        note(_IOC(step[5] % 4u, BH_RM_MAGIC, number, size), room);
}

static void
play(const uint8_t step[STEP_BYTES])
{
    uint32_t client = step[1] % CLIENTS, handle = step[2] % HANDLES, parent = step[3] % HANDLES;

    if (count + 1 >= OBJECTS_MAX)
        return;
    switch (step[0] % 8) {
    case 0:
    case 1:
    case 2:
    case 3:
        make(step, client, parent, handle);
        break;
    case 4:
    case 5:
        note(RM_FREE, &(struct bh_rm_free){ client, parent, handle, 0 });
        remove_handle(client, handle);
        break;
    case 6:
        dup(client, parent, handle, step[4] % CLIENTS, step[5] % HANDLES);
        break;
    default:
        speak_nonsense(step);
        break;
    }
    compare();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    count = body_count = 0;
    for (; size >= STEP_BYTES; data += STEP_BYTES, size -= STEP_BYTES)
        play(data);
    for (uint32_t client = 0; client < HANDLES; client++) {
        note(RM_FREE, &(struct bh_rm_free){ client, 0, client, 0 });
        remove_handle(client, client);
        compare();
    }
    for (uint32_t i = 0; i <= BH_RM_DEVICES_MAX; i++)
        BH_ASSERT(bh_rm_objects_bytes(i) == 0);
    return 0;
}
