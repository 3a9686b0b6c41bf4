#include "replay/world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/time.h"
#include "replay/apart.h"
#include "replay/history.h"

enum { JOBS_MAX = 4096, OUTSTANDING_MAX = 4096, ROUNDS_MAX = 200000 };
#define CLOCK_END_NS (UINT64_MAX / 4) /* 146 years */

struct bh_world {
    struct bh_state state;
    struct bh_history *history;
    struct bh_node_model *nodes;
    uint64_t now_ns;
    uint64_t as_of_ns;                      /* events are dated by it; 0: by now_ns */
    uint64_t stopped_ns;                    /* when the daemon stopped, while it is down */
    bool down;                              /* the daemon does not run */
    bool away[BH_NODE_MODEL_NODES_MAX + 1]; /* by node: out of reach */
    uint32_t cpu_milli[BH_NODE_MODEL_NODES_MAX + 1], memory_mib[BH_NODE_MODEL_NODES_MAX + 1];
    bool known[BH_NODE_MODEL_NODES_MAX + 1]; /* by node: was up once */
    uint32_t gpu_count;
    bh_part_ns physical; /* part-nanoseconds that the GPUs had */
    struct bh_reported_job reported[JOBS_MAX + 1];
    bool is_reported[JOBS_MAX + 1];
    struct bh_step step;
};

struct bh_world *
bh_world_new(void)
{
    struct bh_world *world = calloc(1, sizeof *world);

    BH_ASSERT(world);
    bh_state_init(&world->state);
    world->history = bh_history_new();
    world->nodes = bh_node_model_new();
    world->now_ns = 1000 * BH_NS_PER_S;
    return world;
}

void
bh_world_free(struct bh_world *world)
{
    if (!world)
        return;
    bh_state_fini(&world->state);
    bh_history_free(world->history);
    bh_node_model_free(world->nodes);
    free(world);
}

const struct bh_engine *
bh_world_engine(const struct bh_world *world)
{
    return world->state.engine;
}

struct bh_node_model *
bh_world_node_model(struct bh_world *world)
{
    return world->nodes;
}

uint64_t
bh_world_now_ns(const struct bh_world *world)
{
    return world->now_ns;
}

static bool
world_is_connected(const struct bh_world *world, bh_node_id node)
{
    BH_ASSERT(node.v <= BH_NODE_MODEL_NODES_MAX);
    return !world->down && !world->away[node.v];
}

/* ---- what always holds ---- */

static bh_rc
world_broken(const struct bh_world *world, const char *what, struct bh_err *err)
{
    return bh_err_set(err, BH_BUG, "invariant broken after record %" PRIu32 ": %s",
                      bh_history_count(world->history), what);
}

static bh_rc
world_check_ledger(const struct bh_world *world, struct bh_err *err)
{
    struct bh_ledger_view ledger;
    struct bh_metered_view row;
    bh_part_ns sum = 0;
    uint32_t cursor = 0;

    bh_view_ledger(world->state.engine, world->now_ns, &ledger);
    if (ledger.physical != world->physical)
        return world_broken(world, "the ledger's physical time is not the GPUs'", err);
    if (ledger.tenants_compute + ledger.idle_compute + ledger.unusable_compute != ledger.physical
        || ledger.tenants_memory + ledger.idle_memory + ledger.unusable_memory != ledger.physical)
        return world_broken(world, "tenants, idle and unusable do not add up to physical time", err);
    for (int i = 0; i < BH_UNUSABLES; i++)
        ledger.unusable_compute -= ledger.causes_compute[i];
    if (ledger.unusable_compute != 0)
        return world_broken(world, "the causes of unusable time do not add up to it", err);
    while (bh_view_next_metered(world->state.engine, &cursor, world->now_ns, &row))
        sum += row.compute_ns;
    if (sum != ledger.tenants_compute)
        return world_broken(world, "the tenants' usage is not the sum that the ledger has", err);
    return BH_OK;
}

/* The reported state of a job is its state. */
static bh_rc
world_check_reported(const struct bh_world *world, struct bh_err *err)
{
    struct bh_job_view view;
    uint32_t cursor = 0;

    while (bh_view_next_job(world->state.engine, &cursor, &view)) {
        char what[120];
        struct bh_buf buf;

        BH_ASSERT(view.job.v <= JOBS_MAX);
        if (world->is_reported[view.job.v] && world->reported[view.job.v].state == view.state)
            continue;
        bh_buf_init_fixed(&buf, what, sizeof what);
        bh_buf_printf(&buf, "job %" PRIu64 " is %s, but was reported as %s", view.job.v,
                      bh_job_state_names[view.state], bh_job_state_names[world->reported[view.job.v].state]);
        return world_broken(world, what, err);
    }
    return BH_OK;
}

