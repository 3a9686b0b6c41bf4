/* Random histories: everything that people, nodes and time can do to the engine, in
 * random order, with a node that answers late and sometimes badly.  After every step
 * the invariants hold and a replay gives the same digest; now and then the engine is grown, loaded
 * from its own bytes, or decides again beside its replayed twin.  In the end all jobs must have run.
 *
 *   history_test [steps [seed]] */

#include "base/attr.h"
#include "engine/forecast/defrag.h"
#include "engine/gpu/ledger_follow_test.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

enum { NODES = 3, GPUS_PER_NODE = 4, GPUS = NODES * GPUS_PER_NODE };
enum { TENANTS = 9, SKUS = 7, CARVED = 5, JOBS_AT_ONCE = 60 };

static uint64_t steps_wanted = 20000, seed_wanted = 1;

struct history {
    struct bh_fixture *fixture;
    uint64_t random;
    struct bh_ev_gpu gpus[GPUS];
    uint64_t accepted, refused, kinds[BH_EVENT_KINDS], decisions[BH_DECISION_KINDS];
    uint64_t completed, moves, declared;
    struct bh_ledger_follow ledger;
    uint32_t tenant_ids[TENANTS];
    uint32_t next_tenant;
};

static uint32_t
history_draw(struct history *history, uint32_t below)
{
    history->random ^= history->random << 13;
    history->random ^= history->random >> 7;
    history->random ^= history->random << 17;
    return (uint32_t)((history->random >> 33) % below);
}

static bool
history_chance(struct history *history, uint32_t percent)
{
    return history_draw(history, 100) < percent;
}

/* Whether a lease's processes may be at work when the node comes to the order: not those of a lease whose
 * START comes after it. */
static bool
may_run(const struct bh_fixture *fixture, const struct lease *lease, uint64_t order)
{
    for (uint32_t i = 0; i < fixture->step.effect_count; i++) {
        const struct bh_effect *effect = &fixture->step.effects[i];

        if ((effect->kind == BH_FX_START || effect->kind == BH_FX_RESUME) && effect->lease.v == lease->id
            && effect->order > order)
            return false;
    }
    return lease->state != LEASE_CARVING && lease->state != LEASE_RECARVING;
}

/* Nothing is carved or destroyed beside another tenant's lease where that must not be. */
static void
check_alone(const struct history *history, const struct bh_effect *effect)
{
    const struct bh_engine *engine = history->fixture->engine;
    const struct gpu *gpu = gpu_at(engine, gpu_find(engine, effect->partition.gpu.v));

    if (bh_profile_is_share((bh_profile_id){ effect->partition.profile }))
        return; /* no instance is made or destroyed */
    if ((effect->kind != BH_FX_CARVE && effect->kind != BH_FX_DESTROY) || !gpu->lone_carve)
        return;
    for (uint32_t at = gpu->first_partition; at; at = partition_at(engine, at)->next_on_gpu) {
        const struct lease *lease = lease_at(engine, partition_at(engine, at)->lease);

        if (partition_at(engine, at)->lease && may_run(history->fixture, lease, effect->order))
            assert_true(tenant_at(engine, lease->tenant)->id == effect->tenant.v);
    }
}

static bh_rc
history_play(struct history *history, struct bh_event *event)
{
    bh_rc rc;

    history->fixture->now_ns += history_draw(history, 4) ? history_draw(history, 50000000) : 0;
    rc = bh_fixture_send(history->fixture, event);
    bh_ledger_follow(&history->ledger, history->fixture);
    if (rc != BH_OK) {
        history->refused++;
        return rc;
    }
    history->accepted++;
    history->kinds[event->kind]++;
    for (uint32_t i = 0; i < history->fixture->step.decision_count; i++)
        history->decisions[history->fixture->step.decisions[i].kind] +=
            history->fixture->step.decisions[i].member == 0;
    for (uint32_t i = 0; i < history->fixture->step.effect_count; i++)
        check_alone(history, &history->fixture->step.effects[i]);
    return rc;
}

/* ---- the site ---- */

