/* The engine's asserts find a state that cannot be, before it does harm.
 *
 * A random history runs.  At random moments a child process spoils one value of the engine's
 * state and plays on, beside a twin that was left as it was.  Then the plant is
 *
 *   caught  when an assert fails, and all that came out before is what came out of the twin
 *   wrong   when something else came out first, or the child crashed or hung
 *   silent  when nothing differs: it does not count
 *
 * At least 90 of 100 plants that count must be caught.
 *
 *   planted_engine_test [plants [seed [verbose]]] */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/test.h"
#include "engine/state/slots.h"
#include "tests/evidence/play.h"

enum { EVENTS_AFTER = 400, EVENTS_BETWEEN = 60, PLANTS_EACH = 16, HANG_S = 1, NEEDED_PERCENT = 90 };

static uint64_t plants_wanted = 600, seed_wanted = 1;
static bool verbose;

/* ---- what is spoilt ---- */

/* Where a value is: in a row of a table (enum table_kind), or in one of these. */
enum object { HEAD = TABLES, CORE, HINTS, CLAIM, CLASS_HINT, LEASE_HINT, TENANT_HINT, NODE_HINT, LINK };

/* How: each makes a value that the state could not have there. */
enum way {
    MORE = 1,     /* one more */
    LESS = 2,     /* one less */
    NONE = 4,     /* zero, where there is something */
    OTHER = 8,    /* that of a different row */
    SELF = 16,    /* the row's own slot */
    FREED = 32,   /* a slot that no row has */
    BEYOND = 64,  /* past all that it may be */
    FUTURE = 128, /* an hour after now */
    FLIP = 256    /* the other of true and false */
};
enum { WAYS = 9 };

/* What fields of a kind are spoilt by. */
enum shape {
    AMOUNT = MORE | LESS | NONE, /* a count or sum of what there is */
    PART = AMOUNT | BEYOND,      /* one that has a most */
    SLOT = OTHER | FREED | NONE, /* the slot of a row */
    CHAIN = SELF | FREED | NONE, /* the next slot of a list */
    ID = MORE | OTHER | NONE     /* a row's own number */
};

static const char *const way_names[WAYS] = { "more",  "less",   "none",   "other", "self",
                                             "freed", "beyond", "future", "flip" };

struct field {
    const char *name;
    uint32_t object, offset, size, ways;
};

#define FIELD(object, type, member, ways)                                                                    \
    {                                                                                                        \
#type "." #member, object, offsetof(struct type, member), sizeof(((struct type *)0)->member), ways   \
    }

