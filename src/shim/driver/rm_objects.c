#include "shim/driver/rm_objects.h"

#include <stdatomic.h>
#include <stddef.h>

#include "shim/process/state.h"

/* `life` is the number of the booking and one of these; HELD: its handle is gone, another
 * one keeps its memory.  The thread that changes it from FREE or LIVE owns the row. */
enum { FREE, BUSY, LIVE, HELD };
#define STATE(life) ((life)&3)
#define NUMBER(life) ((life) >> 2)
#define LIFE(number, state) ((number) << 2 | (state))

enum { PARENT_KNOWN = 1, HAS_CHILDREN = 2 };
enum { BUCKETS = 4096, CHUNK_OBJECTS = 1023 };

struct objects_object {
    _Alignas(64) _Atomic uint64_t life;
    _Atomic uint64_t name; /* client, handle */
    _Atomic uint64_t bytes;
    _Atomic uint32_t parent, device;
    _Atomic uint32_t references; /* handles that keep the memory; 0: the row is free */
    _Atomic uint32_t flags;
    struct objects_object *_Atomic origin; /* whose memory this handle keeps too */
    struct objects_object *_Atomic next;   /* of the bucket; stays */
};
_Static_assert(sizeof(struct objects_object) == 64, "a cache line");

struct objects_chunk {
    _Alignas(64) _Atomic uint32_t used;
    struct objects_object object[CHUNK_OBJECTS];
};

#define ROUND_PAGE(bytes) (((bytes) + BH_STATE_ALIGN - 1) & ~(size_t)(BH_STATE_ALIGN - 1))

struct objects_table {
    struct objects_object *_Atomic bucket[BUCKETS];
    struct objects_chunk *_Atomic chunk; /* the one that rows are taken from */
    _Atomic uint64_t number;
    _Atomic uint64_t bytes[BH_RM_DEVICES_MAX + 1];
    _Atomic uint64_t devices; /* bits of those that ever had any */
    _Atomic uint64_t strays;  /* parents that were not known: a bit for each, never cleared */
};

static BH_STATE union {
    struct objects_table table;
    char whole[ROUND_PAGE(sizeof(struct objects_table))];
} state;

void
bh_rm_objects_init(void)
{
    bh_state_wipe_on_fork(&state, sizeof(state));
}

uint64_t
bh_rm_objects_now(void)
{
    return atomic_load(&state.table.number);
}

uint64_t
bh_rm_objects_bytes(uint32_t device)
{
    return atomic_load(&state.table.bytes[device]);
}

uint64_t
bh_rm_objects_devices(void)
{
    return atomic_load(&state.table.devices);
}

/* ---- rows ---- */

static uint64_t
objects_name_of(uint32_t client, uint32_t handle)
{
    return (uint64_t)client << 32 | handle;
}

static struct objects_object *_Atomic *
objects_bucket_of(uint64_t name)
{
    return &state.table.bucket[name * UINT64_C(0x9e3779b97f4a7c15) >> 52];
}

