/* Bytes as a history of the engine: each step reads an opcode and a few operands.
 * After every step the invariants hold, a refused event has changed nothing, and a
 * twin that replays the decisions has the same digest; what follows from one event comes to
 * an end. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "engine/forecast/defrag.h"
#include "engine/read/view.h"
#include "tests/fuzz/fuzz.h"

enum { STEPS_MAX = 400, MEMORY = 9 << 17, OUTSTANDING = 64, SKUS = 4, TENANTS = 6, ROUNDS_MAX = 32 };

static const struct bh_engine_caps caps = { .tenants = 16,
                                            .skus = 8,
                                            .nodes = 3,
                                            .gpus = 6,
                                            .jobs = 48,
                                            .leases = 112,
                                            .partitions = 256,
                                            .classes = 48,
                                            .metered = 64 };

struct tape {
    const uint8_t *at;
    size_t left;
};

struct fuzz {
    struct tape tape;
    struct bh_engine *engine, *twin;
    uint64_t now_ns, seq, next_job, digest;
};

/* The next byte, below `below`; 0 past the end. */
static uint32_t
pick(struct tape *tape, uint32_t below)
{
    uint8_t byte = 0;

    if (tape->left > 0) {
        byte = *tape->at++;
        tape->left--;
    }
    return byte % below;
}

static void
mix(void *self, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    uint64_t *hash = self, word;

    for (; length >= sizeof word; length -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        *hash = (*hash ^ word) * 0x9e3779b97f4a7c15ull;
        *hash ^= *hash >> 29;
    }
    for (; length > 0; length--)
        *hash = (*hash ^ *at++) * 0x100000001b3ull;
}

static uint64_t
digest_of(const struct bh_engine *engine)
{
    uint64_t hash = 1;

    bh_engine_digest(engine, mix, &hash);
    return hash;
}

/* Take the event; whether more is to be decided. */
static bool
step_once(struct fuzz *fuzz, struct bh_event *event)
{
    static struct bh_step step, again;
    char broken[160] = "";
    bh_rc rc;

    event->now_ns = fuzz->now_ns;
    event->seq = ++fuzz->seq;
    rc = bh_engine_step(fuzz->engine, event, &step);
    if (rc != BH_OK) {
        BH_ASSERT(step.verdict.code != BH_REASON_NONE);
        BH_ASSERT(digest_of(fuzz->engine) == fuzz->digest);
        return false;
    }
    if (!bh_engine_check(fuzz->engine, broken, sizeof broken))
        fprintf(stderr, "%s\n", broken);
    BH_ASSERT(!broken[0]);
    rc = bh_engine_replay(fuzz->twin, event, step.decisions, step.decision_count, &again);
    BH_ASSERT(rc == BH_OK);
    fuzz->digest = digest_of(fuzz->engine);
    BH_ASSERT(digest_of(fuzz->twin) == fuzz->digest);
    return step.more;
}

/* Send it, and ask for the rest of what is decided then: that ends. */
static void
send(struct fuzz *fuzz, struct bh_event *event)
{
    struct bh_event tick = { .kind = BH_EV_TICK };
    uint32_t rounds = 0;

    for (bool more = step_once(fuzz, event); more; more = step_once(fuzz, &tick))
        BH_ASSERT(++rounds < ROUNDS_MAX);
}

/* ---- events ---- */