static const struct field fields[] = {
    FIELD(TABLE_LEASE, lease, id, ID),
    FIELD(TABLE_LEASE, lease, next_free, SELF),
    FIELD(TABLE_LEASE, lease, job, SLOT),
    FIELD(TABLE_LEASE, lease, tenant, OTHER | NONE),
    FIELD(TABLE_LEASE, lease, node, SLOT),
    FIELD(TABLE_LEASE, lease, order, MORE | NONE),
    FIELD(TABLE_LEASE, lease, since_ns, FUTURE),
    FIELD(TABLE_LEASE, lease, kill_ns, FUTURE),
    FIELD(TABLE_LEASE, lease, placements[0].gpu, OTHER | NONE | BEYOND),
    FIELD(TABLE_LEASE, lease, placements[0].profile, OTHER | NONE | BEYOND),
    FIELD(TABLE_LEASE, lease, placements[0].start, MORE),
    FIELD(TABLE_LEASE, lease, parts[0], SLOT),
    FIELD(TABLE_LEASE, lease, count, MORE | LESS | BEYOND),
    FIELD(TABLE_LEASE, lease, state, MORE | LESS | OTHER | BEYOND | NONE),
    FIELD(TABLE_LEASE, lease, grade, BEYOND),
    FIELD(TABLE_LEASE, lease, waiting, MORE | OTHER | BEYOND | NONE),
    FIELD(TABLE_LEASE, lease, stop_cause, BEYOND),
    FIELD(TABLE_LEASE, lease, member, MORE),
    FIELD(TABLE_LEASE, lease, next_member, CHAIN),
    FIELD(TABLE_LEASE, lease, next_leaving, CHAIN),
    FIELD(TABLE_LEASE, lease, prev_leaving, CHAIN),
    FIELD(TABLE_PARTITION, partition, id, ID),
    FIELD(TABLE_PARTITION, partition, gpu, SLOT),
    FIELD(TABLE_PARTITION, partition, next_on_gpu, CHAIN),
    FIELD(TABLE_PARTITION, partition, lease, SLOT),
    FIELD(TABLE_PARTITION, partition, tenant, OTHER | NONE | BEYOND),
    FIELD(TABLE_PARTITION, partition, profile, OTHER | BEYOND),
    FIELD(TABLE_PARTITION, partition, order, MORE | NONE),
    FIELD(TABLE_PARTITION, partition, state, MORE | LESS | OTHER | BEYOND),
    FIELD(TABLE_PARTITION, partition, waiting, OTHER | BEYOND | NONE),
    FIELD(TABLE_PARTITION, partition, gone, FLIP),
    FIELD(TABLE_PARTITION, partition, stuck, FLIP),
    FIELD(TABLE_PARTITION, partition, unclean, BEYOND),
    FIELD(TABLE_PARTITION, partition, evict, BEYOND),
    FIELD(TABLE_PARTITION, partition, start, MORE | BEYOND),
    FIELD(TABLE_PARTITION, partition, unheard, FLIP),
    FIELD(TABLE_GPU, gpu, id, OTHER | NONE),
    FIELD(TABLE_GPU, gpu, node, SLOT),
    FIELD(TABLE_GPU, gpu, next_on_node, CHAIN),
    FIELD(TABLE_GPU, gpu, model, MORE | BEYOND),
    FIELD(TABLE_GPU, gpu, first_partition, SLOT),
    FIELD(TABLE_GPU, gpu, idle, MORE | LESS),
    FIELD(TABLE_GPU, gpu, leased, MORE | LESS),
    FIELD(TABLE_GPU, gpu, stuck, MORE | LESS),
    FIELD(TABLE_GPU, gpu, occupancy.units, MORE | NONE),
    FIELD(TABLE_GPU, gpu, occupancy.slices, MORE | LESS),
    FIELD(TABLE_GPU, gpu, occupancy.whole, FLIP),
    FIELD(TABLE_GPU, gpu, occupancy.shares, MORE | NONE),
    FIELD(TABLE_GPU, gpu, fenced, BEYOND),
    FIELD(TABLE_GPU, gpu, counted, MORE | NONE | BEYOND),
    FIELD(TABLE_GPU, gpu, held, BEYOND),
    FIELD(TABLE_GPU, gpu, pooled, FLIP),
    FIELD(TABLE_GPU, gpu, pooled_as.units, MORE),
    FIELD(TABLE_GPU, gpu, gpu_group, SLOT),
    FIELD(TABLE_GPU, gpu, next_in_group, CHAIN),
    FIELD(TABLE_GPU, gpu, prev_in_group, CHAIN),
    FIELD(TABLE_GPU, gpu, claimed, MORE | LESS),
    FIELD(TABLE_GPU, gpu, leased_compute, MORE | LESS),
    FIELD(TABLE_GPU, gpu, unusable_compute, MORE | LESS),
    FIELD(TABLE_GPU, gpu, dedicated_to, OTHER),
    FIELD(TABLE_GPU, gpu, wanted.count, BEYOND),
    FIELD(TABLE_GPU, gpu, wanted.mode, BEYOND),
    FIELD(TABLE_GPU, gpu, gpu_layout, MORE | BEYOND),
    FIELD(TABLE_GPU, gpu, share_scale, MORE | NONE),
    FIELD(TABLE_GPU, gpu, health.state, BEYOND),
    FIELD(TABLE_GPU, gpu, health.waiting, BEYOND | NONE),
    FIELD(TABLE_GPU, gpu, health.order, MORE | NONE),
    FIELD(TABLE_GPU, gpu, health.served, FLIP),
    FIELD(TABLE_NODE, node, id, OTHER | NONE),
    FIELD(TABLE_NODE, node, first_gpu, SLOT),
    FIELD(TABLE_NODE, node, gpu_count, AMOUNT),
    FIELD(TABLE_NODE, node, leases, AMOUNT),
    FIELD(TABLE_NODE, node, lasting, MORE | LESS),
    FIELD(TABLE_NODE, node, empty, PART),
    FIELD(TABLE_NODE, node, open, PART),
    FIELD(TABLE_NODE, node, models, NONE | BEYOND),
    FIELD(TABLE_NODE, node, up, BEYOND),
    FIELD(TABLE_NODE, node, held, BEYOND),
    FIELD(TABLE_NODE, node, cpu_used, PART),
    FIELD(TABLE_NODE, node, memory_used, PART),
    FIELD(TABLE_NODE, node, reboots, MORE | BEYOND),
    FIELD(TABLE_NODE, node, dedicated_to, SLOT),
    FIELD(TABLE_NODE, node, dedicating, MORE | NONE),
    FIELD(TABLE_NODE, node, unchecked, BEYOND),
    FIELD(TABLE_JOB, job, id, ID),
    FIELD(TABLE_JOB, job, tenant, SLOT),
    FIELD(TABLE_JOB, job, sku, SLOT),
    FIELD(TABLE_JOB, job, class, SLOT),
    FIELD(TABLE_JOB, job, lease, SLOT),
    FIELD(TABLE_JOB, job, next, CHAIN),
    FIELD(TABLE_JOB, job, prev, CHAIN),
    FIELD(TABLE_JOB, job, sequence, OTHER | NONE | FUTURE),
    FIELD(TABLE_JOB, job, submitted_ns, FUTURE),
    FIELD(TABLE_JOB, job, started_ns, FUTURE),
    FIELD(TABLE_JOB, job, claims_window, FUTURE),
    FIELD(TABLE_JOB, job, count, MORE | NONE | BEYOND),
    FIELD(TABLE_JOB, job, kind, BEYOND),
    FIELD(TABLE_JOB, job, priority, NONE | BEYOND),
    FIELD(TABLE_JOB, job, contract, BEYOND),
    FIELD(TABLE_JOB, job, state, MORE | LESS | OTHER | BEYOND),
    FIELD(TABLE_JOB, job, cause, BEYOND),
    FIELD(TABLE_JOB, job, verdict, BEYOND),
    FIELD(TABLE_JOB, job, gang, MORE | NONE | BEYOND),
    FIELD(TABLE_CLASS, class, id, ID),
    FIELD(TABLE_CLASS, class, head, SLOT),
    FIELD(TABLE_CLASS, class, tail, SLOT),
    FIELD(TABLE_CLASS, class, jobs, AMOUNT),
    FIELD(TABLE_CLASS, class, tenant, SLOT),
    FIELD(TABLE_CLASS, class, sku, SLOT),
    FIELD(TABLE_CLASS, class, principal, OTHER),
    FIELD(TABLE_CLASS, class, count, MORE | NONE),
    FIELD(TABLE_CLASS, class, gang, MORE | NONE),
    FIELD(TABLE_CLASS, class, priority, OTHER | BEYOND),
    FIELD(TABLE_CLASS, class, hold, FLIP),
    FIELD(TABLE_CLASS, class, cpu_milli, OTHER),
    FIELD(TABLE_CLASS, class, avoid_generation, FUTURE),
    FIELD(TABLE_TENANT, tenant, id, ID),
    FIELD(TABLE_TENANT, tenant, parent, OTHER | SELF | FREED),
    FIELD(TABLE_TENANT, tenant, used, PART),
    FIELD(TABLE_TENANT, tenant, used_own, MORE | LESS | BEYOND),
    FIELD(TABLE_TENANT, tenant, cost, MORE | LESS | BEYOND),
    FIELD(TABLE_TENANT, tenant, dedicated_parts, MORE | BEYOND),
    FIELD(TABLE_TENANT, tenant, usage_ns, FUTURE),
    FIELD(TABLE_TENANT, tenant, quotas[0].used, MORE | LESS | BEYOND),
    FIELD(TABLE_TENANT, tenant, quotas[0].scope, BEYOND),
    FIELD(TABLE_TENANT, tenant, quota_count, BEYOND),
    FIELD(TABLE_TENANT, tenant, children, AMOUNT),
    FIELD(TABLE_TENANT, tenant, jobs, AMOUNT),
    FIELD(TABLE_TENANT, tenant, running, AMOUNT),
    FIELD(TABLE_TENANT, tenant, pending, AMOUNT),
    FIELD(TABLE_TENANT, tenant, metered, SLOT),
    FIELD(TABLE_TENANT, tenant, boundary, BEYOND),
    FIELD(TABLE_TENANT, tenant, period, BEYOND),
    FIELD(TABLE_TENANT, tenant, removed, BEYOND),
    FIELD(TABLE_METERED, metered, rate_compute, MORE | LESS | BEYOND),
    FIELD(TABLE_METERED, metered, rate_memory, MORE | LESS | BEYOND),
    FIELD(TABLE_METERED, metered, since_ns, FUTURE),
    FIELD(TABLE_SKU, sku, id, OTHER | NONE),
    FIELD(TABLE_SKU, sku, models[0], OTHER | BEYOND),
    FIELD(TABLE_SKU, sku, profiles[0], OTHER | BEYOND),
    FIELD(TABLE_SKU, sku, equivalents[0], AMOUNT),
    FIELD(TABLE_SKU, sku, model_count, BEYOND),
    FIELD(TABLE_SKU, sku, jobs, AMOUNT),
    FIELD(TABLE_SKU, sku, grade, BEYOND),
    FIELD(TABLE_GPU_GROUP, gpu_group, model, MORE),
    FIELD(TABLE_GPU_GROUP, gpu_group, gpus, MORE | LESS),
    FIELD(TABLE_GPU_GROUP, gpu_group, first, SLOT),
    FIELD(TABLE_GPU_GROUP, gpu_group, occupancy.units, MORE | NONE),
    FIELD(CLAIM, claim, job, SLOT),
    FIELD(CLAIM, claim, count, PART),
    FIELD(CLAIM, claim, at_ns, NONE | LESS),
    FIELD(CLAIM, claim, equivalent, AMOUNT),
    FIELD(CLAIM, claim, placements[0].gpu, NONE | OTHER | BEYOND),
    FIELD(CLAIM, claim, placements[0].profile, NONE | OTHER | BEYOND),
    FIELD(CORE, core, next_lease, LESS | NONE),
    FIELD(CORE, core, next_partition, LESS | NONE),
    FIELD(CORE, core, next_sequence, LESS | NONE),
    FIELD(CORE, core, generation, LESS | NONE),
    FIELD(CORE, core, ended_head, FREED | NONE),
    FIELD(CORE, core, ended_count, MORE | LESS),
    FIELD(CORE, core, pending, AMOUNT),
    FIELD(CORE, core, pending_members, AMOUNT),
    FIELD(CORE, core, dedicated, AMOUNT),
    FIELD(CORE, core, withholders, AMOUNT),
    FIELD(CORE, core, offered[BH_GPU_H100_80GB], AMOUNT),
    FIELD(CORE, core, empty[BH_GPU_H100_80GB], PART),
    FIELD(CORE, core, open[BH_GPU_H100_80GB], PART),
    FIELD(CORE, core, used, AMOUNT),
    FIELD(CORE, core, used_models[BH_GPU_H100_80GB], AMOUNT),
    FIELD(CORE, core, window, NONE),
    FIELD(CORE, core, preemptible_jobs[2], AMOUNT),
    FIELD(CORE, core, claim_count, PART),
    FIELD(CORE, core, reserved, PART),
    FIELD(CORE, core, suspended, AMOUNT),
    FIELD(CORE, core, unchecked, MORE | LESS | BEYOND),
    FIELD(CORE, core, leaving, FREED | NONE),
    FIELD(CORE, core, declared, AMOUNT),
    FIELD(CORE, core, to_service, AMOUNT),
    FIELD(CORE, core, pool_count, BEYOND),
    FIELD(CORE, core, pools[0].capacity.gpus, AMOUNT),
    FIELD(CORE, core, pools[0].asked_sum, MORE | NONE),
    FIELD(CORE, core, demand.sum, AMOUNT),
    FIELD(CORE, core, demand.count, MORE | BEYOND),
    FIELD(CORE, core, shapes.wanted, AMOUNT),
    FIELD(CORE, core, totals.rate_physical, LESS | NONE),
    FIELD(CORE, core, totals.rate_leased_compute, MORE | LESS | BEYOND),
    FIELD(CORE, core, totals.rate_unusable_compute, MORE | LESS | BEYOND),
    FIELD(CORE, core, settings.order, BEYOND),
    FIELD(CORE, core, settings.assumed_run_ns, NONE),
    FIELD(CORE, core, half_life_began_ns, FUTURE),
    FIELD(HINTS, hints, wake_ns, NONE | FUTURE),
    FIELD(HINTS, hints, due_ns, FUTURE),
    FIELD(HINTS, hints, reserved_until_ns, FUTURE | NONE),
    FIELD(HINTS, hints, hopeless_ns, FUTURE),
    FIELD(HINTS, hints, swept, FLIP),
    FIELD(HINTS, hints, queue_count, BEYOND),
    FIELD(CLASS_HINT, hint, generation, FUTURE),
    FIELD(CLASS_HINT, hint, until_ns, FUTURE),
    FIELD(CLASS_HINT, hint, blocked_at, FUTURE),
    FIELD(CLASS_HINT, hint, within, FREED),
    FIELD(TENANT_HINT, tenant_hint, changes, FUTURE),
    FIELD(TENANT_HINT, tenant_hint, first, SLOT),
    FIELD(TENANT_HINT, tenant_hint, last, SLOT),
    FIELD(LINK, preemptible, next, CHAIN),
    FIELD(LINK, preemptible, prev, CHAIN),
    FIELD(LINK, preemptible, since_ns, FUTURE),
    FIELD(NODE_HINT, node_hint, end_ns, FUTURE),
    FIELD(HEAD, table, high, LESS | NONE),
    FIELD(HEAD, table, live, AMOUNT),
    FIELD(HEAD, table, free_head, FREED | MORE),
};

