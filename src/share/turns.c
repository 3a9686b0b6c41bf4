#include "share/turns.h"

#include <stdlib.h>

#include "base/assert.h"

#define ROUND_DEFAULT_NS UINT64_C(40000000)
#define STUCK_DEFAULT_NS UINT64_C(10000000000)
#define RETRY_NS UINT64_C(1000000000) /* to end a turn that was stuck */
#define REST_DEFAULT_NS UINT64_C(1000000000)
/* A turn is no shorter, however light its member: a hand-over costs some 60 us. */
#define TURN_LEAST_NS UINT64_C(2000000)
#define PROBE_NS UINT64_C(20000000) /* CONTENDED, of a quantum: who is idle says so within it */
#define LAST_NS UINT64_C(2000000000) /* and before its end, so that what was submitted ahead is done */
#define NEVER UINT64_MAX
#define THROTTLE 10
#define GPUS 32

/* `had` is what the member was charged, divided by its weight: ns x 4200 / parts.  Those that
 * meet on a GPU are compared by it.  It is made smaller for all before it can overflow. */
#define HAD_MAX (UINT64_C(1) << 62)

struct seat {
    bool taken, wants, stuck, paused;
    bool released; /* ENDING and stuck: it may submit, beside others */
    struct bh_turns_member given, member; /* as it joined; as it is treated now */
    enum bh_turn turn;
    uint64_t had, used_ns;
    uint64_t since_ns;  /* of the turn's grant; ENDING: of its last charge */
    uint64_t until_ns;  /* CONTENDED: its end; ENDING: when it counts as stuck, paused: as over;
                           stuck: when it is released or shut again */
    uint64_t rested_ns; /* hard: no turn before */
    bool whole;         /* CONTENDED: its turn is a quantum */
    bool probing;       /* of a quantum: it is asked whether it is idle */
    uint64_t probe_ns;  /* when that changes next */
    uint64_t idle_ns;   /* when its rest is over; 0: it is not idle */
};

struct bh_turns {
    uint64_t round_ns, stuck_ns, rest_ns;
    uint64_t now_ns;      /* when it was decided last */
    uint64_t level[GPUS]; /* of each GPU: the least `had` of those that want it, never less
                             than it was; the virtual time of fair queueing */
    uint32_t count;       /* seats that were ever taken */
    struct seat seat[BH_TURNS_MEMBERS_MAX];
};

struct bh_turns *
bh_turns_new(const struct bh_turns_options *options)
{
    struct bh_turns *turns = calloc(1, sizeof(*turns));

    BH_ASSERT(turns != NULL);
    turns->round_ns = options->round_ns != 0 ? options->round_ns : ROUND_DEFAULT_NS;
    turns->stuck_ns = options->stuck_ns != 0 ? options->stuck_ns : STUCK_DEFAULT_NS;
    turns->rest_ns = options->rest_ns != 0 ? options->rest_ns : REST_DEFAULT_NS;
    return turns;
}

void
bh_turns_free(struct bh_turns *turns)
{
    free(turns);
}

static struct seat *
seat_get(struct bh_turns *turns, uint32_t index)
{
    BH_ASSERT(index < turns->count);
    BH_ASSERT(turns->seat[index].taken);
    return &turns->seat[index];
}

static bool
meets(const struct seat *a, const struct seat *b)
{
    return a->taken && b->taken && a != b && (a->member.gpus & b->member.gpus) != 0;
}

static bool
is_on(const struct seat *seat)
{
    return seat->turn != BH_TURN_NONE;
}

static bool
does_want(const struct seat *seat)
{
    return seat->taken && seat->wants && !seat->paused;
}

static bool
is_active(const struct seat *seat)
{
    return does_want(seat) || (seat->taken && is_on(seat));
}

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- charging ---- */

static void
make_smaller(struct bh_turns *turns)
{
    uint64_t least = NEVER;

    for (uint32_t i = 0; i < turns->count; i++)
        if (turns->seat[i].taken && turns->seat[i].had < least)
            least = turns->seat[i].had;
    for (uint32_t i = 0; i < turns->count; i++)
        turns->seat[i].had -= turns->seat[i].taken ? least : turns->seat[i].had;
    for (uint32_t g = 0; g < GPUS; g++)
        turns->level[g] -= turns->level[g] < least ? turns->level[g] : least;
}

/* Charge what the turn took up to now, as often as anybody looks: so a long one weighs at
 * once, and is charged for once. */