static bh_rc
world_check(const struct bh_world *world, struct bh_err *err)
{
    char what[160] = "";
    bh_rc rc;

    if (!bh_engine_check(world->state.engine, what, sizeof what))
        return world_broken(world, what, err);
    if (!bh_apart_check(world->state.engine, what, sizeof what))
        return world_broken(world, what, err);
    rc = world_check_ledger(world, err);
    return rc == BH_OK ? world_check_reported(world, err) : rc;
}

/* ---- one step ---- */

static bh_rc
world_order(struct bh_world *world, const struct bh_effect *effect, struct bh_err *err)
{
    struct bh_job_view view = { 0 };
    struct bh_node_model_order order = { .effect = effect, .now_ns = world->now_ns };

    if (!world_is_connected(world, effect->node))
        return BH_OK;
    if (effect->kind == BH_FX_START || effect->kind == BH_FX_RESUME) {
        if (!bh_view_lease(world->state.engine, effect->lease, &view))
            return world_broken(world, "an effect names a lease that is gone", err);
        order.partitions = view.partitions;
        order.partition_count = view.partition_count;
    }
    return bh_node_model_order(world->nodes, &order, err);
}

static void
world_record_report(struct bh_world *world, const struct bh_effect *effect)
{
    struct bh_job_view view = { 0 };

    BH_ASSERT(effect->job.v <= JOBS_MAX);
    (void)bh_view_job(world->state.engine, effect->job, &view); /* an ended one is there yet */
    world->reported[effect->job.v] = (struct bh_reported_job){ effect->lease, view.gang, effect->state,
                                                               effect->cause, effect->exit_status };
    world->is_reported[effect->job.v] = true;
}

static bh_rc
world_release_effects(struct bh_world *world, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < world->step.effect_count && rc == BH_OK; i++) {
        const struct bh_effect *effect = &world->step.effects[i];

        if (effect->kind != BH_FX_JOB) {
            rc = world_order(world, effect, err);
            continue;
        }
        world_record_report(world, effect);
    }
    return rc;
}

static bh_rc
world_refuse(const struct bh_world *world, bh_rc rc, const uint8_t before[32], struct bh_err *err)
{
    uint8_t after[32];

    bh_state_digest(&world->state, &bh_crypto_openssl, after);
    if (memcmp(before, after, sizeof after) != 0)
        return world_broken(world, "an event that was refused changed the state", err);
    return bh_err_set(err, rc, "refused: %s (%s)", bh_reason_names[world->step.verdict.code], bh_rc_name(rc));
}

bh_rc
bh_world_send(struct bh_world *world, struct bh_event *event, struct bh_reason *ret_why, struct bh_err *err)
{
    struct bh_gpu_view view;
    uint8_t before[32];
    bool new_gpu;
    bh_rc rc;

    if (world->down)
        return bh_err_set(err, BH_UNAVAILABLE, "the daemon is down");
    new_gpu = event->kind == BH_EV_GPU && !bh_view_gpu(world->state.engine, event->u.gpu.gpu, &view);
    event->now_ns = world->as_of_ns ? world->as_of_ns : world->now_ns;
    event->seq = bh_history_count(world->history) + 1;
    bh_state_digest(&world->state, &bh_crypto_openssl, before);
    rc = bh_state_step(&world->state, event, &world->step);
    if (ret_why)
        *ret_why = world->step.verdict;
    if (rc != BH_OK)
        return world_refuse(world, rc, before, err);
    world->gpu_count += new_gpu;
    rc = bh_history_add(world->history, event, &world->step, &world->state, err);
    if (rc != BH_OK)
        return rc;
    rc = world_release_effects(world, err);
    if (rc != BH_OK)
        return rc;
    return world_check(world, err);
}

/* ---- time ---- */

static void
world_move_clock(struct bh_world *world, uint64_t to_ns)
{
    if (to_ns <= world->now_ns)
        return;
    world->physical += (bh_part_ns)(to_ns - world->now_ns) * BH_GPU_PARTS * world->gpu_count;
    world->now_ns = to_ns;
}

/* An answer that no longer fits answers an older question: the daemon drops it. */
static bh_rc
world_receive(struct bh_world *world, struct bh_event *event, struct bh_err *err)
{
    bh_rc rc = bh_world_send(world, event, NULL, err);

    return rc == BH_CONFLICT || rc == BH_NOT_FOUND ? BH_OK : rc;
}

