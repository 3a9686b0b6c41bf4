#include "engine/order.h"

#include "base/assert.h"
#include "engine/jobs.h"
#include "engine/quota.h"
#include "engine/slots.h"

/* How long it may run, in powers of two: a short job must not stand behind a long one of
 * the same needs that cannot begin before what is reserved. */
static uint64_t
length_of(const struct job *job)
{
    return job->time_limit_ns ? 64 - (uint64_t)__builtin_clzll(job->time_limit_ns) : 0;
}

/* Tenant, SKU, length, count, priority and hold in one number: equal needs, equal id. */
static uint64_t
needs_of(const struct job *job)
{
    BH_ASSERT(job->tenant < 1u << 20);
    BH_ASSERT(job->sku < 1u << 20);
    return (uint64_t)job->tenant << 44 | (uint64_t)job->sku << 24 | length_of(job) << 16
           | (uint64_t)job->count << 8 | (uint64_t)job->priority << 1 | job->hold;
}

uint32_t
bh_order_class(const struct bh_engine *engine, const struct job *job)
{
    return class_find(engine, needs_of(job));
}

static uint32_t
class_for(struct bh_engine *engine, const struct job *job)
{
    uint32_t slot = bh_order_class(engine, job);
    struct class *class;

    if (slot)
        return slot;
    slot = bh_slot_add(engine, TABLE_CLASS, needs_of(job));
    class = class_at(engine, slot);
    class->tenant = job->tenant;
    class->sku = job->sku;
    class->count = job->count;
    class->priority = job->priority;
    class->hold = job->hold;
    *bh_class_hint(engine, slot) = (struct hint){ 0 };
    return slot;
}

/* The job that the new one comes right after, or 0. */
static uint32_t
place_in(const struct bh_engine *engine, const struct class *class, uint64_t sequence)
{
    uint32_t before = 0;

    if (class->tail && job_at(engine, class->tail)->sequence < sequence)
        return class->tail;
    for (uint32_t at = class->head; at && job_at(engine, at)->sequence < sequence;
         at = job_at(engine, at)->next)
        before = at;
    return before;
}

static void
look_again(struct bh_engine *engine, uint32_t class)
{
    *bh_class_hint(engine, class) = (struct hint){ 0 };
    engine->hints.settled = false;
}

void
bh_order_enqueue(struct bh_engine *engine, uint32_t slot)
{
    struct job *job = job_at(engine, slot);
    uint32_t class_slot = class_for(engine, job);
    struct class *class = class_at(engine, class_slot);
    uint32_t before = place_in(engine, class, job->sequence);

    BH_ASSERT(job->state == BH_JOB_PENDING);
    BH_ASSERT(job->class == 0);
    job->class = class_slot;
    job->prev = before;
    job->next = before ? job_at(engine, before)->next : class->head;
    if (job->next)
        job_at(engine, job->next)->prev = slot;
    else
        class->tail = slot;
    if (before)
        job_at(engine, before)->next = slot;
    else
        class->head = slot;
    class->jobs++;
    engine->core.pending++;
    if (before == 0 || bh_job_claim(engine, before))
        look_again(engine, class_slot); /* it is the first that room is looked for */
}

void
bh_order_dequeue(struct bh_engine *engine, uint32_t slot)
{
    struct job *job = job_at(engine, slot);
    uint32_t class_slot = job->class;
    struct class *class = class_at(engine, class_slot);

    BH_ASSERT(class_slot != 0);
    BH_ASSERT(class->jobs > 0);
    if (class->head == slot)
        look_again(engine, class_slot);
    if (job->prev)
        job_at(engine, job->prev)->next = job->next;
    else
        class->head = job->next;
    if (job->next)
        job_at(engine, job->next)->prev = job->prev;
    else
        class->tail = job->prev;
    job->next = job->prev = job->class = 0;
    class->jobs--;
    engine->core.pending--;
    if (class->jobs == 0)
        bh_slot_remove(engine, TABLE_CLASS, class_slot);
}

void
bh_order_stir(struct bh_engine *engine)
{
    engine->core.generation++;
    engine->hints.settled = false;
}

