#include "engine/queue/queue.h"

#include "base/assert.h"
#include "base/attr.h"
#include "engine/account/quota.h"
#include "engine/account/usage.h"
#include "engine/placement/placement.h"
#include "engine/queue/claim.h"
#include "engine/state/gang.h"
#include "engine/state/slots.h"
#include "engine/state/sound.h"
#include "engine/state/wake.h"

/* How long it may run, in powers of two: a short job must not stand behind a long one of
 * the same needs that cannot begin before what is reserved. */
static uint8_t
queue_length_of(const struct job *job)
{
    return (uint8_t)(job->time_limit_ns ? 64 - __builtin_clzll(job->time_limit_ns) : 0);
}

static bool
queue_needs_it(const struct class *class, const struct job *job)
{
    return class->tenant == job->tenant && class->sku == job->sku && class->principal == job->principal
           && class->count == job->count && class->gang == job->gang && class->priority == job->priority
           && class->hold == job->hold && class->length == queue_length_of(job)
           && class->cpu_milli == job->cpu_milli && class->memory_mib == job->memory_mib
           && class->scratch == job->scratch;
}

/* Where the job's class is looked for first. */
static uint64_t
queue_home_of(const struct job *job)
{
    const uint64_t needs[] = {
        job->tenant,   job->sku,  job->principal,       job->count,     job->gang,
        job->priority, job->hold, queue_length_of(job), job->cpu_milli, job->memory_mib
    };
    uint64_t hash = 0xcbf29ce484222325ull;

    for (size_t i = 0; i < BH_COUNT(needs); i++)
        hash = (hash ^ needs[i]) * 0x9e3779b97f4a7c15ull;
    hash ^= job->scratch ? 0x5bd1e995u : 0; /* numbers of classes of before stay what they were */
    return hash >> 1 | 1;                   /* never 0, and room for those that follow */
}

/* The class with the job's needs, or 0 and the id that a new one gets. */
static uint32_t
queue_find_class(const struct bh_engine *engine, const struct job *job, uint64_t *ret_id)
{
    uint32_t slot;

    for (*ret_id = queue_home_of(job); (slot = class_find(engine, *ret_id)); ++*ret_id)
        if (queue_needs_it(class_at(engine, slot), job))
            return slot;
    return 0;
}

static uint32_t
queue_class_for(struct bh_engine *engine, const struct job *job)
{
    uint64_t id;
    uint32_t slot = queue_find_class(engine, job, &id);
    struct class *class;

    if (slot)
        return slot;
    slot = bh_slot_add(engine, TABLE_CLASS, id);
    class = class_at(engine, slot);
    class->tenant = job->tenant;
    class->sku = job->sku;
    class->principal = job->principal;
    class->count = job->count;
    class->gang = job->gang;
    class->priority = job->priority;
    class->hold = job->hold;
    class->length = queue_length_of(job);
    class->cpu_milli = job->cpu_milli;
    class->memory_mib = job->memory_mib;
    class->scratch = job->scratch;
    *bh_class_hint(engine, slot) = (struct hint){ 0 };
    return slot;
}

/* The job that the new one comes right after, or 0. */
static uint32_t
queue_placement_in(const struct bh_engine *engine, const struct class *class, uint64_t sequence)
{
    uint32_t before = 0;

    if (class->tail && job_at(engine, class->tail)->sequence < sequence)
        return class->tail;
    for (uint32_t at = class->head; at && job_at(engine, at)->sequence < sequence;
         at = job_at(engine, at)->next)
        before = at;
    return before;
}

void
bh_queue_add(struct bh_engine *engine, uint32_t slot)
{
    struct job *job = job_at(engine, slot);
    uint32_t class_slot = queue_class_for(engine, job);
    struct class *class = class_at(engine, class_slot);
    uint32_t before = queue_placement_in(engine, class, job->sequence);

    BH_ASSERT(job->state == BH_JOB_PENDING);
    BH_ASSERT(job->class == 0);
    BH_ASSERT(job->id != 0 && class->id != 0);
    BH_ASSERT(before == 0 || job_at(engine, before)->class == class_slot);
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
    engine->core.pending_members += job->gang;
    if (before == 0 || bh_claim_of(engine, before))
        bh_wake_class(engine, class_slot); /* it is the first that room is looked for */
}