static void
set_tenant(struct history *history, uint32_t at)
{
    static const uint64_t limits[] = { BH_UNLIMITED, BH_UNLIMITED, 4200, 8400, 1200 };
    static const uint64_t guarantees[] = { 0, 0, 2100, 4200 };
    struct bh_event event = { .kind = BH_EV_TENANT };
    struct bh_ev_tenant *tenant = &event.u.tenant;

    tenant->tenant.v = history->tenant_ids[at];
    if (at >= 2) /* 0 and 1 are roots, 2..4 departments, the rest projects */
        tenant->parent.v =
            history->tenant_ids[at < 5 ? history_draw(history, 2) : 2 + history_draw(history, 3)];
    tenant->kind = at < 2 ? BH_TENANT_ORGANIZATION : at < 5 ? BH_TENANT_DEPARTMENT : BH_TENANT_PROJECT;
    tenant->boundary =
        (enum bh_boundary)(history_chance(history, 60) ? 0 : history_draw(history, BH_BOUNDARIES));
    tenant->dedicated_nodes = history_chance(history, 6);
    tenant->limit = limits[history_draw(history, BH_COUNT(limits))];
    tenant->guarantee = guarantees[history_draw(history, BH_COUNT(guarantees))];
    tenant->min_runtime_ns = history_chance(history, 20) ? 1 + history_draw(history, 1000000000) : 0;
    if (history_chance(history, 30)) {
        tenant->quotas[tenant->quota_count++] =
            (struct bh_tenant_quota){ BH_QUOTA_SKU, 1 + history_draw(history, SKUS),
                                      .limit = 1 + history_draw(history, 6) };
    }
    if (history_chance(history, 20))
        tenant->quotas[tenant->quota_count++] =
            (struct bh_tenant_quota){ BH_QUOTA_MODEL, BH_GPU_H100_80GB,
                                      .limit = 4200 + history_draw(history, 3) * 4200ull, .guarantee = 2100,
                                      .withhold = history_draw(history, 2) * 1050 };
    if (history_chance(history, 20))
        tenant->user_limit = 600 + history_draw(history, 8) * 1050ull;
    if (history_chance(history, 20))
        tenant->withhold = history_draw(history, (uint32_t)tenant->guarantee + 1);
    if (history_chance(history, 10))
        tenant->budget = (struct bh_budget){ BH_PERIOD_DAY, history_draw(history, 4) ? BH_UNLIMITED : 20,
                                             history_draw(history, 4) ? BH_UNLIMITED : 30 };
    tenant->weight = history_draw(history, 300);
    history_play(history, &event);
}

/* SKUs above CARVED are shares; now and then an instance keeps the promise, too. */
static void
set_share_sku(struct history *history, uint32_t id)
{
    struct bh_event event = { .kind = BH_EV_SKU };
    struct bh_ev_sku *sku = &event.u.sku;
    struct bh_share share = { 600 + 450 * history_draw(history, 3), 500 + 400 * history_draw(history, 4),
                              (enum bh_share_mode)history_draw(history, BH_SHARE_MODES) };

    *sku = (struct bh_ev_sku){ .sku = { id }, .grade = BH_GRADE_F, .model_count = 2 };
    sku->models[0].model = BH_GPU_H100_80GB;
    sku->models[1].model = BH_GPU_A30_24GB;
    sku->models[0].profile = sku->models[1].profile = bh_share_profile(&share).v;
    if (history_chance(history, 20)) {
        sku->models[2].model = BH_GPU_H100_80GB;
        sku->models[2].profile = bh_profile_find(BH_GPU_H100_80GB, "2g.20gb")->id.v;
        sku->model_count = 3;
    }
    history_play(history, &event);
}

