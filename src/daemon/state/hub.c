#include "daemon/state/hub.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/lock.h"
#include "base/time.h"

enum { RING = 4096 };

struct bh_hub {
    struct bh_mutex mutex;
    struct bh_condition changed;
    /* shared, under mutex */
    struct bh_change ring[RING];
    uint64_t next; /* number of the next change; the first is 1 */
    bool stopping;
};

struct bh_hub *
bh_hub_new(void)
{
    struct bh_hub *hub = calloc(1, sizeof *hub);

    BH_ASSERT(hub);
    bh_condition_init(&hub->changed);
    bh_mutex_init(&hub->mutex, BH_LOCK_HUB);
    hub->next = 1;
    return hub;
}

void
bh_hub_free(struct bh_hub *hub)
{
    if (!hub)
        return;
    bh_condition_fini(&hub->changed);
    bh_mutex_fini(&hub->mutex);
    free(hub);
}

void
bh_hub_put(struct bh_hub *hub, const struct bh_change *changes, uint32_t count)
{
    if (count == 0)
        return;
    bh_mutex_lock(&hub->mutex);
    for (uint32_t i = 0; i < count; i++) {
        struct bh_change *slot = &hub->ring[hub->next % RING];

        *slot = changes[i];
        slot->number = hub->next++;
    }
    bh_condition_broadcast(&hub->changed);
    bh_mutex_unlock(&hub->mutex);
}

void
bh_hub_stop(struct bh_hub *hub)
{
    bh_mutex_lock(&hub->mutex);
    hub->stopping = true;
    bh_condition_broadcast(&hub->changed);
    bh_mutex_unlock(&hub->mutex);
}

/* Wait until something above `after` is there, or the time is over. */
static void
wait_above(struct bh_hub *hub, uint64_t after, uint64_t wait_ns)
{
    bh_ns deadline = bh_time_monotonic() + wait_ns;

    BH_ASSERT(bh_mutex_is_held(&hub->mutex));
    while (hub->next <= after + 1 && !hub->stopping)
        if (!bh_condition_wait_until(&hub->changed, &hub->mutex, deadline))
            return;
}

uint64_t
bh_hub_number(struct bh_hub *hub)
{
    uint64_t number;

    bh_mutex_lock(&hub->mutex);
    number = hub->next - 1;
    bh_mutex_unlock(&hub->mutex);
    return number;
}

uint32_t
bh_hub_wait(struct bh_hub *hub, uint64_t after, uint64_t wait_ns, struct bh_change *ret_changes, uint32_t max)
{
    uint32_t count = 0;

    bh_mutex_lock(&hub->mutex);
    wait_above(hub, after, wait_ns);
    if (hub->next > RING && after < hub->next - RING)
        after = hub->next - RING;
    for (uint64_t n = after + 1; n < hub->next && count < max; n++)
        ret_changes[count++] = hub->ring[n % RING];
    bh_mutex_unlock(&hub->mutex);
    return count;
}