static void
charge(struct bh_turns *turns, struct seat *seat, uint64_t now_ns)
{
    uint64_t took = is_on(seat) && now_ns > seat->since_ns ? now_ns - seat->since_ns : 0;

    seat->since_ns = now_ns;
    seat->used_ns += took;
    seat->had += took * BH_TURNS_WEIGHT_MAX / seat->member.weight;
    if (seat->member.hard && took > 0)
        seat->rested_ns =
            (seat->rested_ns > now_ns - took ? seat->rested_ns : now_ns - took) +
            took * BH_TURNS_WEIGHT_MAX / seat->member.weight;
    if (seat->had > HAD_MAX)
        make_smaller(turns);
}

static void
raise_level(struct bh_turns *turns, uint32_t gpu)
{
    uint64_t least = NEVER;

    for (uint32_t i = 0; i < turns->count; i++) {
        const struct seat *seat = &turns->seat[i];

        if (is_active(seat) && (seat->member.gpus >> gpu & 1) != 0 && seat->had < least)
            least = seat->had;
    }
    if (least != NEVER && least > turns->level[gpu])
        turns->level[gpu] = least;
}

static void
raise_levels(struct bh_turns *turns)
{
    for (uint32_t g = 0; g < GPUS; g++)
        raise_level(turns, g);
}

/* Who was away has saved up no more than `most` against those that were not, as they stand
 * now. */
static void
catch_up(struct bh_turns *turns, struct seat *seat, uint64_t now_ns, uint64_t most)
{
    for (uint32_t i = 0; i < turns->count; i++)
        if (turns->seat[i].taken)
            charge(turns, &turns->seat[i], now_ns);
    raise_levels(turns);
    for (uint32_t g = 0; g < GPUS; g++)
        if ((seat->member.gpus >> g & 1) != 0 && turns->level[g] > most &&
            seat->had < turns->level[g] - most)
            seat->had = turns->level[g] - most;
}

/* ---- whose turn ---- */

static bool
is_waiting(const struct seat *seat, uint64_t now_ns)
{
    return does_want(seat) && !is_on(seat) &&
           (!seat->member.hard || seat->rested_ns <= now_ns);
}

/* Multiplexed, as are all that want its GPUs. */
static bool
is_whole(const struct bh_turns *turns, const struct seat *seat)
{
    if (seat->member.quantum_ns == 0)
        return false;
    for (uint32_t i = 0; i < turns->count; i++)
        if (meets(&turns->seat[i], seat) && is_active(&turns->seat[i]) &&
            turns->seat[i].member.quantum_ns == 0)
            return false;
    return true;
}

/* How long until it is a turn ahead of the first that waits for its GPUs: as far as it falls
 * behind while the others have theirs.  So what the last turn took too long is taken from the
 * next. */
static uint64_t
length_ns(const struct bh_turns *turns, const struct seat *seat, uint64_t now_ns)
{
    uint64_t weights = seat->member.weight, least = NEVER, lead, length;
    uint64_t all = 1, round;

    for (uint32_t i = 0; i < turns->count; i++) {
        const struct seat *other = &turns->seat[i];

        if (!meets(other, seat) || !is_active(other))
            continue;
        weights += other->member.weight;
        all++;
        if (is_waiting(other, now_ns) && other->had < least)
            least = other->had;
    }
    if (seat->member.hard && weights < BH_TURNS_WEIGHT_MAX)
        weights = BH_TURNS_WEIGHT_MAX;
    round = is_whole(turns, seat) ? all * seat->member.quantum_ns : turns->round_ns;
    if (least == NEVER)
        return round * seat->member.weight / weights;
    lead = round * BH_TURNS_WEIGHT_MAX / weights;
    lead -= lead * seat->member.weight / weights;
    length = least + lead > seat->had
                 ? (least + lead - seat->had) * seat->member.weight / BH_TURNS_WEIGHT_MAX
                 : 0;
    return length > TURN_LEAST_NS ? length : TURN_LEAST_NS;
}

/* A latency member goes first until it is a round ahead of the other. */
static bool
goes_before(const struct bh_turns *turns, const struct seat *a, const struct seat *b)
{
    uint64_t lead_a = a->member.latency ? turns->round_ns : 0;
    uint64_t lead_b = b->member.latency ? turns->round_ns : 0;

    if (a->had + lead_b != b->had + lead_a)
        return a->had + lead_b < b->had + lead_a;
    return a < b;
}

/* The waiting member that comes first of those in no GPU of `closed`. */
static struct seat *
first_waiting(struct bh_turns *turns, uint64_t now_ns, uint32_t closed)
{
    struct seat *first = NULL;

    for (uint32_t i = 0; i < turns->count; i++) {
        struct seat *seat = &turns->seat[i];

        if (is_waiting(seat, now_ns) && (seat->member.gpus & closed) == 0 &&
            (first == NULL || goes_before(turns, seat, first)))
            first = seat;
    }
    return first;
}