/* One way to spoil one field. */
struct plant {
    const struct field *field;
    uint32_t way; /* its bit's number */
    uint32_t caught, wrong, silent;
};

enum { PLANTS_MAX = BH_COUNT(fields) * WAYS };
static struct plant plants[PLANTS_MAX];
static uint32_t plant_count;

static void
list_plants(void)
{
    for (size_t i = 0; i < BH_COUNT(fields); i++)
        for (uint32_t way = 0; way < WAYS; way++)
            if (fields[i].ways >> way & 1)
                plants[plant_count++] = (struct plant){ .field = &fields[i], .way = way };
}

/* ---- spoiling ---- */

struct garden {
    struct bh_play play;
    struct bh_engine *engine;
    struct bh_step step, twin_step;
    uint64_t random;
};

static uint32_t
garden_draw(struct garden *garden, uint32_t below)
{
    garden->random = garden->random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((garden->random >> 33) % below);
}

/* The table whose rows the object belongs to. */
static uint32_t
rows_of(uint32_t object)
{
    static const uint8_t of[] = { [CLASS_HINT] = TABLE_CLASS,
                                  [LEASE_HINT] = TABLE_LEASE,
                                  [TENANT_HINT] = TABLE_TENANT,
                                  [NODE_HINT] = TABLE_NODE,
                                  [LINK] = TABLE_LEASE };

    return object < TABLES ? object : of[object];
}