static void
set_sku(struct history *history, uint32_t id)
{
    static const char *const on_h100[] = { "1g.10gb", "2g.20gb", "3g.40gb", "1g.20gb", NULL };
    static const char *const on_a30[] = { "1g.6gb", "2g.12gb", NULL, "1g.6gb+me", NULL };
    struct bh_event event = { .kind = BH_EV_SKU };
    struct bh_ev_sku *sku = &event.u.sku;

    if (id > CARVED) {
        set_share_sku(history, id);
        return;
    }
    sku->sku.v = id;
    sku->grade = on_h100[id - 1] ? BH_GRADE_C : BH_GRADE_B;
    sku->models[0].model = BH_GPU_H100_80GB;
    sku->models[0].profile =
        on_h100[id - 1] ? bh_profile_find(BH_GPU_H100_80GB, on_h100[id - 1])->id.v : BH_PROFILE_WHOLE.v;
    sku->models[1].model = BH_GPU_A30_24GB;
    sku->models[1].profile =
        on_a30[id - 1] ? bh_profile_find(BH_GPU_A30_24GB, on_a30[id - 1])->id.v : BH_PROFILE_WHOLE.v;
    sku->model_count = history_chance(history, 80) ? 2 : 1;
    if (on_h100[id - 1] && history_chance(history, 20)) { /* a whole GPU keeps it, too */
        sku->models[sku->model_count].model = BH_GPU_H100_80GB;
        sku->models[sku->model_count++].profile = BH_PROFILE_WHOLE.v;
    }
    history_play(history, &event);
}

static void
set_gpu(struct history *history, uint32_t at)
{
    struct bh_event event = { .kind = BH_EV_GPU, .u.gpu = history->gpus[at] };

    history_play(history, &event);
}

static void
set_node(struct history *history, uint32_t node, bool up)
{
    struct bh_event event = { .kind = BH_EV_NODE, .u.node = { { node }, up, 0, 0 } };

    if (node != 1) { /* the first one has no limits */
        event.u.node.cpu_milli = 4000 + 1000 * history_draw(history, 8);
        event.u.node.memory_mib = history_chance(history, 80) ? 2000 + 1000 * history_draw(history, 8) : 0;
    }
    history_play(history, &event);
}

static void
history_build(struct history *history)
{
    for (uint32_t i = 1; i <= NODES; i++)
        set_node(history, i, true);
    for (uint32_t i = 0; i < GPUS; i++) {
        bool small = i % GPUS_PER_NODE == 3;

        history->gpus[i] = (struct bh_ev_gpu){ .gpu = { i + 1 },
                                               .node = { 1 + i / GPUS_PER_NODE },
                                               .model = small ? BH_GPU_A30_24GB : BH_GPU_H100_80GB,
                                               .managed = true,
                                               .mig_capable = true,
                                               .layout = (enum bh_pool_layout)(i % BH_POOL_LAYOUTS),
                                               .link = i % GPUS_PER_NODE / 2,
                                               .numa = 1 + i % 2,
                                               .lone_carve = i % 4 == 1,
                                               .share_limit = i % 3 * BH_GPU_PARTS };
        set_gpu(history, i);
    }
    for (uint32_t i = 1; i <= SKUS; i++)
        set_sku(history, i);
    for (uint32_t i = 0; i < TENANTS; i++)
        history->tenant_ids[i] = history->next_tenant++;
    for (uint32_t i = 0; i < TENANTS; i++)
        set_tenant(history, i);
}

static void
set_settings(struct history *history)
{
    static const uint64_t half_lives[] = { 60000000000, 3600000000000, BH_UNLIMITED };
    static const uint64_t assumed_ns[] = { 0, 1000000000, 60000000000 };
    struct bh_event event = { .kind = BH_EV_SETTINGS };

    event.u.settings = (struct bh_ev_settings){
        .order = (enum bh_queue_order)history_draw(history, BH_ORDERS),
        .backfill = history_chance(history, 80),
        .half_life_ns = half_lives[history_draw(history, BH_COUNT(half_lives))],
        .assumed_run_ns = assumed_ns[history_draw(history, BH_COUNT(assumed_ns))],
        .min_runtime_ns = history_chance(history, 20) ? history_draw(history, 500000000) : 0,
        .lending = (enum bh_lending)history_draw(history, BH_LENDINGS),
        .burn_in_ns = history_chance(history, 50) ? history_draw(history, 1000000000) : 0,
        .hotspots = history_chance(history, 50),
        .preshape = history_chance(history, 50),
        .spread_kinds = history_chance(history, 50),
        .defrag = { .mode = (enum bh_defrag_mode)history_draw(history, BH_DEFRAG_MODES),
                    .moves = 1 + history_draw(history, 100),
                    .gain_percent = 1 + history_draw(history, 200),
                    .lost_gpu_s = 1 + history_draw(history, 100000),
                    .rest_ns = 1 + history_draw(history, 1000000000) },
    };
    history_play(history, &event);
}