static bool
is_kept_out(const struct bh_turns *turns, const struct seat *seat)
{
    for (uint32_t i = 0; i < turns->count; i++)
        if (meets(&turns->seat[i], seat) && is_on(&turns->seat[i]) && !turns->seat[i].stuck)
            return true;
    return false;
}

static void
grant(struct bh_turns *turns, struct seat *seat, uint64_t now_ns)
{
    seat->turn = BH_TURN_OPEN;
    seat->whole = false; /* a quantum begins when somebody waits */
    seat->since_ns = now_ns;
    seat->until_ns = now_ns + length_ns(turns, seat, now_ns);
}

static void
end(struct bh_turns *turns, struct seat *seat, uint64_t now_ns)
{
    charge(turns, seat, now_ns);
    seat->turn = BH_TURN_ENDING;
    seat->released = false;
    seat->wants = seat->wants && seat->idle_ns == 0;
    seat->idle_ns = 0;
    seat->until_ns = now_ns + (seat->paused ? BH_TURNS_PAUSE_NS : turns->stuck_ns);
}

/* Nothing of it is left, or nobody will say so. */
static void
be_over(struct bh_turns *turns, struct seat *seat, uint64_t now_ns)
{
    charge(turns, seat, now_ns);
    raise_levels(turns); /* while it still counts */
    seat->turn = BH_TURN_NONE;
    seat->stuck = seat->released = false;
}

/* Whether one that waits should have `holder`'s GPUs when its time is over; and for whom it
 * need not be over. */
static bool
should_end(struct bh_turns *turns, struct seat *holder, uint64_t now_ns)
{
    for (uint32_t i = 0; i < turns->count; i++) {
        const struct seat *other = &turns->seat[i];

        if (!meets(other, holder) || !is_waiting(other, now_ns))
            continue;
        if (now_ns >= holder->until_ns && goes_before(turns, other, holder))
            return true;
        if (other->member.latency && !holder->member.latency &&
            goes_before(turns, other, holder))
            return true;
    }
    return false;
}

static bool
is_contended(const struct bh_turns *turns, const struct seat *holder)
{
    for (uint32_t i = 0; i < turns->count; i++)
        if (meets(&turns->seat[i], holder) && does_want(&turns->seat[i]) &&
            !is_on(&turns->seat[i]))
            return true;
    return holder->member.hard;
}

static void
contend(struct bh_turns *turns, struct seat *seat, uint64_t now_ns)
{
    bool contended = is_contended(turns, seat), whole = contended && is_whole(turns, seat);

    if (contended && (seat->turn == BH_TURN_OPEN || whole != seat->whole))
        seat->until_ns = now_ns + length_ns(turns, seat, now_ns);
    if (!whole || !seat->whole) {
        seat->idle_ns = 0;
        seat->probing = false;
        seat->probe_ns = now_ns + turns->rest_ns;
    }
    seat->turn = contended ? BH_TURN_CONTENDED : BH_TURN_OPEN;
    seat->whole = whole;
}

static void
probe(const struct bh_turns *turns, struct seat *seat, uint64_t now_ns)
{
    uint64_t last_ns = seat->until_ns - least(LAST_NS, seat->member.quantum_ns / 8);

    if (!seat->whole || seat->idle_ns != 0)
        return;
    if (now_ns >= last_ns) {
        seat->probing = true;
        seat->probe_ns = seat->until_ns;
    } else if (now_ns >= seat->probe_ns) {
        seat->probing = !seat->probing;
        seat->probe_ns = now_ns + (seat->probing ? PROBE_NS : turns->rest_ns);
    }
    seat->probe_ns = now_ns < last_ns ? least(seat->probe_ns, last_ns) : seat->probe_ns;
}

/* What does not end may wait for what is not submitted yet: a collective of several processes or
 * GPUs, of which the turn's end cut off a part.  So it goes on beside the others, and now and then
 * it is tried whether it can end.  Not one that is throttled: it gets no more for being stuck. */
static void
be_stuck(struct bh_turns *turns, struct seat *seat, uint64_t now_ns)
{
    bool throttled = seat->member.hard && !seat->given.hard;

    seat->stuck = true;
    seat->released = !seat->released && !throttled;
    seat->until_ns =
        now_ns + (seat->released ? turns->stuck_ns : least(turns->stuck_ns, RETRY_NS));
}