static uint64_t
objects_stray_bit(uint64_t parent)
{
    return UINT64_C(1) << (parent * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

/* The object of that name, and its life; NULL.  Another thread may reuse the row for another object at any
 * time: its life shows that. */
static struct objects_object *
objects_find(uint64_t name, uint64_t *ret_life)
{
    struct objects_object *object = atomic_load(objects_bucket_of(name));

    for (; object != NULL; object = atomic_load(&object->next)) {
        *ret_life = atomic_load(&object->life);
        if (STATE(*ret_life) == LIVE && atomic_load(&object->name) == name
            && atomic_load(&object->life) == *ret_life)
            return object;
    }
    return NULL;
}

static struct objects_object *
objects_new_row(void)
{
    for (;;) {
        struct objects_chunk *chunk = atomic_load(&state.table.chunk), *more;
        uint32_t at = chunk == NULL ? CHUNK_OBJECTS : atomic_fetch_add(&chunk->used, 1);

        if (at < CHUNK_OBJECTS)
            return &chunk->object[at];
        more = bh_state_map(sizeof(*more));
        if (more == NULL)
            return NULL;
        if (!atomic_compare_exchange_strong(&state.table.chunk, &chunk, more))
            bh_state_unmap(more, sizeof(*more));
    }
}

/* A row in the bucket of `name` that no other thread has, BUSY; NULL: no memory. */
static struct objects_object *
objects_claim(uint64_t name, uint64_t number)
{
    struct objects_object *_Atomic *bucket = objects_bucket_of(name);
    struct objects_object *first = atomic_load(bucket), *object;

    for (object = first; object != NULL; object = atomic_load(&object->next)) {
        uint64_t life = atomic_load(&object->life);

        if (STATE(life) == FREE && atomic_compare_exchange_strong(&object->life, &life, LIFE(number, BUSY)))
            return object;
    }
    object = objects_new_row();
    if (object == NULL)
        return NULL;
    atomic_store(&object->life, LIFE(number, BUSY));
    do
        atomic_store(&object->next, first);
    while (!atomic_compare_exchange_weak(bucket, &first, object));
    return object;
}

/* ---- what keeps memory ---- */

static void
objects_release(struct objects_object *object)
{
    uint64_t number = NUMBER(atomic_load(&object->life));

    if (atomic_fetch_sub(&object->references, 1) != 1)
        return;
    atomic_fetch_sub(&state.table.bytes[atomic_load(&object->device)], atomic_load(&object->bytes));
    atomic_store(&object->life, LIFE(number, FREE));
}

/* Keep the memory of an object that had this life; false: it is gone. */
static bool
objects_hold(struct objects_object *object, uint64_t life)
{
    uint32_t references = atomic_load(&object->references);

    do
        if (references == 0)
            return false;
    while (!atomic_compare_exchange_weak(&object->references, &references, references + 1));
    if (NUMBER(atomic_load(&object->life)) == NUMBER(life))
        return true;
    objects_release(object);
    return false;
}

static void
objects_count(uint32_t device, uint64_t bytes)
{
    uint64_t bit = UINT64_C(1) << device;

    if (bytes == 0)
        return;
    atomic_fetch_add(&state.table.bytes[device], bytes);
    if ((atomic_load(&state.table.devices) & bit) == 0)
        atomic_fetch_or(&state.table.devices, bit);
}

/* Its handle is gone; false: another call ended it. */
static bool
objects_end(struct objects_object *object, uint64_t life)
{
    struct objects_object *origin;

    if (!atomic_compare_exchange_strong(&object->life, &life, LIFE(NUMBER(life), HELD)))
        return false;
    origin = atomic_load(&object->origin);
    objects_release(object);
    if (origin != NULL)
        objects_release(origin);
    return true;
}

/* ---- what goes with what ---- */

/* Was it below an object that is no more?  One of the same handle that is younger than it is
 * not the one. */
static bool
objects_has_lost_parent(const struct objects_object *object, uint64_t name, uint64_t life)
{
    uint32_t client = (uint32_t)(name >> 32), parent = atomic_load(&object->parent);
    uint64_t parent_life;

    return parent != client
           && (objects_find(objects_name_of(client, parent), &parent_life) == NULL
               || NUMBER(parent_life) > NUMBER(life));
}

static bool
objects_goes(const struct objects_object *object, uint64_t freed, uint64_t before, uint64_t *ret_life)
{
    uint32_t client = (uint32_t)(freed >> 32), handle = (uint32_t)freed;
    uint64_t name;

    *ret_life = atomic_load(&object->life);
    name = atomic_load(&object->name);
    if (STATE(*ret_life) != LIVE || NUMBER(*ret_life) > before || name >> 32 != client)
        return false;
    if (handle == client)
        return true;
    return (atomic_load(&object->flags) & PARENT_KNOWN) != 0
               ? objects_has_lost_parent(object, name, *ret_life)
               : atomic_load(&object->parent) == handle;
}

static bool
objects_sweep_bucket(unsigned bucket, uint64_t freed, uint64_t before)
{
    struct objects_object *object = atomic_load(&state.table.bucket[bucket]);
    bool some = false;
    uint64_t life;

    for (; object != NULL; object = atomic_load(&object->next))
        if (objects_goes(object, freed, before, &life))
            some |= objects_end(object, life);
    return some;
}

/* What goes with `freed`: again while something went, as what is below it goes too. */
static void
objects_sweep(uint64_t freed, uint64_t before)
{
    bool again;

    do {
        again = false;
        for (unsigned i = 0; i < BUCKETS; i++)
            again |= objects_sweep_bucket(i, freed, before);
    } while (again);
}

void
bh_rm_objects_free(uint32_t client, uint32_t handle, uint64_t before)
{
    uint64_t name = objects_name_of(client, handle), life;
    struct objects_object *object = objects_find(name, &life);
    bool more = handle == client || (atomic_load(&state.table.strays) & objects_stray_bit(name)) != 0;

    if (object != NULL) {
        if (NUMBER(life) > before)
            return;
        more |= (atomic_load(&object->flags) & HAS_CHILDREN) != 0;
        (void)objects_end(object, life);
    }
    if (more)
        objects_sweep(name, before);
}

/* ---- booking ---- */

/* Below which one it is; its device, and that it is known. */
static uint32_t
objects_join_parent(const struct bh_rm_object *object, uint32_t *ret_device)
{
    uint64_t life;
    struct objects_object *parent = objects_find(objects_name_of(object->client, object->parent), &life);

    *ret_device = object->device;
    if (parent != NULL) {
        atomic_fetch_or(&parent->flags, HAS_CHILDREN);
        if (*ret_device == BH_RM_DEVICE_INHERITED)
            *ret_device = atomic_load(&parent->device);
        return PARENT_KNOWN;
    }
    if (*ret_device == BH_RM_DEVICE_INHERITED)
        *ret_device = BH_RM_DEVICE_UNKNOWN;
    if (object->parent == object->client)
        return PARENT_KNOWN;
    atomic_fetch_or(&state.table.strays, objects_stray_bit(objects_name_of(object->client, object->parent)));
    return 0;
}

static bool
objects_put(const struct bh_rm_object *object, struct objects_object *origin)
{
    uint64_t number = atomic_fetch_add(&state.table.number, 1) + 1;
    uint64_t name = objects_name_of(object->client, object->handle), life;
    struct objects_object *row;
    uint32_t device;

    if (object->handle == object->client || objects_find(name, &life) != NULL)
        bh_rm_objects_free(object->client, object->handle, number - 1);
    row = objects_claim(name, number);
    if (row == NULL)
        return false;
    atomic_store(&row->name, name);
    atomic_store(&row->parent, object->parent);
    atomic_store(&row->flags, objects_join_parent(object, &device));
    atomic_store(&row->device, device);
    atomic_store(&row->bytes, object->bytes);
    atomic_store(&row->origin, origin);
    objects_count(device, object->bytes);
    atomic_store(&row->references, 1);
    atomic_store(&row->life, LIFE(number, LIVE));
    return true;
}

bool
bh_rm_objects_put(const struct bh_rm_object *object)
{
    return objects_put(object, NULL);
}

bool
bh_rm_objects_dup(const struct bh_rm_object *object, uint32_t source_client, uint32_t source)
{
    struct bh_rm_object other = *object;
    struct objects_object *origin, *first;
    uint64_t life;

    origin = objects_find(objects_name_of(source_client, source), &life);
    if (origin == NULL)
        return true;
    first = atomic_load(&origin->origin);
    if (first != NULL) {
        /* Held by `origin` as long as that has this life. */
        uint64_t first_life = atomic_load(&first->life);

        if (atomic_load(&origin->life) != life)
            return true;
        origin = first;
        life = first_life;
    }
    if (!objects_hold(origin, life))
        return true;
    other.bytes = 0;
    if (objects_put(&other, origin))
        return true;
    objects_release(origin);
    return false;
}

bool
bh_rm_objects_device(uint32_t client, uint32_t handle, uint32_t *ret_device)
{
    uint64_t life;
    struct objects_object *object = objects_find(objects_name_of(client, handle), &life);

    if (object == NULL || atomic_load(&object->device) >= BH_RM_DEVICES_MAX)
        return false;
    *ret_device = atomic_load(&object->device);
    return true;
}