/* What forecasts might say. */
static void
history_run_future(struct history *history)
{
    struct bh_event event = { .kind = BH_EV_ADVICE };
    struct bh_ev_advice *advice = &event.u.advice;
    uint32_t count;
    const struct bh_profile *first =
        bh_profile_first(history_chance(history, 70) ? BH_GPU_H100_80GB : BH_GPU_A30_24GB, &count);

    advice->of = (enum bh_advice_of)history_draw(history, BH_ADVICE_OFS);
    advice->tenant.v = history->tenant_ids[history_draw(history, TENANTS)];
    advice->expected = history_chance(history, 30) ? 0 : history_draw(history, 12600);
    advice->node.v = 1 + history_draw(history, NODES);
    advice->hot = history_chance(history, 50);
    advice->profile = first[history_draw(history, count)].id.v;
    advice->ready = history_draw(history, 4);
    history_play(history, &event);
}

/* ---- what happens ---- */

static uint32_t
jobs_of(const struct history *history, uint32_t at)
{
    struct bh_tenant_view view;

    if (!bh_view_tenant(history->fixture->engine, (bh_tenant_id){ history->tenant_ids[at] },
                        history->fixture->now_ns, &view))
        return 0;
    return view.running + view.pending;
}

static void
history_submit(struct history *history)
{
    static const uint64_t limits[] = { 0, 0, 1000000000, 5000000000 };
    struct bh_event event = { .kind = BH_EV_SUBMIT };
    struct bh_ev_submit *job = &event.u.submit;

    if (jobs_of(history, 0) + jobs_of(history, 1) >= JOBS_AT_ONCE)
        return;
    job->job.v = history->fixture->next_job++;
    job->tenant.v = history->tenant_ids[2 + history_draw(history, TENANTS - 2)];
    job->sku.v = 1 + history_draw(history, SKUS);
    job->principal.v = 1 + history_draw(history, 3);
    job->count = history_chance(history, 70) ? 1 : 1 + history_draw(history, 4);
    job->gang = history_chance(history, 70) ? history_draw(history, 2) : 1 + history_draw(history, 5);
    job->kind = (enum bh_job_kind)history_draw(history, BH_JOB_KINDS);
    job->priority = (enum bh_priority)(1 + history_draw(history, 4));
    job->contract = (enum bh_contract)history_draw(history, BH_CONTRACTS);
    job->time_limit_ns = limits[history_draw(history, BH_COUNT(limits))];
    job->grace_ns = history_draw(history, 1000000000);
    job->cpu_milli = history_chance(history, 50) ? 0 : 500 * (1 + history_draw(history, 6));
    job->memory_mib = history_chance(history, 50) ? 0 : 700 * (1 + history_draw(history, 4));
    job->checkpoint_signal = history_chance(history, 50) ? 0 : 12;
    if (history_chance(history, 10))
        job->deadline_ns = history->fixture->now_ns + 1000000000 * (uint64_t)history_draw(history, 12);
    job->hold = history_chance(history, 4);
    history_play(history, &event);
}

/* Some job, by walking a random way through the table. */
static bool
some_job(struct history *history, bool running, struct bh_job_view *ret_job)
{
    uint32_t cursor = 0, seen = 0;
    struct bh_job_view view;

    while (bh_view_next_job(history->fixture->engine, &cursor, &view)) {
        if (running ? view.lease.v == 0 : view.state >= BH_JOB_COMPLETED)
            continue;
        if (history_draw(history, ++seen) == 0)
            *ret_job = view;
    }
    return seen > 0;
}

static void
exit_some(struct history *history)
{
    struct bh_event event = { .kind = BH_EV_ENDED };
    struct bh_job_view job;
    if (!some_job(history, true, &job))
        return;
    event.u.ended.lease.v = job.lease.v + history_draw(history, job.gang);
    event.u.ended.cause =
        history_chance(history, 85) ? BH_END_EXITED : (enum bh_end_cause)history_draw(history, BH_END_CAUSES);
    event.u.ended.exit_status = history_chance(history, 80) ? 0 : 1;
    event.u.ended.unasked = event.u.ended.completed = history_chance(history, 50);
    event.u.ended.at_ns = history->fixture->now_ns - history_draw(history, 1 << 30);
    history_play(history, &event);
}