void
bh_order_open_window(struct bh_engine *engine)
{
    engine->core.window++;
    bh_order_stir(engine);
}

/* ---- who comes first ---- */

bool
bh_order_before(const struct bh_candidate *a, const struct bh_candidate *b)
{
    if (a->guaranteed != b->guaranteed)
        return a->guaranteed;
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->sequence != b->sequence)
        return a->sequence < b->sequence;
    return a->id < b->id;
}

static bool
is_parked(const struct bh_engine *engine, const struct hint *hint)
{
    if (hint->generation != engine->core.generation + 1)
        return false;
    return hint->until_ns == 0 || engine->core.now_ns < hint->until_ns;
}

void
bh_order_of_class(const struct bh_engine *engine, uint32_t slot,
                  struct bh_candidate *ret_candidate)
{
    const struct class *class = class_at(engine, slot);
    const struct job *head = job_at(engine, class->head);
    struct bh_wanted wanted = { class->tenant, class->sku, class->count,
                                bh_quota_least(engine, class->sku, class->count) };

    *ret_candidate = (struct bh_candidate){ .class = slot, .priority = class->priority,
                                            .sequence = head->sequence, .id = head->id,
                                            .guaranteed =
                                                bh_quota_guaranteed(engine, &wanted) };
}

void
bh_order_of_lease(const struct bh_engine *engine, uint32_t slot,
                  struct bh_candidate *ret_candidate)
{
    const struct lease *lease = lease_at(engine, slot);
    const struct job *job = job_at(engine, lease->job);
    struct bh_wanted wanted = bh_quota_to_resume(engine, slot);

    *ret_candidate = (struct bh_candidate){ .lease = slot, .priority = job->priority,
                                            .sequence = job->sequence, .id = job->id,
                                            .guaranteed =
                                                bh_quota_guaranteed(engine, &wanted) };
}

void
bh_order_of_job(const struct bh_engine *engine, uint32_t slot,
                struct bh_candidate *ret_candidate)
{
    const struct job *job = job_at(engine, slot);

    BH_ASSERT(job->class || job->lease);
    if (job->class)
        bh_order_of_class(engine, job->class, ret_candidate);
    else
        bh_order_of_lease(engine, job->lease, ret_candidate);
}

uint32_t
bh_order_job(struct bh_engine *engine, const struct bh_candidate *candidate)
{
    uint32_t job = candidate->class ? class_at(engine, candidate->class)->head
                                    : lease_at(engine, candidate->lease)->job;

    while (job && bh_job_claim(engine, job))
        job = candidate->class ? job_at(engine, job)->next : 0;
    return job;
}

static void
keep_first(struct bh_candidate *first, bool *found, const struct bh_candidate *next)
{
    if (!*found || bh_order_before(next, first))
        *first = *next;
    *found = true;
}

bool
bh_order_first(const struct bh_engine *engine, struct bh_candidate *ret_candidate)
{
    struct bh_candidate next;
    bool found = false;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_CLASS, &slot);) {
        if (class_at(engine, slot)->hold || is_parked(engine, bh_class_hint(engine, slot)))
            continue;
        bh_order_of_class(engine, slot, &next);
        keep_first(ret_candidate, &found, &next);
    }
    if (engine->core.suspended == 0)
        return found;
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
        if (lease_at(engine, slot)->state != LEASE_SUSPENDED
            || is_parked(engine, bh_lease_hint(engine, slot)))
            continue;
        bh_order_of_lease(engine, slot, &next);
        keep_first(ret_candidate, &found, &next);
    }
    return found;
}

void
bh_order_park(struct bh_engine *engine, const struct bh_candidate *candidate,
              uint64_t until_ns)
{
    struct hint *hint = candidate->class ? bh_class_hint(engine, candidate->class)
                                         : bh_lease_hint(engine, candidate->lease);

    hint->generation = engine->core.generation + 1;
    hint->until_ns = until_ns;
    if (until_ns && (engine->hints.wake_ns == 0 || until_ns < engine->hints.wake_ns))
        engine->hints.wake_ns = until_ns;
}
