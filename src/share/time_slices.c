#include "share/time_slices.h"

#include <stdlib.h>

#include "base/assert.h"

#define ROUND_DEFAULT_NS UINT64_C(40000000)
#define STUCK_DEFAULT_NS UINT64_C(10000000000)
#define RETRY_NS UINT64_C(1000000000) /* to end a time slice that was stuck */
#define REST_DEFAULT_NS UINT64_C(1000000000)
/* A time slice is no shorter, however light its member: a hand-over costs some 60 us. */
#define SLICE_LEAST_NS UINT64_C(2000000)
#define PROBE_NS UINT64_C(20000000)  /* CONTENDED, of a quantum: an idle one reports within it */
#define LAST_NS UINT64_C(2000000000) /* and before its end, so that what was submitted ahead is done */
#define NEVER UINT64_MAX
#define THROTTLE 10
#define GPUS 32

/* The virtual runtime of a member is what it was charged, divided by its weight: ns x 4200 / parts.
 * Members that share a GPU are compared by it.  It is made smaller for all before it can overflow. */
#define VRUNTIME_MAX (UINT64_C(1) << 62)

struct entity {
    bool taken, wants, stuck, paused;
    bool released;                              /* ENDING and stuck: it may submit, beside others */
    struct bh_time_slices_member given, member; /* as it joined; as it is treated now */
    enum bh_time_slice slice;
    uint64_t vruntime, used_ns;
    uint64_t since_ns;  /* of the time slice's grant; ENDING: of its last charge */
    uint64_t until_ns;  /* CONTENDED: its end; ENDING: when it counts as stuck, paused: as over;
                           stuck: when it is released or shut again */
    uint64_t rested_ns; /* hard: no time slice before */
    bool whole;         /* CONTENDED: its time slice is a quantum */
    bool probing;       /* of a quantum: it is asked whether it is idle */
    uint64_t probe_ns;  /* when that changes next */
    uint64_t idle_ns;   /* when its rest is over; 0: it is not idle */
};

struct bh_time_slices {
    uint64_t round_ns, stuck_ns, rest_ns;
    uint64_t now_ns;             /* when it was decided last */
    uint64_t min_vruntime[GPUS]; /* of each GPU: the least virtual runtime of those that want it,
                                  never less than it was; the virtual time of fair queueing */
    uint32_t count;              /* entities that were ever taken */
    struct entity entity[BH_TIME_SLICES_MEMBERS_MAX];
};

struct bh_time_slices *
bh_time_slices_new(const struct bh_time_slices_options *options)
{
    struct bh_time_slices *slices = calloc(1, sizeof(*slices));

    BH_ASSERT(slices != NULL);
    slices->round_ns = options->round_ns != 0 ? options->round_ns : ROUND_DEFAULT_NS;
    slices->stuck_ns = options->stuck_ns != 0 ? options->stuck_ns : STUCK_DEFAULT_NS;
    slices->rest_ns = options->rest_ns != 0 ? options->rest_ns : REST_DEFAULT_NS;
    return slices;
}

void
bh_time_slices_free(struct bh_time_slices *slices)
{
    free(slices);
}

static struct entity *
slices_entity_get(struct bh_time_slices *slices, uint32_t index)
{
    BH_ASSERT(index < slices->count);
    BH_ASSERT(slices->entity[index].taken);
    return &slices->entity[index];
}

static bool
slices_meets(const struct entity *a, const struct entity *b)
{
    return a->taken && b->taken && a != b && (a->member.gpus & b->member.gpus) != 0;
}

static bool
slices_is_on(const struct entity *entity)
{
    return entity->slice != BH_TIME_SLICE_NONE;
}

static bool
slices_does_want(const struct entity *entity)
{
    return entity->taken && entity->wants && !entity->paused;
}

static bool
slices_is_active(const struct entity *entity)
{
    return slices_does_want(entity) || (entity->taken && slices_is_on(entity));
}

static uint64_t
slices_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- charging ---- */