static void
set_tenant(struct fuzz *fuzz)
{
    static const uint64_t amounts[] = { BH_UNLIMITED, 0, 600, 2100, 4200, 9000, UINT64_MAX - 1 };
    struct tape *tape = &fuzz->tape;
    struct bh_event event = { .kind = BH_EV_TENANT };
    struct bh_ev_tenant *tenant = &event.u.tenant;

    tenant->tenant.v = pick(tape, TENANTS + 1);
    tenant->parent.v = pick(tape, TENANTS + 1);
    tenant->kind = (enum bh_tenant_kind)pick(tape, BH_TENANT_KINDS + 1);
    tenant->boundary = (enum bh_boundary)pick(tape, BH_BOUNDARIES + 1);
    tenant->dedicated_nodes = pick(tape, 8) == 1;
    tenant->limit = amounts[pick(tape, BH_COUNT(amounts))];
    tenant->guarantee = amounts[1 + pick(tape, BH_COUNT(amounts) - 1)];
    tenant->withhold = pick(tape, 3) * 600;
    tenant->user_limit = pick(tape, 4) * 600;
    tenant->weight = pick(tape, 300);
    tenant->budget = (struct bh_budget){ (enum bh_period)pick(tape, BH_PERIODS + 1),
                                         amounts[pick(tape, BH_COUNT(amounts))], 1000 };
    tenant->min_runtime_ns = pick(tape, 4) * 700000000ull;
    tenant->quota_count = pick(tape, 3);
    for (uint32_t i = 0; i < tenant->quota_count; i++)
        tenant->quotas[i] =
            (struct bh_tenant_quota){ (enum bh_quota_scope)pick(tape, BH_QUOTA_SCOPES + 1),
                                      pick(tape, SKUS + 1), .limit = amounts[pick(tape, BH_COUNT(amounts))],
                                      .guarantee = pick(tape, 9) * 600, .withhold = pick(tape, 9) * 300 };
    send(fuzz, &event);
}

static void
foresee(struct fuzz *fuzz)
{
    struct tape *tape = &fuzz->tape;
    struct bh_event event = { .kind = BH_EV_ADVICE };

    event.u.advice = (struct bh_ev_advice){ .of = (enum bh_advice_of)pick(tape, BH_ADVICE_OFS + 1),
                                            .tenant = { pick(tape, TENANTS + 1) },
                                            .expected = pick(tape, 9) * 1050,
                                            .node = { pick(tape, 4) },
                                            .hot = pick(tape, 2) == 1,
                                            .profile = pick(tape, 140),
                                            .ready = pick(tape, 4) };
    send(fuzz, &event);
}

static void
set_settings(struct fuzz *fuzz)
{
    static const uint64_t half_lives[] = { BH_UNLIMITED, 0, 60000000000, 3600000000000 };
    static const uint64_t runs[] = { 0, 1, 20000000000, 40000000000, BH_SPAN_MAX_NS, BH_SPAN_MAX_NS + 1 };
    struct tape *tape = &fuzz->tape;
    struct bh_event event = { .kind = BH_EV_SETTINGS };

    event.u.settings.order = (enum bh_queue_order)pick(tape, BH_ORDERS + 1);
    event.u.settings.half_life_ns = half_lives[pick(tape, BH_COUNT(half_lives))];
    event.u.settings.backfill = pick(tape, 3) > 0;
    event.u.settings.assumed_run_ns = runs[pick(tape, BH_COUNT(runs))];
    event.u.settings.min_runtime_ns = pick(tape, 3) * 1000000000ull;
    event.u.settings.lending = (enum bh_lending)pick(tape, BH_LENDINGS + 1);
    event.u.settings.hotspots = pick(tape, 2) == 1;
    event.u.settings.preshape = pick(tape, 2) == 1;
    event.u.settings.spread_kinds = event.u.settings.preshape;
    event.u.settings.defrag.mode = (enum bh_defrag_mode)pick(tape, BH_DEFRAG_MODES + 1);
    event.u.settings.defrag.gain_percent = pick(tape, 3);
    event.u.settings.defrag.rest_ns = pick(tape, 3);
    send(fuzz, &event);
    for (uint32_t i = pick(tape, 3); i > 0; i--)
        foresee(fuzz);
}

/* Of several sizes; one of no memory, which is none. */
static uint32_t
a_share(uint32_t sku)
{
    return 1u << 30 | (sku & 3) << 26 | (600 + 450 * sku) << 13 | (sku == SKUS ? 0 : 300 * (sku + 1));
}