static void
look_at(struct bh_turns *turns, struct seat *seat, uint64_t now_ns)
{
    if (seat->turn == BH_TURN_ENDING && now_ns >= seat->until_ns) {
        if (seat->paused)
            be_over(turns, seat, now_ns);
        else
            be_stuck(turns, seat, now_ns);
    }
    if (seat->turn != BH_TURN_OPEN && seat->turn != BH_TURN_CONTENDED)
        return;
    charge(turns, seat, now_ns);
    contend(turns, seat, now_ns);
    if (should_end(turns, seat, now_ns) || (seat->idle_ns != 0 && now_ns >= seat->idle_ns) ||
        (seat->member.hard && now_ns >= seat->until_ns && seat->rested_ns > now_ns))
        end(turns, seat, now_ns);
    else if (now_ns >= seat->until_ns)
        seat->until_ns = now_ns + length_ns(turns, seat, now_ns);
    probe(turns, seat, now_ns);
}

/* End what is due, then give turns in order: who cannot have its turn yet keeps its GPUs from
 * those that come after it, so that one that spans several gets them all in the end. */
static void
decide(struct bh_turns *turns, uint64_t now_ns)
{
    uint32_t closed = 0;
    struct seat *seat;

    turns->now_ns = now_ns;
    for (uint32_t i = 0; i < turns->count; i++)
        if (turns->seat[i].taken)
            look_at(turns, &turns->seat[i], now_ns);
    raise_levels(turns);
    while ((seat = first_waiting(turns, now_ns, closed)) != NULL) {
        closed |= seat->member.gpus;
        if (!is_kept_out(turns, seat))
            grant(turns, seat, now_ns);
    }
    for (uint32_t i = 0; i < turns->count; i++) {
        seat = &turns->seat[i];
        if (seat->turn == BH_TURN_OPEN || seat->turn == BH_TURN_CONTENDED)
            contend(turns, seat, now_ns);
    }
}

/* ---- what happens ---- */

bh_rc
bh_turns_join(struct bh_turns *turns, uint64_t now_ns, const struct bh_turns_member *member,
              uint32_t *ret_index, struct bh_err *err)
{
    uint32_t index = 0;

    if (member->quantum_ns != 0 && (member->hard || member->latency))
        return bh_err_set(err, BH_INVALID, "a multiplexed share is neither hard nor latency");
    if (member->gpus == 0 || member->weight == 0 || member->weight > BH_TURNS_WEIGHT_MAX)
        return bh_err_set(err, BH_INVALID, "a share of GPU time needs a GPU and 1 to %d parts",
                          BH_TURNS_WEIGHT_MAX);
    while (index < turns->count && turns->seat[index].taken)
        index++;
    if (index == BH_TURNS_MEMBERS_MAX)
        return bh_err_set(err, BH_FULL, "%d leases share GPUs on this node",
                          BH_TURNS_MEMBERS_MAX);
    if (index == turns->count)
        turns->count++;
    turns->seat[index] = (struct seat) { .taken = true, .given = *member, .member = *member };
    catch_up(turns, &turns->seat[index], now_ns, 0);
    *ret_index = index;
    decide(turns, now_ns);
    return BH_OK;
}

void
bh_turns_leave(struct bh_turns *turns, uint64_t now_ns, uint32_t index)
{
    *seat_get(turns, index) = (struct seat) { 0 };
    decide(turns, now_ns);
}

void
bh_turns_want(struct bh_turns *turns, uint64_t now_ns, uint32_t index)
{
    struct seat *seat = seat_get(turns, index);

    if (!is_active(seat))
        catch_up(turns, seat, now_ns, 2 * turns->round_ns);
    seat->wants = true;
    if (seat->idle_ns != 0) {
        seat->idle_ns = 0;
        seat->probe_ns = now_ns; /* enough of it */
    }
    decide(turns, now_ns);
}

void
bh_turns_drained(struct bh_turns *turns, uint64_t now_ns, uint32_t index)
{
    struct seat *seat = seat_get(turns, index);

    if (seat->turn != BH_TURN_ENDING)
        return;
    be_over(turns, seat, now_ns);
    decide(turns, now_ns);
}

void
bh_turns_finish(struct bh_turns *turns, uint64_t now_ns, uint32_t index)
{
    struct seat *seat = seat_get(turns, index);
    uint64_t before_ns = seat->until_ns;

    if (seat->turn != BH_TURN_CONTENDED || seat->whole)
        return;
    seat->until_ns = now_ns;
    decide(turns, now_ns);
    if (seat->turn == BH_TURN_ENDING)
        bh_turns_drained(turns, now_ns, index);
    else if (seat->until_ns == before_ns)
        seat->until_ns++; /* the same lead over the others: told anew all the same */
}