static void *
object_at(struct bh_engine *engine, uint32_t object, uint32_t slot)
{
    switch (object) {
    case HEAD:
        return &engine->tables[slot];
    case CORE:
        return &engine->core;
    case HINTS:
        return &engine->hints;
    case CLAIM:
        return &engine->core.claims[slot];
    case CLASS_HINT:
        return bh_class_hint(engine, slot);
    case LEASE_HINT:
        return bh_lease_hint(engine, slot);
    case TENANT_HINT:
        return bh_tenant_hint(engine, slot);
    case NODE_HINT:
        return bh_node_hint(engine, slot);
    case LINK:
        return (struct preemptible *)bh_block_at(engine, engine->hints.preemptible_offset) + slot;
    default:
        return bh_slot_at(engine, (enum table_kind)object, slot);
    }
}

/* The next object of the kind, from 0 on; false when there are no more. */
static bool
next_object(const struct bh_engine *engine, uint32_t object, uint32_t *slot)
{
    if (object == CORE || object == HINTS)
        return (*slot)++ == 0;
    if (object == HEAD)
        return ++*slot < TABLES;
    if (object != CLAIM)
        return bh_slot_next(engine, (enum table_kind)rows_of(object), slot);
    while (++*slot < CLAIMS_MAX)
        if (engine->core.claims[*slot].job)
            return true;
    return false;
}