static void
slices_make_smaller(struct bh_time_slices *slices)
{
    uint64_t least = NEVER;

    for (uint32_t i = 0; i < slices->count; i++)
        if (slices->entity[i].taken && slices->entity[i].vruntime < least)
            least = slices->entity[i].vruntime;
    for (uint32_t i = 0; i < slices->count; i++)
        slices->entity[i].vruntime -= slices->entity[i].taken ? least : slices->entity[i].vruntime;
    for (uint32_t g = 0; g < GPUS; g++)
        slices->min_vruntime[g] -= slices->min_vruntime[g] < least ? slices->min_vruntime[g] : least;
}

/* Charge what the time slice took up to now, at each call: so a long one weighs at
 * once, and is charged for once. */
static void
slices_charge(struct bh_time_slices *slices, struct entity *entity, uint64_t now_ns)
{
    uint64_t took = slices_is_on(entity) && now_ns > entity->since_ns ? now_ns - entity->since_ns : 0;

    entity->since_ns = now_ns;
    entity->used_ns += took;
    entity->vruntime += took * BH_TIME_SLICES_WEIGHT_MAX / entity->member.weight;
    if (entity->member.hard && took > 0)
        entity->rested_ns = (entity->rested_ns > now_ns - took ? entity->rested_ns : now_ns - took)
                            + took * BH_TIME_SLICES_WEIGHT_MAX / entity->member.weight;
    if (entity->vruntime > VRUNTIME_MAX)
        slices_make_smaller(slices);
}

static void
slices_raise_min_vruntime(struct bh_time_slices *slices, uint32_t gpu)
{
    uint64_t least = NEVER;

    for (uint32_t i = 0; i < slices->count; i++) {
        const struct entity *entity = &slices->entity[i];

        if (slices_is_active(entity) && (entity->member.gpus >> gpu & 1) != 0 && entity->vruntime < least)
            least = entity->vruntime;
    }
    if (least != NEVER && least > slices->min_vruntime[gpu])
        slices->min_vruntime[gpu] = least;
}

static void
slices_raise_min_vruntimes(struct bh_time_slices *slices)
{
    for (uint32_t g = 0; g < GPUS; g++)
        slices_raise_min_vruntime(slices, g);
}

/* One that was away has saved up no more than `most` against those that were not, as they stand
 * now. */
static void
slices_catch_up(struct bh_time_slices *slices, struct entity *entity, uint64_t now_ns, uint64_t most)
{
    for (uint32_t i = 0; i < slices->count; i++)
        if (slices->entity[i].taken)
            slices_charge(slices, &slices->entity[i], now_ns);
    slices_raise_min_vruntimes(slices);
    for (uint32_t g = 0; g < GPUS; g++)
        if ((entity->member.gpus >> g & 1) != 0 && slices->min_vruntime[g] > most
            && entity->vruntime < slices->min_vruntime[g] - most)
            entity->vruntime = slices->min_vruntime[g] - most;
}

/* ---- which member is next ---- */

static bool
slices_is_pending(const struct entity *entity, uint64_t now_ns)
{
    return slices_does_want(entity) && !slices_is_on(entity)
           && (!entity->member.hard || entity->rested_ns <= now_ns);
}

/* Multiplexed, as are all that want its GPUs. */
static bool
slices_is_whole(const struct bh_time_slices *slices, const struct entity *entity)
{
    if (entity->member.quantum_ns == 0)
        return false;
    for (uint32_t i = 0; i < slices->count; i++)
        if (slices_meets(&slices->entity[i], entity) && slices_is_active(&slices->entity[i])
            && slices->entity[i].member.quantum_ns == 0)
            return false;
    return true;
}

/* How long until it is a time slice ahead of the first that waits for its GPUs: as far as it falls
 * behind while the others have theirs.  So what the last time slice took too long is taken from the
 * next. */