static bh_rc
world_report(struct bh_world *world, struct bh_node_model_answer *answer, struct bh_err *err)
{
    if (answer->event.kind == BH_EV_ENDED)
        answer->event.u.ended.ended_ns = world->now_ns;
    if (world_is_connected(world, answer->node))
        return world_receive(world, &answer->event, err);
    if (answer->event.kind == BH_EV_ENDED) {
        answer->event.u.ended.at_ns = world->now_ns;
        bh_node_model_defer_end(world->nodes, answer);
    }
    return BH_OK; /* outcomes are asked for again */
}

static bh_rc
world_finish_next(struct bh_world *world, struct bh_err *err)
{
    struct bh_node_model_answer answer;
    bh_rc rc = bh_node_model_finish_next(world->nodes, &answer, err);

    return rc == BH_OK ? world_report(world, &answer, err) : rc;
}

static uint64_t
world_next_tick_ns(const struct bh_world *world)
{
    if (world->down)
        return UINT64_MAX;
    return world->step.more ? world->now_ns : bh_engine_next_tick_ns(world->state.engine);
}

/* The next thing that happens by itself until then; `ret_any` is false when there is
 * none. */
static bh_rc
world_happen(struct bh_world *world, uint64_t until_ns, bool *ret_any, struct bh_err *err)
{
    uint64_t due_ns = bh_node_model_next_due_ns(world->nodes), tick_ns = world_next_tick_ns(world);
    bool ticks = tick_ns < due_ns;
    uint64_t next_ns = ticks ? tick_ns : due_ns;

    *ret_any = next_ns <= until_ns;
    if (!*ret_any)
        return BH_OK;
    world_move_clock(world, next_ns);
    if (ticks)
        return bh_world_send(world, &(struct bh_event){ .kind = BH_EV_TICK }, NULL, err);
    return world_finish_next(world, err);
}

bh_rc
bh_world_advance(struct bh_world *world, uint64_t span_ns, struct bh_err *err)
{
    uint64_t until_ns = world->now_ns + span_ns;
    bool any = true;
    bh_rc rc = BH_OK;

    if (span_ns > CLOCK_END_NS - world->now_ns)
        return bh_err_set(err, BH_RANGE, "a scenario ends after %d years at the latest", 146);
    for (uint32_t round = 0; any && rc == BH_OK; round++) {
        if (round == ROUNDS_MAX)
            return world_broken(world, "it does not come to rest", err);
        rc = world_happen(world, until_ns, &any, err);
    }
    world_move_clock(world, until_ns);
    return rc;
}

bh_rc
bh_world_exit(struct bh_world *world, const struct bh_ev_ended *end, struct bh_err *err)
{
    struct bh_node_model_answer answer;
    bh_rc rc = bh_node_model_exit(world->nodes, end, &answer, err);

    return rc == BH_OK ? world_report(world, &answer, err) : rc;
}

/* ---- nodes come and go ---- */

static bh_rc
world_report_gone_partitions(struct bh_world *world, bh_node_id node, struct bh_err *err)
{
    struct bh_partition_view partition;
    struct bh_gpu_view gpu;
    uint32_t cursor = 0;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_view_next_partition(world->state.engine, &cursor, &partition)) {
        struct bh_event event = { .kind = BH_EV_PARTITION_GONE,
                                  .u.partition = { partition.partition.partition, BH_OUTCOME_FAILED, 0 } };

        if ((partition.state != BH_PARTITION_IDLE && partition.state != BH_PARTITION_LEASED)
            || bh_node_model_has_partition(world->nodes, partition.partition.partition)
            || !bh_view_gpu(world->state.engine, partition.partition.gpu, &gpu) || !bh_same(gpu.node, node))
            continue;
        rc = world_receive(world, &event, err);
    }
    return rc;
}

static bh_rc
world_report_ends(struct bh_world *world, bh_node_id node, struct bh_err *err)
{
    struct bh_event event;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_node_model_next_deferred(world->nodes, node, &event))
        rc = world_receive(world, &event, err);
    return rc;
}

static bh_rc
world_resend(struct bh_world *world, bh_node_id node, struct bh_err *err)
{
    struct bh_effect *effects = calloc(OUTSTANDING_MAX, sizeof *effects);
    uint32_t count;
    bh_rc rc = BH_OK;

    BH_ASSERT(effects);
    count = bh_engine_outstanding(world->state.engine, node, effects, OUTSTANDING_MAX);
    for (uint32_t i = 0; i < count && rc == BH_OK; i++)
        rc = world_order(world, &effects[i], err);
    free(effects);
    return rc;
}

static bh_rc
world_send_node(struct bh_world *world, bh_node_id node, bool up, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_NODE,
                              .u.node = { node, up, world->cpu_milli[node.v], world->memory_mib[node.v] } };

    return bh_world_send(world, &event, NULL, err);
}