static uint32_t
random_object(struct garden *garden, uint32_t object)
{
    uint32_t chosen = 0, seen = 0;

    for (uint32_t slot = 0; next_object(garden->engine, object, &slot);)
        if (garden_draw(garden, ++seen) == 0)
            chosen = slot;
    return chosen;
}

static uint64_t
read_value(const struct field *field, const void *at)
{
    uint64_t value = 0;

    memcpy(&value, (const char *)at + field->offset, field->size < 8 ? field->size : 8);
    return value;
}

static uint64_t
largest_of(const struct field *field)
{
    return field->size < 4 ? 0x77 : field->size < 8 ? 0x07777777 : 0x0777777777777777;
}

static uint64_t
spoilt_value(struct garden *garden, const struct plant *plant, uint32_t slot, uint64_t value)
{
    const struct field *field = plant->field;
    struct bh_engine *engine = garden->engine;
    uint32_t other;

    switch ((enum way)(1u << plant->way)) {
    case MORE:
        return value + 1;
    case LESS:
        return value - 1;
    case OTHER:
        other = random_object(garden, field->object);
        return read_value(field, object_at(engine, field->object, other));
    case SELF:
        return slot;
    case FREED:
        return engine->tables[rows_of(field->object)].high + 1;
    case BEYOND:
        return largest_of(field);
    case FUTURE:
        return garden->engine->core.now_ns + 3600000000000ull;
    case FLIP:
        return !value;
    case NONE:
    default:
        return 0;
    }
}