static void
set_sku(struct fuzz *fuzz)
{
    struct tape *tape = &fuzz->tape;
    struct bh_event event = { .kind = BH_EV_SKU };
    struct bh_ev_sku *sku = &event.u.sku;

    sku->sku.v = pick(tape, SKUS + 1);
    sku->grade = (enum bh_grade)pick(tape, BH_GRADES + 1);
    sku->model_count = pick(tape, 3);
    for (uint32_t i = 0; i < sku->model_count; i++) {
        uint32_t model = i ? BH_GPU_A30_24GB : BH_GPU_H100_80GB, count;
        const struct bh_profile *first = bh_profile_first((enum bh_gpu_model)model, &count);
        uint32_t row = pick(tape, count + 2);

        sku->models[i].model = model;
        sku->models[i].profile = row < count ? first[row].id.v : row == count ? 1 : 0;
        if (row > count && sku->grade == BH_GRADE_F)
            sku->models[i].profile = a_share(sku->sku.v);
    }
    send(fuzz, &event);
}

static void
set_node(struct fuzz *fuzz)
{
    struct bh_event event = { .kind = BH_EV_NODE };

    event.u.node.node.v = pick(&fuzz->tape, 4);
    event.u.node.up = pick(&fuzz->tape, 4) > 0;
    event.u.node.cpu_milli = 1000 * pick(&fuzz->tape, 9);
    event.u.node.memory_mib = 1000 * pick(&fuzz->tape, 9);
    send(fuzz, &event);
}

static void
set_gpu(struct fuzz *fuzz)
{
    uint32_t id = pick(&fuzz->tape, 7), flags = pick(&fuzz->tape, 256);
    struct bh_event event = { .kind = BH_EV_GPU };

    event.u.gpu = (struct bh_ev_gpu){ .gpu = { id },
                                      .node = { flags & 128 ? flags % 5 : 1 + id % 2 },
                                      .model = id % 3 ? BH_GPU_H100_80GB : BH_GPU_A30_24GB,
                                      .managed = flags % 16 != 15,
                                      .cordoned = (flags >> 4 & 7) == 7,
                                      .fenced = (flags >> 4 & 7) == 6,
                                      .share_limit = flags % 4 * BH_GPU_PARTS,
                                      .mig_capable = flags % 8 != 7,
                                      .lone_carve = id % 3 == 2,
                                      .layout = (enum bh_pool_layout)(flags % (BH_POOL_LAYOUTS + 1)) };
    send(fuzz, &event);
}

static void
submit(struct fuzz *fuzz)
{
    struct tape *tape = &fuzz->tape;
    struct bh_event event = { .kind = BH_EV_SUBMIT };
    struct bh_ev_submit *job = &event.u.submit;

    job->job.v = pick(tape, 32) ? fuzz->next_job++ : pick(tape, 8);
    job->tenant.v = pick(tape, TENANTS + 1);
    job->sku.v = pick(tape, SKUS + 1);
    job->count = pick(tape, 4) ? 1 : pick(tape, BH_JOB_COUNT_MAX + 2);
    job->kind = (enum bh_job_kind)pick(tape, BH_JOB_KINDS);
    job->priority = (enum bh_priority)pick(tape, BH_PRIORITIES + 1);
    job->contract = (enum bh_contract)pick(tape, BH_CONTRACTS);
    job->time_limit_ns = pick(tape, 4) * 1000000000ull;
    job->hold = pick(tape, 8) == 7;
    send(fuzz, &event);
}

/* One that time says more about: how long it may run, by when it must have ended, how it
 * makes way; maybe with a gang. */