void
bh_queue_remove(struct bh_engine *engine, uint32_t slot)
{
    struct job *job = job_at(engine, slot);
    uint32_t class_slot = job->class;
    struct class *class = class_at(engine, class_slot);

    BH_ASSERT(class_slot != 0);
    BH_ASSERT(class->jobs > 0);
    BH_ASSERT(job->prev ? job_at(engine, job->prev)->next == slot : class->head == slot);
    BH_ASSERT(job->next ? job_at(engine, job->next)->prev == slot : class->tail == slot);
    BH_ASSERT(engine->core.pending > 0 && engine->core.pending_members >= job->gang);
    if (class->head == slot)
        bh_wake_class(engine, class_slot);
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
    engine->core.pending_members -= job->gang;
    if (class->jobs == 0)
        bh_slot_remove(engine, TABLE_CLASS, class_slot);
}

/* ---- order ---- */

bool
bh_queue_before(const struct bh_engine *engine, const struct bh_queue_entry *a,
                const struct bh_queue_entry *b)
{
    int order;

    if (a->cover != b->cover)
        return a->cover > b->cover;
    if (a->priority != b->priority)
        return a->priority > b->priority;
    order = bh_usage_compare(engine, a->tenant, b->tenant);
    if (order != 0)
        return order < 0;
    if (a->sequence != b->sequence)
        return a->sequence < b->sequence;
    return a->id < b->id;
}

static bool
queue_is_deferred(const struct bh_engine *engine, const struct hint *hint)
{
    BH_ASSERT(hint->generation <= engine->core.generation + 1);
    if (hint->generation != engine->core.generation + 1)
        return false;
    BH_ASSERT(hint->until_ns <= engine->core.now_ns || engine->hints.wake_stale
              || hint->until_ns >= engine->hints.wake_ns);
    return hint->until_ns == 0 || engine->core.now_ns < hint->until_ns;
}

bool
bh_queue_is_blocked(const struct bh_engine *engine, uint32_t class)
{
    const struct hint *hint = bh_class_hint(engine, class);

    BH_ASSERT(hint->blocked_at <= engine->hints.changes + 1);
    BH_ASSERT(bh_tenant_hint(engine, hint->within)->changes <= engine->hints.changes);
    if (hint->blocked_at <= engine->hints.all_changes
        || hint->blocked_at <= bh_tenant_hint(engine, hint->within)->changes)
        return false;
    return hint->until_ns == 0 || engine->core.now_ns < hint->until_ns;
}

void
bh_queue_entry_of_class(const struct bh_engine *engine, uint32_t slot, struct bh_queue_entry *ret_entry)
{
    const struct class *class = class_at(engine, slot);
    const struct job *head = job_at(engine, class->head);
    struct bh_need need = bh_placement_need(engine, slot);

    *ret_entry = (struct bh_queue_entry){ .class = slot,
                                          .priority = class->priority,
                                          .sequence = head->sequence,
                                          .id = head->id,
                                          .tenant = class->tenant,
                                          .cover = (uint8_t)bh_placement_cover(engine, &need) };
}

/* The candidate that a suspended gang is, by its first lease. */
static void
queue_entry_of_lease(const struct bh_engine *engine, uint32_t slot, struct bh_queue_entry *ret_entry)
{
    const struct lease *lease = lease_at(engine, slot);
    const struct job *job = job_at(engine, lease->job);
    struct bh_wanted wanted = bh_quota_to_resume_all(engine, lease->job);
    uint32_t within;

    *ret_entry = (struct bh_queue_entry){ .lease = slot,
                                          .priority = job->priority,
                                          .sequence = job->sequence,
                                          .id = job->id,
                                          .tenant = job->tenant,
                                          .cover = (uint8_t)bh_guarantee_cover(engine, &wanted, &within) };
}

void
bh_queue_entry_of_job(const struct bh_engine *engine, uint32_t slot, struct bh_queue_entry *ret_entry)
{
    const struct job *job = job_at(engine, slot);

    BH_ASSERT(job->class || job->lease);
    if (job->class)
        bh_queue_entry_of_class(engine, job->class, ret_entry);
    else
        queue_entry_of_lease(engine, bh_gang_next(engine, slot, 0), ret_entry);
}

