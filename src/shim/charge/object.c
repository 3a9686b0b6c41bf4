#include "shim/charge/object.h"

#include <stdatomic.h>

#include "shim/charge/charge.h"
#include "shim/process/state.h"

/* references: handles in the low 32 bits, mappings in the high ones; 0: a free row. */
#define HANDLE_REFERENCE UINT64_C(1)
#define MAP_REFERENCE (UINT64_C(1) << 32)
#define GOING UINT64_MAX

enum { OBJECTS_MAX = 1 << 16 };

struct object {
    _Atomic uint64_t references;
    uint64_t grains;
    uint32_t device;
};

static BH_STATE union {
    struct {
        struct object object[OBJECTS_MAX];
        _Atomic uint32_t hint;
    };
    char whole[OBJECTS_MAX * sizeof(struct object) + BH_STATE_ALIGN];
} state;

void
bh_objects_init(void)
{
    bh_state_wipe_on_fork(&state, sizeof(state));
}

bool
bh_object_new(unsigned device, uint64_t grains, uint32_t *ret_object)
{
    uint32_t from = atomic_load_explicit(&state.hint, memory_order_relaxed);

    for (uint32_t tried = 0; tried < OBJECTS_MAX; tried++) {
        uint32_t number = (from + tried) % OBJECTS_MAX;
        uint64_t none = 0;

        if (!atomic_compare_exchange_strong(&state.object[number].references, &none, HANDLE_REFERENCE))
            continue;
        state.object[number].device = device;
        state.object[number].grains = grains;
        atomic_store_explicit(&state.hint, number + 1, memory_order_relaxed);
        *ret_object = number;
        return true;
    }
    return false;
}

static void
object_hold(uint32_t number, uint64_t reference)
{
    atomic_fetch_add(&state.object[number].references, reference);
}

/* The last reference gives the memory back. */
static void
object_let_go(uint32_t number, uint64_t reference)
{
    struct object *object = &state.object[number];
    uint64_t before = atomic_load(&object->references), after;

    do {
        after = before == reference ? GOING : before - reference;
        if (!BH_HOLDS(before >= reference && before != GOING))
            return;
    } while (!atomic_compare_exchange_weak(&object->references, &before, after));
    if (after != GOING)
        return;
    bh_charge_give(object->device, object->grains);
    atomic_store(&object->references, 0);
}

void
bh_object_held(uint32_t object)
{
    object_hold(object, HANDLE_REFERENCE);
}

void
bh_object_mapped(uint32_t object)
{
    object_hold(object, MAP_REFERENCE);
}

void
bh_object_unmapped(uint32_t object)
{
    object_let_go(object, MAP_REFERENCE);
}

void
bh_object_released(uint32_t object)
{
    object_let_go(object, HANDLE_REFERENCE);
}

void
bh_object_forget(uint32_t object)
{
    atomic_store(&state.object[object].references, 0);
}