static void
submit_timed(struct fuzz *fuzz)
{
    static const uint64_t spans[] = { 0,          1,           500000000,     1000000000,
                                      5000000000, 60000000000, 3600000000000, UINT64_MAX / 2,
                                      UINT64_MAX };
    struct tape *tape = &fuzz->tape;
    struct bh_event event = { .kind = BH_EV_SUBMIT };
    struct bh_ev_submit *job = &event.u.submit;
    uint64_t deadline_ns;

    job->job.v = fuzz->next_job++;
    job->tenant.v = 1 + pick(tape, TENANTS);
    job->sku.v = 1 + pick(tape, SKUS);
    job->count = 1 + pick(tape, 2);
    job->gang = pick(tape, 4);
    job->kind = (enum bh_job_kind)pick(tape, BH_JOB_KINDS);
    job->priority = (enum bh_priority)pick(tape, BH_PRIORITIES + 1);
    job->contract = (enum bh_contract)pick(tape, BH_CONTRACTS);
    job->time_limit_ns = spans[pick(tape, BH_COUNT(spans))];
    deadline_ns = spans[pick(tape, BH_COUNT(spans))];
    job->deadline_ns =
        deadline_ns && deadline_ns < UINT64_MAX - fuzz->now_ns ? fuzz->now_ns + deadline_ns : deadline_ns;
    job->grace_ns = spans[pick(tape, BH_COUNT(spans))];
    job->checkpoint_signal = pick(tape, 70);
    job->principal.v = pick(tape, 3);
    job->cpu_milli = pick(tape, 8) * 1000;
    job->memory_mib = pick(tape, 8) * 1024;
    send(fuzz, &event);
}

static void
command_job(struct fuzz *fuzz)
{
    uint64_t what = pick(&fuzz->tape, 3);
    struct bh_event event = { .kind = what ? BH_EV_CANCEL : BH_EV_RELEASE };
    uint64_t back = pick(&fuzz->tape, 32);

    event.u.job.cause = what == 2 ? BH_END_DATASET : BH_END_NONE;
    event.u.job.job.v = fuzz->next_job > back ? fuzz->next_job - back : 0;
    send(fuzz, &event);
}

/* The node answers one of the effects that are outstanding. */
static void
answer(struct fuzz *fuzz)
{
    static const uint8_t kinds[BH_EFFECT_KINDS] = {
        [BH_FX_CARVE] = BH_EV_CARVED,      [BH_FX_DESTROY] = BH_EV_DESTROYED, [BH_FX_START] = BH_EV_STARTED,
        [BH_FX_SUSPEND] = BH_EV_SUSPENDED, [BH_FX_RESUME] = BH_EV_RESUMED,    [BH_FX_STOP] = BH_EV_ENDED,
        [BH_FX_RESET] = BH_EV_SERVICED,    [BH_FX_TEST] = BH_EV_SERVICED,
    };
    static struct bh_effect effects[OUTSTANDING];
    bh_node_id node = { 1 + pick(&fuzz->tape, 3) };
    uint32_t count = bh_engine_outstanding(fuzz->engine, node, effects, OUTSTANDING);
    uint32_t how = pick(&fuzz->tape, 16);
    struct bh_event event = { 0 };
    const struct bh_effect *effect;

    for (uint32_t i = 1; i < count; i++)
        BH_ASSERT(effects[i - 1].order < effects[i].order);
    if (count == 0)
        return;
    effect = &effects[how < 12 ? 0 : pick(&fuzz->tape, count)];
    event.kind = (enum bh_event_kind)kinds[effect->kind];
    if (event.kind == BH_EV_ENDED)
        event.u.ended = (struct bh_ev_ended){ .lease = effect->lease, .cause = (enum bh_end_cause)how };
    else if (effect->kind == BH_FX_CARVE || effect->kind == BH_FX_DESTROY)
        event.u.partition = (struct bh_ev_partition){ effect->partition.partition,
                                                      how % 4 == 3 ? BH_OUTCOME_FAILED : BH_OUTCOME_OK, 0 };
    else if (event.kind == BH_EV_SERVICED)
        event.u.serviced =
            (struct bh_ev_serviced){ effect->partition.gpu, how % 4 == 3 ? BH_OUTCOME_FAILED : BH_OUTCOME_OK,
                                     how == 15 ? BH_UNAVAILABLE : BH_OK };
    else
        event.u.lease =
            (struct bh_ev_lease){ effect->lease, (enum bh_outcome_kind)(how % 8 < 6 ? 0 : how % 8 - 5), 0 };
    send(fuzz, &event);
}