static uint64_t
slices_length_ns(const struct bh_time_slices *slices, const struct entity *entity, uint64_t now_ns)
{
    uint64_t weights = entity->member.weight, least = NEVER, lead, length;
    uint64_t all = 1, round;

    for (uint32_t i = 0; i < slices->count; i++) {
        const struct entity *other = &slices->entity[i];

        if (!slices_meets(other, entity) || !slices_is_active(other))
            continue;
        weights += other->member.weight;
        all++;
        if (slices_is_pending(other, now_ns) && other->vruntime < least)
            least = other->vruntime;
    }
    if (entity->member.hard && weights < BH_TIME_SLICES_WEIGHT_MAX)
        weights = BH_TIME_SLICES_WEIGHT_MAX;
    round = slices_is_whole(slices, entity) ? all * entity->member.quantum_ns : slices->round_ns;
    if (least == NEVER)
        return round * entity->member.weight / weights;
    lead = round * BH_TIME_SLICES_WEIGHT_MAX / weights;
    lead -= lead * entity->member.weight / weights;
    length = least + lead > entity->vruntime
                 ? (least + lead - entity->vruntime) * entity->member.weight / BH_TIME_SLICES_WEIGHT_MAX
                 : 0;
    return length > SLICE_LEAST_NS ? length : SLICE_LEAST_NS;
}

/* A latency member goes first until it is a round ahead of the other. */
static bool
slices_precedes(const struct bh_time_slices *slices, const struct entity *a, const struct entity *b)
{
    uint64_t lead_a = a->member.latency ? slices->round_ns : 0;
    uint64_t lead_b = b->member.latency ? slices->round_ns : 0;

    if (a->vruntime + lead_b != b->vruntime + lead_a)
        return a->vruntime + lead_b < b->vruntime + lead_a;
    return a < b;
}

/* The waiting member that comes first of those in no GPU of `closed`. */
static struct entity *
slices_first_pending(struct bh_time_slices *slices, uint64_t now_ns, uint32_t closed)
{
    struct entity *first = NULL;

    for (uint32_t i = 0; i < slices->count; i++) {
        struct entity *entity = &slices->entity[i];

        if (slices_is_pending(entity, now_ns) && (entity->member.gpus & closed) == 0
            && (first == NULL || slices_precedes(slices, entity, first)))
            first = entity;
    }
    return first;
}

static bool
slices_is_blocked(const struct bh_time_slices *slices, const struct entity *entity)
{
    for (uint32_t i = 0; i < slices->count; i++)
        if (slices_meets(&slices->entity[i], entity) && slices_is_on(&slices->entity[i])
            && !slices->entity[i].stuck)
            return true;
    return false;
}

static void
slices_grant(struct bh_time_slices *slices, struct entity *entity, uint64_t now_ns)
{
    entity->slice = BH_TIME_SLICE_OPEN;
    entity->whole = false; /* a quantum begins when a member waits */
    entity->since_ns = now_ns;
    entity->until_ns = now_ns + slices_length_ns(slices, entity, now_ns);
}

static void
slices_end(struct bh_time_slices *slices, struct entity *entity, uint64_t now_ns)
{
    slices_charge(slices, entity, now_ns);
    entity->slice = BH_TIME_SLICE_ENDING;
    entity->released = false;
    entity->wants = entity->wants && entity->idle_ns == 0;
    entity->idle_ns = 0;
    entity->until_ns = now_ns + (entity->paused ? BH_TIME_SLICES_PAUSE_NS : slices->stuck_ns);
}

/* Nothing of it is left, or no process will report it. */
static void
slices_be_over(struct bh_time_slices *slices, struct entity *entity, uint64_t now_ns)
{
    slices_charge(slices, entity, now_ns);
    slices_raise_min_vruntimes(slices); /* while it still counts */
    entity->slice = BH_TIME_SLICE_NONE;
    entity->stuck = entity->released = false;
}

/* Whether a waiting member takes `holder`'s GPUs: at the end of its time, or before it for latency. */
static bool
slices_should_end(struct bh_time_slices *slices, struct entity *holder, uint64_t now_ns)
{
    for (uint32_t i = 0; i < slices->count; i++) {
        const struct entity *other = &slices->entity[i];

        if (!slices_meets(other, holder) || !slices_is_pending(other, now_ns))
            continue;
        if (now_ns >= holder->until_ns && slices_precedes(slices, other, holder))
            return true;
        if (other->member.latency && !holder->member.latency && slices_precedes(slices, other, holder))
            return true;
    }
    return false;
}