static void
cancel_some(struct history *history)
{
    struct bh_event event = { .kind = BH_EV_CANCEL };
    struct bh_job_view job;

    if (!some_job(history, false, &job))
        return;
    event.kind = history_chance(history, 50) ? BH_EV_RELEASE : BH_EV_CANCEL;
    event.u.job.job = job.job;
    event.u.job.cause = history_chance(history, 20) ? BH_END_DATASET : BH_END_NONE;
    history_play(history, &event);
}

/* The node answers one of its effects, mostly an old one, mostly well. */
static void
answer_some(struct history *history, uint32_t bad_percent)
{
    struct bh_fixture *fixture = history->fixture;
    enum bh_outcome_kind outcome = BH_OUTCOME_OK;
    uint32_t at = fixture->effect_count
                      ? history_draw(history, history_chance(history, 70) ? 1 : fixture->effect_count)
                      : 0;
    struct bh_event event;

    if (fixture->effect_count == 0)
        return;
    if (history_chance(history, bad_percent))
        outcome = history_chance(history, 50) ? BH_OUTCOME_FAILED : BH_OUTCOME_CONTEXT_HELD;
    if (outcome == BH_OUTCOME_CONTEXT_HELD
        && (fixture->effects[at].kind == BH_FX_CARVE || fixture->effects[at].kind == BH_FX_DESTROY))
        outcome = BH_OUTCOME_UNCLEAN;
    event = bh_fixture_answer(&fixture->effects[at], outcome);
    if (event.kind == BH_EV_STARTED && outcome == BH_OUTCOME_FAILED)
        event.u.lease.scratch =
            (event.u.lease.elsewhere =
                 !(event.u.lease.refused = history_chance(history, 20)) || history_chance(history, 50))
            && !event.u.lease.refused && history_chance(history, 30);
    fixture->effect_count--;
    memmove(&fixture->effects[at], &fixture->effects[at + 1],
            (fixture->effect_count - at) * sizeof(fixture->effects[0]));
    history_play(history, &event);
}

static void
lose_partition(struct history *history)
{
    struct bh_event event = { .kind = BH_EV_PARTITION_GONE };
    struct bh_partition_view view;
    uint32_t cursor = 0, seen = 0;

    while (bh_view_next_partition(history->fixture->engine, &cursor, &view))
        if (history_draw(history, ++seen) == 0)
            event.u.partition.partition = view.partition.partition;
    if (seen)
        history_play(history, &event);
}

static void
change_gpu(struct history *history)
{
    uint32_t at = history_draw(history, GPUS);
    struct bh_ev_gpu *gpu = &history->gpus[at];

    gpu->cordoned = history_chance(history, 15);
    gpu->fenced = history_chance(history, 15);
    gpu->managed = history_chance(history, 95);
    if (history_chance(history, 20))
        gpu->share_limit = history_draw(history, 4) * 2100;
    set_gpu(history, at);
}

static void
replace_tenant(struct history *history)
{
    uint32_t at = 5 + history_draw(history, TENANTS - 5);
    struct bh_event event = { .kind = BH_EV_TENANT_REMOVE };

    event.u.tenant.tenant.v = history->tenant_ids[at];
    if (history_play(history, &event) != BH_OK)
        return;
    if (history_chance(history, 50)) /* or it is declared again */
        history->tenant_ids[at] = history->next_tenant++;
    set_tenant(history, at);
}

/* The present plan of moves, now and then with something in it that is wrong. */
static void
move_some(struct history *history)
{
    struct bh_event event = { .kind = BH_EV_MOVE };
    struct bh_defrag_plan plan;
    struct bh_ev_move *move = &event.u.move;

    if (!bh_defrag_find(history->fixture->engine, &plan))
        return;
    *move = plan.move;
    if (history_chance(history, 10))
        move->placements[history_draw(history, move->placement_count)].gpu.v =
            1 + history_draw(history, GPUS);
    if (history_chance(history, 5))
        move->placements[history_draw(history, move->placement_count)].start = history_draw(history, 8);
    if (history_chance(history, 5))
        move->moves[history_draw(history, move->move_count)].job.v = history_draw(history, 1000);
    history->moves += history_play(history, &event) == BH_OK;
}