uint32_t
bh_queue_job(struct bh_engine *engine, const struct bh_queue_entry *entry)
{
    uint32_t job = entry->class ? class_at(engine, entry->class)->head : lease_at(engine, entry->lease)->job;

    while (job && bh_claim_of(engine, job))
        job = entry->class ? job_at(engine, job)->next : 0;
    return job;
}

/* The heap of candidates: above each stands one that comes before it. */
static struct bh_queue_entry *
queue_at(const struct bh_engine *engine, uint32_t at)
{
    return (struct bh_queue_entry *)bh_block_at(engine, engine->hints.queue_offset) + at;
}

static void
queue_sink(struct bh_engine *engine, uint32_t at)
{
    struct bh_queue_entry moved = *queue_at(engine, at);
    uint32_t count = engine->hints.queue_count;

    BH_ASSERT(at < count);
    for (uint32_t below; (below = 2 * at + 1) < count; at = below) {
        if (below + 1 < count
            && bh_queue_before(engine, queue_at(engine, below + 1), queue_at(engine, below)))
            below++;
        if (!bh_queue_before(engine, queue_at(engine, below), &moved))
            break;
        *queue_at(engine, at) = *queue_at(engine, below);
    }
    *queue_at(engine, at) = moved;
}

static void
build_queue(struct bh_engine *engine)
{
    uint32_t count = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_CLASS, &slot);) {
        BH_ASSERT(bh_sound_class(engine, slot));
        if (class_at(engine, slot)->hold || bh_queue_is_blocked(engine, slot))
            continue;
        bh_queue_entry_of_class(engine, slot, queue_at(engine, count));
        queue_at(engine, count++)->deferred = queue_is_deferred(engine, bh_class_hint(engine, slot));
    }
    for (uint32_t slot = 0; engine->core.suspended && bh_slot_next(engine, TABLE_LEASE, &slot);) {
        if (!bh_gang_leads_suspended(engine, slot))
            continue;
        queue_entry_of_lease(engine, slot, queue_at(engine, count));
        queue_at(engine, count++)->deferred = queue_is_deferred(engine, bh_lease_hint(engine, slot));
    }
    engine->hints.queue_count = count;
    engine->hints.queued = true;
    for (uint32_t at = count / 2; at-- > 0;)
        queue_sink(engine, at);
}

void
bh_queue_rewind(struct bh_engine *engine)
{
    engine->hints.queued = false;
}

bool
bh_queue_next(struct bh_engine *engine, struct bh_queue_entry *ret_entry)
{
    if (!engine->hints.queued)
        build_queue(engine);
    if (engine->hints.queue_count == 0)
        return false;
    *ret_entry = *queue_at(engine, 0);
    *queue_at(engine, 0) = *queue_at(engine, --engine->hints.queue_count);
    if (engine->hints.queue_count > 0)
        queue_sink(engine, 0);
    return true;
}

void
bh_queue_defer(struct bh_engine *engine, const struct bh_queue_entry *entry, uint64_t until_ns)
{
    struct hint *hint =
        entry->class ? bh_class_hint(engine, entry->class) : bh_lease_hint(engine, entry->lease);

    BH_ASSERT(entry->class ? class_at(engine, entry->class)->id != 0
                           : lease_at(engine, entry->lease)->id != 0);
    hint->generation = engine->core.generation + 1;
    hint->until_ns = until_ns;
    hint->blocked_at = 0;
    if (until_ns && (engine->hints.wake_ns == 0 || until_ns < engine->hints.wake_ns))
        engine->hints.wake_ns = until_ns;
}

void
bh_queue_block(struct bh_engine *engine, uint32_t class, uint32_t within, uint64_t until_ns)
{
    struct bh_queue_entry entry = { .class = class };
    struct hint *hint = bh_class_hint(engine, class);

    BH_ASSERT(tenant_at(engine, within)->id != 0);
    BH_ASSERT(class_at(engine, class)->id != 0);
    bh_queue_defer(engine, &entry, until_ns);
    hint->blocked_at = engine->hints.changes + 1;
    hint->within = within;
}