/* Spoil a random object's field; false where that would change nothing. */
static bool
spoil(struct garden *garden, const struct plant *plant)
{
    const struct field *field = plant->field;
    uint32_t slot = random_object(garden, field->object);
    void *at = object_at(garden->engine, field->object, slot);
    uint64_t value = read_value(field, at), next;

    if (slot == 0 && field->object != CLAIM)
        return false;
    if (field->object == CLAIM && !garden->engine->core.claims[slot].job)
        return false;
    next = spoilt_value(garden, plant, slot, value);
    if ((1u << plant->way == LESS && value == 0))
        return false;
    memcpy((char *)at + field->offset, &next, field->size < 8 ? field->size : 8);
    return read_value(field, at) != value;
}

/* ---- playing on ---- */

/* Play an event to the engine, and what came of it to the history. */
static void
play_one(struct garden *garden)
{
    struct bh_event event;
    bh_rc rc;

    bh_play_next(&garden->play, garden->engine, &event);
    rc = bh_engine_step(garden->engine, &event, &garden->step);
    bh_play_took(&garden->play, &event, rc, &garden->step);
}

enum verdict { SILENT, WRONG, CAUGHT, NOT_PLANTED, VERDICTS };

/* Play on with the spoilt engine and its twin. */
static enum verdict
play_beside(struct garden *garden, struct bh_engine *twin)
{
    struct bh_event event;

    for (uint32_t i = 0; i < EVENTS_AFTER; i++) {
        bh_rc rc, twin_rc;

        bh_play_next(&garden->play, twin, &event);
        rc = bh_engine_step(garden->engine, &event, &garden->step);
        twin_rc = bh_engine_step(twin, &event, &garden->twin_step);
        if (bh_play_answer(rc, &garden->step) != bh_play_answer(twin_rc, &garden->twin_step))
            return WRONG;
        bh_play_took(&garden->play, &event, twin_rc, &garden->twin_step);
    }
    return SILENT;
}