/* Something declared for a GPU, for a few of them together, or nothing any more. */
static void
history_declare(struct history *history)
{
    static const char *const names[][3] = { { "3g.40gb", "3g.40gb", NULL },
                                            { "1g.10gb", "2g.20gb", "4g.40gb" },
                                            { "7g.80gb", NULL, NULL },
                                            { NULL, NULL, NULL } };
    struct bh_event event = { .kind = BH_EV_LAYOUT };
    struct bh_ev_layout *gpu_layout = &event.u.gpu_layout;
    const char *const *name = names[history_draw(history, BH_COUNT(names))];

    gpu_layout->apply = bh_view_applied(history->fixture->engine) + 1;
    gpu_layout->mode = (enum bh_layout_mode)history_draw(history, BH_LAYOUT_MODES);
    for (uint32_t i = 0; i < 3 && name[i] && gpu_layout->mode; i++)
        gpu_layout->partitions[gpu_layout->partition_count++] =
            (struct bh_ev_layout_partition){ bh_profile_find(BH_GPU_H100_80GB, name[i])->id.v,
                                             history_draw(history, 8) };
    for (uint32_t count = 1 + history_draw(history, 3); count > 0; count--) {
        gpu_layout->gpu.v = 1 + history_draw(history, GPUS);
        history->declared += history_play(history, &event) == BH_OK;
    }
}

/* A GPU has a fault, with or without a job on it. */
static void
fall_ill(struct history *history)
{
    struct bh_event event = { .kind = BH_EV_HEALTH };
    struct bh_ev_health *fault = &event.u.health;
    struct bh_partition_view partition;
    uint32_t cursor = 0, skip = history_draw(history, 12);

    fault->gpu.v = 1 + history_draw(history, GPUS);
    while (bh_view_next_partition(history->fixture->engine, &cursor, &partition))
        if (skip-- == 0) {
            fault->gpu = partition.partition.gpu;
            fault->partition = partition.partition.partition;
            break;
        }
    fault->ends = (enum bh_fault_ends)history_draw(history, fault->partition.v ? BH_FAULT_ENDS : 1);
    fault->then = (enum bh_fault_then)history_draw(history, BH_FAULT_THENS);
    fault->xid = history_draw(history, 180);
    history_play(history, &event);
}

/* Operators hold GPUs and nodes back, and let them go again; or a node is checked. */
static void
cordon_some(struct history *history)
{
    struct bh_event event = { .kind = BH_EV_CORDON };

    if (history_chance(history, 80))
        event.u.cordon.gpu.v = 1 + history_draw(history, GPUS);
    else
        event.u.cordon.node.v = 1 + history_draw(history, NODES);
    event.u.cordon.held =
        history_chance(history, 70) ? BH_HELD_NOT : (enum bh_held)history_draw(history, BH_HELDS);
    event.u.cordon.clear_fault = history_chance(history, 70);
    if (history_chance(history, 30))
        event = (struct bh_event){ .kind = BH_EV_CHECKED, .u.checked = { { 1 }, history_draw(history, 2) } };
    history_play(history, &event);
}

static void
send_nonsense(struct history *history)
{
    struct bh_event event = { .kind = (enum bh_event_kind)history_draw(history, BH_EVENT_KINDS + 1) };
    unsigned char *bytes = (unsigned char *)&event.u;

    if (event.kind == BH_EV_TENANT || event.kind == BH_EV_SKU || event.kind == BH_EV_GPU
        || event.kind == BH_EV_NODE || event.kind == BH_EV_TENANT_REMOVE || event.kind == BH_EV_SKU_REMOVE
        || event.kind == BH_EV_SUBMIT || event.kind == BH_EV_SETTINGS || event.kind == BH_EV_ADVICE
        || event.kind == BH_EV_LAYOUT)
        return; /* these would build another site */
    for (size_t i = 0; i < 16; i += 4)
        bytes[i] = (unsigned char)history_draw(history, 40);
    history_play(history, &event);
}