void
bh_world_set_host(struct bh_world *world, bh_node_id node, uint32_t cpu_milli, uint32_t memory_mib)
{
    BH_ASSERT(node.v >= 1 && node.v <= BH_NODE_MODEL_NODES_MAX);
    world->cpu_milli[node.v] = cpu_milli;
    world->memory_mib[node.v] = memory_mib;
}

bh_rc
bh_world_lose_node(struct bh_world *world, bh_node_id node, struct bh_err *err)
{
    world->away[node.v] = true;
    return world->down ? BH_OK : world_send_node(world, node, false, err);
}

bh_rc
bh_world_greet_node(struct bh_world *world, bh_node_id node, struct bh_err *err)
{
    bh_rc rc;

    BH_ASSERT(node.v >= 1 && node.v <= BH_NODE_MODEL_NODES_MAX);
    world->away[node.v] = false;
    world->known[node.v] = true;
    if (world->down)
        return BH_OK;
    rc = world_send_node(world, node, false, err);
    if (rc != BH_OK)
        return rc;
    rc = world_report_gone_partitions(world, node, err);
    if (rc != BH_OK)
        return rc;
    rc = world_report_ends(world, node, err);
    if (rc != BH_OK)
        return rc;
    rc = world_send_node(world, node, true, err);
    if (rc != BH_OK)
        return rc;
    return world_resend(world, node, err);
}

/* ---- the daemon comes and goes ---- */

void
bh_world_stop_daemon(struct bh_world *world)
{
    if (!world->down)
        world->stopped_ns = world->now_ns;
    world->down = true; /* twice is no harm */
    bh_state_fini(&world->state);
    bh_state_init(&world->state);
}

/* Since the daemon stopped no node reported anything. */
static bh_rc
world_lose_nodes(struct bh_world *world, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    world->as_of_ns = world->stopped_ns;
    for (uint32_t node = 1; node <= BH_NODE_MODEL_NODES_MAX && rc == BH_OK; node++)
        if (world->known[node])
            rc = world_send_node(world, (bh_node_id){ node }, false, err);
    world->as_of_ns = 0;
    return rc;
}

bh_rc
bh_world_start_daemon(struct bh_world *world, struct bh_err *err)
{
    bh_rc rc;

    if (!world->down)
        return bh_err_set(err, BH_CONFLICT, "the daemon is up");
    rc = bh_history_replay(world->history, &world->state, err);
    world->down = false;
    world->step = (struct bh_step){ 0 };
    if (rc == BH_OK)
        rc = world_lose_nodes(world, err);
    for (uint32_t node = 1; node <= BH_NODE_MODEL_NODES_MAX && rc == BH_OK; node++)
        if (world->known[node] && !world->away[node])
            rc = bh_world_greet_node(world, (bh_node_id){ node }, err);
    return rc;
}

bool
bh_world_reported(const struct bh_world *world, bh_job_id job, struct bh_reported_job *ret_job)
{
    if (job.v > JOBS_MAX || !world->is_reported[job.v])
        return false;
    *ret_job = world->reported[job.v];
    return true;
}

/* ---- replay ---- */

/* A copy in a bigger block has the same digest. */
static bh_rc
world_check_grown(const struct bh_world *world, struct bh_err *err)
{
    struct bh_engine_caps caps = bh_engine_caps(world->state.engine);
    struct bh_state bigger = { 0 };
    uint8_t digest[32], grown[32];

    caps.jobs *= 2;
    caps.partitions += 3;
    caps.leases += 5;
    bigger.bytes = bh_engine_size(&caps);
    bigger.block = aligned_alloc(64, (bigger.bytes + 63) & ~(size_t)63);
    BH_ASSERT(bigger.block);
    bigger.engine = bh_engine_grow(world->state.engine, bigger.block, &caps);
    bh_state_digest(&world->state, &bh_crypto_openssl, digest);
    bh_state_digest(&bigger, &bh_crypto_openssl, grown);
    bh_state_fini(&bigger);
    if (memcmp(digest, grown, sizeof digest) != 0)
        return world_broken(world, "a bigger block changes the digest", err);
    return BH_OK;
}

bh_rc
bh_world_check_replay(struct bh_world *world, struct bh_err *err)
{
    struct bh_state again;
    bh_rc rc;

    bh_state_init(&again);
    rc = bh_history_replay(world->history, &again, err);
    bh_state_fini(&again);
    if (rc != BH_OK)
        return rc;
    if (!world->down)
        return world_check_grown(world, err);
    return BH_OK;
}