/* In the child: never returns. */
static void
plant_and_play(struct garden *garden, const struct plant *plant)
{
    struct bh_engine *twin = bh_play_copy(garden->engine, NULL);
    const struct rlimit no_core = { 0, 0 }, hang = { HANG_S, HANG_S };

    static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS };

    setrlimit(RLIMIT_CORE, &no_core);
    for (size_t i = 0; i < BH_COUNT(crashes); i++)
        signal(crashes[i], SIG_DFL); /* cmocka's would go on with the test */
    if (!verbose && !freopen("/dev/null", "w", stderr))
        _exit(WRONG);
    setrlimit(RLIMIT_CPU, &hang);
    _exit(spoil(garden, plant) ? play_beside(garden, twin) : NOT_PLANTED);
}

static enum verdict
try_plant(struct garden *garden, const struct plant *plant)
{
    pid_t child;
    int status = 0;

    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        plant_and_play(garden, plant);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) < VERDICTS)
        return (enum verdict)WEXITSTATUS(status);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? CAUGHT : WRONG;
}

static void
count_verdict(struct plant *plant, enum verdict verdict)
{
    static const char *const names[VERDICTS] = { "silent", "wrong", "caught", "not planted" };

    plant->caught += verdict == CAUGHT;
    plant->wrong += verdict == WRONG;
    plant->silent += verdict == SILENT;
    if (verbose)
        fprintf(stderr, "%s: %s %s\n", names[verdict], plant->field->name, way_names[plant->way]);
}

/* ---- the whole ---- */

static void
nine_of_ten_plants_are_caught(void **state)
{
    struct bh_engine_caps caps = bh_play_caps();
    struct garden *garden = calloc(1, sizeof(*garden));
    uint64_t caught = 0, wrong = 0, silent = 0;
    uint32_t matter = 0;

    assert_non_null(garden);
    list_plants();
    garden->random = seed_wanted;
    garden->engine = bh_play_engine(&caps);
    bh_play_begin(&garden->play, seed_wanted);
    for (uint32_t i = 0; i < 10 * EVENTS_BETWEEN; i++)
        play_one(garden);
    for (uint64_t tried = 0; tried < plants_wanted;) {
        for (uint32_t i = 0; i < PLANTS_EACH; i++, tried++) {
            struct plant *plant = &plants[garden_draw(garden, plant_count)];

            count_verdict(plant, try_plant(garden, plant));
        }
        for (uint32_t i = 0; i < EVENTS_BETWEEN; i++)
            play_one(garden);
    }
    for (uint32_t i = 0; i < plant_count; i++) {
        caught += plants[i].caught;
        wrong += plants[i].wrong;
        silent += plants[i].silent;
        matter += plants[i].caught + plants[i].wrong > 0;
    }
    fprintf(stderr, "# seed %llu: of %u kinds of plants %u mattered: %llu caught, %llu wrong, %llu silent\n",
            (unsigned long long)seed_wanted, plant_count, matter, (unsigned long long)caught,
            (unsigned long long)wrong, (unsigned long long)silent);
    assert_true(matter >= 100);
    assert_true(caught * 100 >= NEEDED_PERCENT * (caught + wrong));
    free(garden->engine);
    free(garden);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(nine_of_ten_plants_are_caught) };

    if (argc > 1)
        plants_wanted = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        seed_wanted = strtoull(argv[2], NULL, 10);
    verbose = argc > 3;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