static bool
slices_is_contended(const struct bh_time_slices *slices, const struct entity *holder)
{
    for (uint32_t i = 0; i < slices->count; i++)
        if (slices_meets(&slices->entity[i], holder) && slices_does_want(&slices->entity[i])
            && !slices_is_on(&slices->entity[i]))
            return true;
    return holder->member.hard;
}

static void
slices_contend(struct bh_time_slices *slices, struct entity *entity, uint64_t now_ns)
{
    bool contended = slices_is_contended(slices, entity),
         whole = contended && slices_is_whole(slices, entity);

    if (contended && (entity->slice == BH_TIME_SLICE_OPEN || whole != entity->whole))
        entity->until_ns = now_ns + slices_length_ns(slices, entity, now_ns);
    if (!whole || !entity->whole) {
        entity->idle_ns = 0;
        entity->probing = false;
        entity->probe_ns = now_ns + slices->rest_ns;
    }
    entity->slice = contended ? BH_TIME_SLICE_CONTENDED : BH_TIME_SLICE_OPEN;
    entity->whole = whole;
}

static void
slices_probe(const struct bh_time_slices *slices, struct entity *entity, uint64_t now_ns)
{
    uint64_t last_ns = entity->until_ns - slices_least(LAST_NS, entity->member.quantum_ns / 8);

    if (!entity->whole || entity->idle_ns != 0)
        return;
    if (now_ns >= last_ns) {
        entity->probing = true;
        entity->probe_ns = entity->until_ns;
    } else if (now_ns >= entity->probe_ns) {
        entity->probing = !entity->probing;
        entity->probe_ns = now_ns + (entity->probing ? PROBE_NS : slices->rest_ns);
    }
    entity->probe_ns = now_ns < last_ns ? slices_least(entity->probe_ns, last_ns) : entity->probe_ns;
}

/* A time slice that does not end may wait for work that is not submitted yet: a collective of several
 * processes or GPUs, of which the end of the time slice cut off a part.  So it continues beside the others,
 * and is tried again now and then.  Not for a throttled member: it gets no more time for being stuck. */
static void
slices_be_stuck(struct bh_time_slices *slices, struct entity *entity, uint64_t now_ns)
{
    bool throttled = entity->member.hard && !entity->given.hard;

    entity->stuck = true;
    entity->released = !entity->released && !throttled;
    entity->until_ns =
        now_ns + (entity->released ? slices->stuck_ns : slices_least(slices->stuck_ns, RETRY_NS));
}

static void
slices_entity_update(struct bh_time_slices *slices, struct entity *entity, uint64_t now_ns)
{
    if (entity->slice == BH_TIME_SLICE_ENDING && now_ns >= entity->until_ns) {
        if (entity->paused)
            slices_be_over(slices, entity, now_ns);
        else
            slices_be_stuck(slices, entity, now_ns);
    }
    if (entity->slice != BH_TIME_SLICE_OPEN && entity->slice != BH_TIME_SLICE_CONTENDED)
        return;
    slices_charge(slices, entity, now_ns);
    slices_contend(slices, entity, now_ns);
    if (slices_should_end(slices, entity, now_ns) || (entity->idle_ns != 0 && now_ns >= entity->idle_ns)
        || (entity->member.hard && now_ns >= entity->until_ns && entity->rested_ns > now_ns))
        slices_end(slices, entity, now_ns);
    else if (now_ns >= entity->until_ns)
        entity->until_ns = now_ns + slices_length_ns(slices, entity, now_ns);
    slices_probe(slices, entity, now_ns);
}

/* End what is due, then give time slices in order: one that cannot have its time slice yet keeps its GPUs
 * from those that come after it, so that one that spans several gets them all in the end. */