void
bh_turns_idle(struct bh_turns *turns, uint64_t now_ns, uint32_t index)
{
    struct seat *seat = seat_get(turns, index);

    if (seat->turn == BH_TURN_CONTENDED && seat->whole) {
        seat->idle_ns = seat->idle_ns != 0 ? seat->idle_ns : now_ns + turns->rest_ns;
        seat->probing = true; /* until its rest is over: so it says when it is back */
    } else {
        seat->wants = false;
        if (seat->turn == BH_TURN_OPEN || seat->turn == BH_TURN_CONTENDED)
            end(turns, seat, now_ns);
        else if (seat->released)
            be_over(turns, seat, now_ns);
    }
    decide(turns, now_ns);
}

void
bh_turns_pause(struct bh_turns *turns, uint64_t now_ns, uint32_t index)
{
    struct seat *seat = seat_get(turns, index);

    if (seat->paused)
        return;
    seat->paused = true;
    if (is_on(seat))
        end(turns, seat, now_ns);
    decide(turns, now_ns);
}

void
bh_turns_resume(struct bh_turns *turns, uint64_t now_ns, uint32_t index)
{
    struct seat *seat = seat_get(turns, index);

    if (!seat->paused)
        return;
    if (seat->turn == BH_TURN_ENDING)
        seat->until_ns = now_ns + turns->stuck_ns;
    else
        catch_up(turns, seat, now_ns, 2 * turns->round_ns);
    seat->paused = false;
    decide(turns, now_ns);
}

void
bh_turns_throttle(struct bh_turns *turns, uint64_t now_ns, uint32_t index, bool throttled)
{
    struct seat *seat = seat_get(turns, index);

    charge(turns, seat, now_ns); /* by the weight that it had */
    seat->member = seat->given;
    if (throttled) {
        seat->member.weight = (seat->given.weight + THROTTLE - 1) / THROTTLE;
        seat->member.hard = true;
        seat->member.latency = false;
        seat->member.quantum_ns = 0;
    }
    decide(turns, now_ns);
}

void
bh_turns_tick(struct bh_turns *turns, uint64_t now_ns)
{
    decide(turns, now_ns);
}

/* ---- reading ---- */

uint64_t
bh_turns_next(const struct bh_turns *turns)
{
    uint64_t next = NEVER;

    for (uint32_t i = 0; i < turns->count; i++) {
        const struct seat *seat = &turns->seat[i];
        uint64_t at = NEVER;

        if (!seat->taken)
            continue;
        if (seat->turn == BH_TURN_CONTENDED && seat->whole)
            at = least(seat->until_ns, seat->idle_ns != 0 ? seat->idle_ns : seat->probe_ns);
        else if (seat->turn == BH_TURN_CONTENDED || seat->turn == BH_TURN_ENDING)
            at = seat->until_ns;
        else if (seat->turn == BH_TURN_NONE && does_want(seat) && seat->member.hard &&
                 seat->rested_ns > turns->now_ns) /* else it waits for another's turn */
            at = seat->rested_ns;
        if (at < next)
            next = at;
    }
    return next;
}

enum bh_turn
bh_turns_state(const struct bh_turns *turns, uint32_t index)
{
    const struct seat *seat = &turns->seat[index];

    BH_ASSERT(index < turns->count);
    if (seat->turn == BH_TURN_CONTENDED && seat->whole && !seat->probing)
        return BH_TURN_OPEN;
    return seat->released ? BH_TURN_CONTENDED : seat->turn;
}

uint64_t
bh_turns_until_ns(const struct bh_turns *turns, uint32_t index)
{
    const struct seat *seat = &turns->seat[index];

    BH_ASSERT(index < turns->count);
    if (seat->turn != BH_TURN_CONTENDED || seat->whole)
        return 0;
    for (uint32_t i = 0; i < turns->count && !seat->member.latency; i++)
        if (meets(&turns->seat[i], seat) && turns->seat[i].member.latency)
            return 0;
    return seat->until_ns;
}

uint64_t
bh_turns_used_ns(const struct bh_turns *turns, uint32_t index)
{
    BH_ASSERT(index < turns->count);
    return turns->seat[index].used_ns;
}

uint64_t
bh_turns_had_ns(const struct bh_turns *turns, uint64_t now_ns, uint32_t index)
{
    const struct seat *seat = &turns->seat[index];

    BH_ASSERT(index < turns->count);
    return seat->used_ns + (is_on(seat) && now_ns > seat->since_ns ? now_ns - seat->since_ns : 0);
}

bool
bh_turns_is_stuck(const struct bh_turns *turns, uint32_t index)
{
    BH_ASSERT(index < turns->count);
    return turns->seat[index].stuck;
}