static void
history_tick(struct history *history)
{
    history_play(history, &(struct bh_event){ .kind = BH_EV_TICK });
}

static void
history_happen(struct history *history)
{
    uint32_t what = history_draw(history, 1000);

    if (what < 270)
        history_submit(history);
    else if (what < 330)
        move_some(history);
    else if (what < 700)
        answer_some(history, 4);
    else if (what < 850)
        exit_some(history);
    else if (what < 890)
        cancel_some(history);
    else if (what < 944)
        history_tick(history);
    else if (what < 945)
        fall_ill(history);
    else if (what < 960)
        history_run_future(history);
    else if (what < 965)
        set_node(history, 1 + history_draw(history, NODES), history_chance(history, 70));
    else if (what < 975)
        change_gpu(history);
    else if (what < 980)
        lose_partition(history);
    else if (what < 985)
        set_tenant(history, history_draw(history, TENANTS));
    else if (what < 988)
        replace_tenant(history);
    else if (what < 990)
        set_sku(history, 1 + history_draw(history, SKUS));
    else if (what < 992)
        set_settings(history);
    else if (what < 997)
        history_declare(history);
    else if (what < 998)
        cordon_some(history);
    else
        send_nonsense(history);
}

/* ---- the engine itself ---- */

static struct bh_engine *
history_grown(const struct bh_engine *engine, uint32_t by)
{
    struct bh_engine_caps caps = bh_engine_caps(engine);
    size_t size;
    void *memory;

    caps.jobs += by;
    caps.partitions += by;
    caps.leases += by;
    size = (bh_engine_size(&caps) + 15) & ~(size_t)15;
    memory = aligned_alloc(16, size);
    assert_non_null(memory);
    return bh_engine_grow(engine, memory, &caps);
}

static void
grow_engine(struct history *history)
{
    struct bh_fixture *fixture = history->fixture;
    struct bh_engine *larger = history_grown(fixture->engine, 3);

    assert_true(bh_fixture_digest(larger) == bh_fixture_digest(fixture->engine));
    free(fixture->engine);
    fixture->engine = larger;
}

/* A copy that only ever replayed must decide as the engine that never stopped. */
static void
decide_again(struct history *history)
{
    static struct bh_step step;
    struct bh_fixture *fixture = history->fixture;
    struct bh_engine *again = history_grown(fixture->replica, 1);
    struct bh_event event = { .kind = BH_EV_TICK, .now_ns = fixture->now_ns };

    event.seq = fixture->seq + 1;
    history_tick(history);
    event.now_ns = fixture->now_ns;
    event.seq = fixture->seq;
    assert_int_equal(bh_engine_step(again, &event, &step), BH_OK);
    for (uint32_t i = fixture->step.decision_count; i < step.decision_count; i++)
        fprintf(stderr, "# only the twin decides: %s job %llu lease %llu\n",
                bh_decision_names[step.decisions[i].kind], (unsigned long long)step.decisions[i].job.v,
                (unsigned long long)step.decisions[i].lease.v);
    assert_int_equal(step.decision_count, fixture->step.decision_count);
    assert_true(bh_fixture_digest(again) == bh_fixture_digest(fixture->engine));
    free(again);
}

/* ---- the end ---- */

static void
history_repair(struct history *history)
{
    for (uint32_t i = 1; i <= NODES; i++)
        set_node(history, i, true);
    for (uint32_t i = 0; i < GPUS; i++) {
        history->gpus[i].cordoned = history->gpus[i].fenced = false;
        history->gpus[i].managed = true;
        set_gpu(history, i);
    }
}

static bool
can_never_run(struct history *history, bh_job_id job)
{
    struct bh_reason why = bh_fixture_why(history->fixture, job.v);

    switch ((int)why.code) {
    case BH_REASON_HELD:
    case BH_REASON_NEVER_FORM:
    case BH_REASON_NEVER_SHAPE:
    case BH_REASON_NEVER_QUOTA:
        return true;
    case BH_REASON_QUOTA_GPU:
    case BH_REASON_QUOTA_SKU:
    case BH_REASON_QUOTA_MODEL:
    case BH_REASON_QUOTA_USER:
    case BH_REASON_KEPT:
    case BH_REASON_KEPT_FORECAST:
        return why.wanted > why.limit;
    default:
        return false;
    }
}