static void
slices_decide(struct bh_time_slices *slices, uint64_t now_ns)
{
    uint32_t closed = 0;
    struct entity *entity;

    slices->now_ns = now_ns;
    for (uint32_t i = 0; i < slices->count; i++)
        if (slices->entity[i].taken)
            slices_entity_update(slices, &slices->entity[i], now_ns);
    slices_raise_min_vruntimes(slices);
    while ((entity = slices_first_pending(slices, now_ns, closed)) != NULL) {
        closed |= entity->member.gpus;
        if (!slices_is_blocked(slices, entity))
            slices_grant(slices, entity, now_ns);
    }
    for (uint32_t i = 0; i < slices->count; i++) {
        entity = &slices->entity[i];
        if (entity->slice == BH_TIME_SLICE_OPEN || entity->slice == BH_TIME_SLICE_CONTENDED)
            slices_contend(slices, entity, now_ns);
    }
}

/* ---- what happens ---- */

bh_rc
bh_time_slices_join(struct bh_time_slices *slices, uint64_t now_ns,
                    const struct bh_time_slices_member *member, uint32_t *ret_index, struct bh_err *err)
{
    uint32_t index = 0;

    if (member->quantum_ns != 0 && (member->hard || member->latency))
        return bh_err_set(err, BH_INVALID, "a multiplexed share is neither hard nor latency");
    if (member->gpus == 0 || member->weight == 0 || member->weight > BH_TIME_SLICES_WEIGHT_MAX)
        return bh_err_set(err, BH_INVALID, "a share of GPU time needs a GPU and 1 to %d parts",
                          BH_TIME_SLICES_WEIGHT_MAX);
    while (index < slices->count && slices->entity[index].taken)
        index++;
    if (index == BH_TIME_SLICES_MEMBERS_MAX)
        return bh_err_set(err, BH_FULL, "%d leases share GPUs on this node", BH_TIME_SLICES_MEMBERS_MAX);
    if (index == slices->count)
        slices->count++;
    slices->entity[index] = (struct entity){ .taken = true, .given = *member, .member = *member };
    slices_catch_up(slices, &slices->entity[index], now_ns, 0);
    *ret_index = index;
    slices_decide(slices, now_ns);
    return BH_OK;
}

void
bh_time_slices_leave(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index)
{
    *slices_entity_get(slices, index) = (struct entity){ 0 };
    slices_decide(slices, now_ns);
}

void
bh_time_slices_want(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index)
{
    struct entity *entity = slices_entity_get(slices, index);

    if (!slices_is_active(entity))
        slices_catch_up(slices, entity, now_ns, 2 * slices->round_ns);
    entity->wants = true;
    if (entity->idle_ns != 0) {
        entity->idle_ns = 0;
        entity->probe_ns = now_ns; /* enough of it */
    }
    slices_decide(slices, now_ns);
}

void
bh_time_slices_drained(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index)
{
    struct entity *entity = slices_entity_get(slices, index);

    if (entity->slice != BH_TIME_SLICE_ENDING)
        return;
    slices_be_over(slices, entity, now_ns);
    slices_decide(slices, now_ns);
}

void
bh_time_slices_finish(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index)
{
    struct entity *entity = slices_entity_get(slices, index);
    uint64_t before_ns = entity->until_ns;

    if (entity->slice != BH_TIME_SLICE_CONTENDED || entity->whole)
        return;
    entity->until_ns = now_ns;
    slices_decide(slices, now_ns);
    if (entity->slice == BH_TIME_SLICE_ENDING)
        bh_time_slices_drained(slices, now_ns, index);
    else if (entity->until_ns == before_ns)
        entity->until_ns++; /* the same lead over the others: announced anew all the same */
}

void
bh_time_slices_idle(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index)
{
    struct entity *entity = slices_entity_get(slices, index);

    if (entity->slice == BH_TIME_SLICE_CONTENDED && entity->whole) {
        entity->idle_ns = entity->idle_ns != 0 ? entity->idle_ns : now_ns + slices->rest_ns;
        entity->probing = true; /* until its rest is over: so it says when it is back */
    } else {
        entity->wants = false;
        if (entity->slice == BH_TIME_SLICE_OPEN || entity->slice == BH_TIME_SLICE_CONTENDED)
            slices_end(slices, entity, now_ns);
        else if (entity->released)
            slices_be_over(slices, entity, now_ns);
    }
    slices_decide(slices, now_ns);
}