/* Reports about numbers that may or may not mean something. */
static void
report(struct fuzz *fuzz)
{
    static const uint8_t kinds[] = { BH_EV_CARVED,  BH_EV_DESTROYED, BH_EV_PARTITION_GONE,
                                     BH_EV_STARTED, BH_EV_SUSPENDED, BH_EV_RESUMED };
    struct bh_event event = { .kind = (enum bh_event_kind)kinds[pick(&fuzz->tape, BH_COUNT(kinds))] };

    if (event.kind <= BH_EV_PARTITION_GONE)
        event.u.partition = (struct bh_ev_partition){ { pick(&fuzz->tape, 64) },
                                                      (enum bh_outcome_kind)pick(&fuzz->tape, 4),
                                                      0 };
    else
        event.u.lease =
            (struct bh_ev_lease){ { pick(&fuzz->tape, 64) }, (enum bh_outcome_kind)pick(&fuzz->tape, 3), 0 };
    send(fuzz, &event);
}

static void
end_lease(struct fuzz *fuzz)
{
    struct bh_event event = { .kind = BH_EV_ENDED };

    event.u.ended.lease.v = pick(&fuzz->tape, 96);
    event.u.ended.cause = (enum bh_end_cause)pick(&fuzz->tape, BH_END_CAUSES + 1);
    event.u.ended.exit_status = (int32_t)pick(&fuzz->tape, 2);
    send(fuzz, &event);
}

static void
take_away(struct fuzz *fuzz)
{
    struct bh_event event = { .kind = pick(&fuzz->tape, 2) ? BH_EV_TENANT_REMOVE : BH_EV_SKU_REMOVE };

    if (event.kind == BH_EV_TENANT_REMOVE)
        event.u.tenant.tenant.v = pick(&fuzz->tape, TENANTS + 1);
    else
        event.u.sku.sku.v = pick(&fuzz->tape, SKUS + 1);
    send(fuzz, &event);
}

static void
pass_time(struct fuzz *fuzz)
{
    struct bh_event event = { .kind = BH_EV_TICK };
    uint64_t next_ns = bh_engine_next_tick_ns(fuzz->engine);

    if (pick(&fuzz->tape, 2) && next_ns != UINT64_MAX)
        fuzz->now_ns = next_ns > fuzz->now_ns ? next_ns : fuzz->now_ns;
    else
        fuzz->now_ns += pick(&fuzz->tape, 256) * 50000000ull;
    send(fuzz, &event);
}

/* The present plan of moves, or something like it. */
static void
move_jobs(struct fuzz *fuzz)
{
    struct bh_event event = { .kind = BH_EV_MOVE };
    struct bh_defrag_plan plan = { .move = { .move_count = 1, .placement_count = 1 } };
    struct bh_ev_move *move = &event.u.move;
    bool found = bh_defrag_find(fuzz->engine, &plan);

    BH_ASSERT(digest_of(fuzz->engine) == fuzz->digest);
    *move = plan.move;
    if (!found || pick(&fuzz->tape, 4) == 0) {
        move->moves[0].job.v = pick(&fuzz->tape, 128);
        move->moves[0].lease.v = pick(&fuzz->tape, 128);
        move->placements[0].gpu.v = pick(&fuzz->tape, 8);
        move->placements[0].start = pick(&fuzz->tape, 9);
        move->move_count = pick(&fuzz->tape, BH_MOVES_MAX + 2);
        move->placement_count = pick(&fuzz->tape, 4);
    }
    send(fuzz, &event);
}

/* Something for a GPU, or for several of one change. */
static void
declare(struct fuzz *fuzz)
{
    struct bh_event event = { .kind = BH_EV_LAYOUT };
    struct bh_ev_layout *gpu_layout = &event.u.gpu_layout;
    uint32_t count;
    const struct bh_profile *first = bh_profile_first(BH_GPU_H100_80GB, &count);

    gpu_layout->gpu.v = pick(&fuzz->tape, 8);
    gpu_layout->mode = (enum bh_layout_mode)pick(&fuzz->tape, BH_LAYOUT_MODES + 1);
    gpu_layout->apply = bh_view_applied(fuzz->engine) + pick(&fuzz->tape, 3);
    gpu_layout->partition_count = pick(&fuzz->tape, BH_LAYOUT_MAX + 1);
    for (uint32_t i = 0; i < gpu_layout->partition_count; i++)
        gpu_layout->partitions[i] =
            (struct bh_ev_layout_partition){ first[pick(&fuzz->tape, count)].id.v, pick(&fuzz->tape, 9) };
    send(fuzz, &event);
}