/* Operators let go of all, and clear every fault whose repair is not under way. */
static void
heal(struct history *history)
{
    struct bh_event event = { .kind = BH_EV_CORDON };

    for (uint32_t node = 1; node <= NODES; node++) {
        event.u.cordon = (struct bh_ev_cordon){ .node = { node }, .clear_fault = true };
        history_play(history, &event);
    }
    for (uint32_t gpu = 1; gpu <= GPUS; gpu++) {
        event.u.cordon = (struct bh_ev_cordon){ .gpu = { gpu } };
        history_play(history, &event);
    }
}

/* Let all that runs end; returns how many jobs still could run. */
static uint32_t
run_out(struct history *history)
{
    uint32_t cursor = 0, left = 0;
    struct bh_job_view view;

    while (history->fixture->effect_count)
        answer_some(history, 0);
    history->fixture->now_ns += 86411000000000ull; /* over a day: budgets are new */
    history_tick(history);
    while (bh_view_next_job(history->fixture->engine, &cursor, &view)) {
        struct bh_event event = { .kind = BH_EV_ENDED };

        if (view.state == BH_JOB_PENDING)
            left += !can_never_run(history, view.job);
        else
            left += view.state < BH_JOB_COMPLETED;
        if (view.state != BH_JOB_RUNNING)
            continue;
        for (uint32_t i = 0; i < view.gang; i++) {
            event.u.ended = (struct bh_ev_ended){ .lease = { view.lease.v + i }, .cause = BH_END_EXITED };
            history_play(history, &event);
        }
    }
    return left;
}

static void
history_report(const struct history *history)
{
    fprintf(stderr, "# %llu steps taken, %llu refused; decisions:", (unsigned long long)history->accepted,
            (unsigned long long)history->refused);
    for (uint32_t i = 0; i < BH_DECISION_KINDS; i++)
        fprintf(stderr, " %s %llu", bh_decision_names[i], (unsigned long long)history->decisions[i]);
    fprintf(stderr, "; plans of moves %llu, layouts declared %llu\n", (unsigned long long)history->moves,
            (unsigned long long)history->declared);
}

static void
show_left(struct history *history)
{
    struct bh_job_view view;
    uint32_t cursor = 0;

    while (bh_view_next_job(history->fixture->engine, &cursor, &view)) {
        struct bh_reason why = bh_fixture_why(history->fixture, view.job.v);

        fprintf(stderr, "# left: job %llu %s, %s: limit %llu wanted %llu\n", (unsigned long long)view.job.v,
                bh_job_state_names[view.state], bh_reason_names[why.code], (unsigned long long)why.limit,
                (unsigned long long)why.wanted);
    }
}

static void
every_history_keeps_the_invariants(void **state)
{
    struct history *history = calloc(1, sizeof(*history));
    uint32_t rounds = 0;

    assert_non_null(history);
    history->fixture = bh_fixture_open();
    history->random = seed_wanted * 0x9e3779b97f4a7c15ull + 1;
    history->next_tenant = 1;
    history_build(history);
    for (uint64_t i = 0; i < steps_wanted; i++) {
        history_happen(history);
        if (i % 997 == 0)
            decide_again(history);
        if (i % 4999 == 0)
            grow_engine(history);
        for (uint32_t k = 0; i % 5000 == 4500 && k < 8; k++) /* run dry, so that queues stay short */
            run_out(history);
    }
    history_repair(history);
    do {
        if (rounds < 4)
            heal(history);
    } while (run_out(history) && ++rounds < 2000);
    history_report(history);
    if (rounds == 2000)
        show_left(history);
    assert_true(rounds < 2000);
    bh_fixture_close(history->fixture);
    free(history);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_history_keeps_the_invariants) };

    if (argc > 1)
        steps_wanted = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        seed_wanted = strtoull(argv[2], NULL, 10);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