void
bh_time_slices_pause(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index)
{
    struct entity *entity = slices_entity_get(slices, index);

    if (entity->paused)
        return;
    entity->paused = true;
    if (slices_is_on(entity))
        slices_end(slices, entity, now_ns);
    slices_decide(slices, now_ns);
}

void
bh_time_slices_resume(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index)
{
    struct entity *entity = slices_entity_get(slices, index);

    if (!entity->paused)
        return;
    if (entity->slice == BH_TIME_SLICE_ENDING)
        entity->until_ns = now_ns + slices->stuck_ns;
    else
        slices_catch_up(slices, entity, now_ns, 2 * slices->round_ns);
    entity->paused = false;
    slices_decide(slices, now_ns);
}

void
bh_time_slices_throttle(struct bh_time_slices *slices, uint64_t now_ns, uint32_t index, bool throttled)
{
    struct entity *entity = slices_entity_get(slices, index);

    slices_charge(slices, entity, now_ns); /* by its weight until now */
    entity->member = entity->given;
    if (throttled) {
        entity->member.weight = (entity->given.weight + THROTTLE - 1) / THROTTLE;
        entity->member.hard = true;
        entity->member.latency = false;
        entity->member.quantum_ns = 0;
    }
    slices_decide(slices, now_ns);
}

void
bh_time_slices_tick(struct bh_time_slices *slices, uint64_t now_ns)
{
    slices_decide(slices, now_ns);
}

/* ---- reading ---- */

uint64_t
bh_time_slices_next(const struct bh_time_slices *slices)
{
    uint64_t next = NEVER;

    for (uint32_t i = 0; i < slices->count; i++) {
        const struct entity *entity = &slices->entity[i];
        uint64_t at = NEVER;

        if (!entity->taken)
            continue;
        if (entity->slice == BH_TIME_SLICE_CONTENDED && entity->whole)
            at = slices_least(entity->until_ns, entity->idle_ns != 0 ? entity->idle_ns : entity->probe_ns);
        else if (entity->slice == BH_TIME_SLICE_CONTENDED || entity->slice == BH_TIME_SLICE_ENDING)
            at = entity->until_ns;
        else if (entity->slice == BH_TIME_SLICE_NONE && slices_does_want(entity) && entity->member.hard
                 && entity->rested_ns > slices->now_ns) /* else it waits for another's time slice */
            at = entity->rested_ns;
        if (at < next)
            next = at;
    }
    return next;
}

enum bh_time_slice
bh_time_slices_state(const struct bh_time_slices *slices, uint32_t index)
{
    const struct entity *entity = &slices->entity[index];

    BH_ASSERT(index < slices->count);
    if (entity->slice == BH_TIME_SLICE_CONTENDED && entity->whole && !entity->probing)
        return BH_TIME_SLICE_OPEN;
    return entity->released ? BH_TIME_SLICE_CONTENDED : entity->slice;
}

uint64_t
bh_time_slices_until_ns(const struct bh_time_slices *slices, uint32_t index)
{
    const struct entity *entity = &slices->entity[index];

    BH_ASSERT(index < slices->count);
    if (entity->slice != BH_TIME_SLICE_CONTENDED || entity->whole)
        return 0;
    for (uint32_t i = 0; i < slices->count && !entity->member.latency; i++)
        if (slices_meets(&slices->entity[i], entity) && slices->entity[i].member.latency)
            return 0;
    return entity->until_ns;
}

uint64_t
bh_time_slices_used_ns(const struct bh_time_slices *slices, uint32_t index)
{
    BH_ASSERT(index < slices->count);
    return slices->entity[index].used_ns;
}

uint64_t
bh_time_slices_granted_ns(const struct bh_time_slices *slices, uint64_t now_ns, uint32_t index)
{
    const struct entity *entity = &slices->entity[index];

    BH_ASSERT(index < slices->count);
    return entity->used_ns
           + (slices_is_on(entity) && now_ns > entity->since_ns ? now_ns - entity->since_ns : 0);
}

bool
bh_time_slices_is_stuck(const struct bh_time_slices *slices, uint32_t index)
{
    BH_ASSERT(index < slices->count);
    return slices->entity[index].stuck;
}