/* A GPU has a fault, or people say something of it. */
static void
fall_ill(struct fuzz *fuzz)
{
    struct bh_event event = { .kind = BH_EV_HEALTH };

    if (pick(&fuzz->tape, 3) == 0) {
        event.kind = BH_EV_CORDON;
        event.u.cordon.gpu.v = pick(&fuzz->tape, 4);
        event.u.cordon.node.v = pick(&fuzz->tape, 3) == 0 ? 1 : 0;
        event.u.cordon.held = (enum bh_held)pick(&fuzz->tape, BH_HELDS + 1);
        event.u.cordon.clear_fault = pick(&fuzz->tape, 2);
        send(fuzz, &event);
        return;
    }
    event.u.health =
        (struct bh_ev_health){ .gpu = { pick(&fuzz->tape, 4) },
                               .partition = { pick(&fuzz->tape, 32) },
                               .ends = (enum bh_fault_ends)pick(&fuzz->tape, BH_FAULT_ENDS + 1),
                               .then = (enum bh_fault_then)pick(&fuzz->tape, BH_FAULT_THENS + 1) };
    send(fuzz, &event);
}

/* Questions change nothing. */
static void
ask(struct fuzz *fuzz)
{
    struct bh_reason why;
    uint64_t back = pick(&fuzz->tape, 16);

    bh_engine_why(fuzz->engine, (bh_job_id){ fuzz->next_job - back }, fuzz->now_ns, &why);
    BH_ASSERT((uint32_t)why.code < BH_REASONS);
    BH_ASSERT(digest_of(fuzz->engine) == fuzz->digest);
}

static void
build(struct fuzz *fuzz)
{
    struct bh_event event = { .kind = BH_EV_NODE, .u.node = { { 1 }, true } };

    send(fuzz, &event);
    event = (struct bh_event){ .kind = BH_EV_SKU };
    event.u.sku = (struct bh_ev_sku){ .sku = { 1 }, .model_count = 1 };
    event.u.sku.models[0].model = BH_GPU_H100_80GB;
    event.u.sku.models[0].profile = bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v;
    send(fuzz, &event);
    event = (struct bh_event){ .kind = BH_EV_TENANT };
    event.u.tenant = (struct bh_ev_tenant){ .tenant = { 1 }, .limit = BH_UNLIMITED };
    send(fuzz, &event);
    event = (struct bh_event){ .kind = BH_EV_GPU };
    event.u.gpu = (struct bh_ev_gpu){
        .gpu = { 2 }, .node = { 1 }, .model = BH_GPU_H100_80GB, .managed = true, .mig_capable = true
    };
    send(fuzz, &event);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const steps[])(struct fuzz *) = {
        submit,       answer,       answer,       answer,    submit,  end_lease, pass_time, command_job,
        set_tenant,   set_sku,      set_gpu,      set_node,  report,  take_away, ask,       answer,
        set_settings, submit_timed, submit_timed, move_jobs, declare, fall_ill,
    };
    static _Alignas(16) unsigned char memory[2][MEMORY];
    struct fuzz fuzz = { .tape = { data, size }, .now_ns = 1, .next_job = 100 };

    BH_ASSERT(bh_engine_size(&caps) <= MEMORY);
    fuzz.engine = bh_engine_init(memory[0], &caps);
    fuzz.twin = bh_engine_init(memory[1], &caps);
    fuzz.digest = digest_of(fuzz.engine);
    build(&fuzz);
    for (uint32_t i = 0; i < STEPS_MAX && fuzz.tape.left > 0; i++)
        steps[pick(&fuzz.tape, BH_COUNT(steps))](&fuzz);
    return 0;
}
