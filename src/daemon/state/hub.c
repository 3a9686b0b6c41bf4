#include "daemon/state/hub.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/time.h"

enum { RING = 4096 };

struct bh_hub {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* shared, under mutex */
    struct bh_change ring[RING];
    uint64_t next; /* number of the next change; the first is 1 */
    bool stopping;
};

struct bh_hub *
bh_hub_new(void)
{
    struct bh_hub *hub = calloc(1, sizeof *hub);
    pthread_condattr_t attributes;

    BH_ASSERT(hub);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&hub->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&hub->mutex, NULL);
    hub->next = 1;
    return hub;
}

void
bh_hub_free(struct bh_hub *hub)
{
    if (!hub)
        return;
    pthread_cond_destroy(&hub->changed);
    pthread_mutex_destroy(&hub->mutex);
    free(hub);
}

void
bh_hub_put(struct bh_hub *hub, const struct bh_change *changes, uint32_t count)
{
    if (count == 0)
        return;
    pthread_mutex_lock(&hub->mutex);
    for (uint32_t i = 0; i < count; i++) {
        struct bh_change *slot = &hub->ring[hub->next % RING];

        *slot = changes[i];
        slot->number = hub->next++;
    }
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->mutex);
}

void
bh_hub_stop(struct bh_hub *hub)
{
    pthread_mutex_lock(&hub->mutex);
    hub->stopping = true;
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->mutex);
}

/* Under mutex: wait until something above `after` is there, or the time is over. */
static void
wait_above(struct bh_hub *hub, uint64_t after, uint64_t wait_ns)
{
    bh_ns deadline = bh_time_monotonic() + wait_ns;
    struct timespec until = { (time_t)(deadline / BH_NS_PER_S), (long)(deadline % BH_NS_PER_S) };

    while (hub->next <= after + 1 && !hub->stopping)
        if (pthread_cond_timedwait(&hub->changed, &hub->mutex, &until) == ETIMEDOUT)
            return;
}

uint64_t
bh_hub_number(struct bh_hub *hub)
{
    uint64_t number;

    pthread_mutex_lock(&hub->mutex);
    number = hub->next - 1;
    pthread_mutex_unlock(&hub->mutex);
    return number;
}

uint32_t
bh_hub_wait(struct bh_hub *hub, uint64_t after, uint64_t wait_ns, struct bh_change *ret_changes, uint32_t max)
{
    uint32_t count = 0;

    pthread_mutex_lock(&hub->mutex);
    wait_above(hub, after, wait_ns);
    if (hub->next > RING && after < hub->next - RING)
        after = hub->next - RING;
    for (uint64_t n = after + 1; n < hub->next && count < max; n++)
        ret_changes[count++] = hub->ring[n % RING];
    pthread_mutex_unlock(&hub->mutex);
    return count;
}
