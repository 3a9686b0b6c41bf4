#include "tests/evidence/play.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "engine/forecast/defrag.h"
#include "engine/read/view.h"

enum {
    NODES = 3,
    GPUS_PER_NODE = BH_PLAY_GPUS / NODES,
    SKUS = 6,
    SPARE_SKU = SKUS,
    SITE = NODES + BH_PLAY_GPUS + SKUS + BH_PLAY_TENANTS
};

/* A tenant that used something keeps its row of the ledger for good.  So that a history of
 * any length fits into one block, and rows meet their tenant again, the names are these. */
enum { TENANTS_EVER = 1000 };

#define DAY_NS (UINT64_C(86400) * 1000000000)

static uint32_t
draw(struct bh_play *play, uint32_t below)
{
    play->random ^= play->random << 13;
    play->random ^= play->random >> 7;
    play->random ^= play->random << 17;
    return (uint32_t)((play->random >> 33) % below);
}

static bool
chance(struct bh_play *play, uint32_t percent)
{
    return draw(play, 100) < percent;
}

static uint64_t
mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

/* ---- engines ---- */

struct bh_engine_caps
bh_play_caps(void)
{
    return (struct bh_engine_caps){ .tenants = 48,
                                    .skus = 16,
                                    .nodes = 4,
                                    .gpus = 16,
                                    .jobs = 256,
                                    .leases = 128,
                                    .partitions = 512,
                                    .classes = 128,
                                    .metered = TENANTS_EVER };
}

struct bh_engine *
bh_play_engine(const struct bh_engine_caps *caps)
{
    void *memory = aligned_alloc(16, (bh_engine_size(caps) + 15) & ~(size_t)15);

    BH_ASSERT(memory != NULL);
    return bh_engine_init(memory, caps);
}

struct bh_engine *
bh_play_copy(const struct bh_engine *engine, const struct bh_engine_caps *caps)
{
    struct bh_engine_caps have = bh_engine_caps(engine);
    size_t length = bh_engine_size(caps ? caps : &have);
    void *memory = aligned_alloc(16, (length + 15) & ~(size_t)15);
    struct bh_engine *copy;

    BH_ASSERT(memory != NULL);
    if (caps)
        return bh_engine_grow(engine, memory, caps);
    memcpy(memory, engine, length);
    copy = bh_engine_adopt(memory, length);
    if (!copy)
        free(memory);
    return copy;
}

static void
mix_bytes(void *self, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint64_t *hash = self, word;

    for (; length >= sizeof(word); length -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        *hash = mixed(*hash, word);
    }
    for (; length > 0; length--)
        *hash = mixed(*hash, *at++);
}

uint64_t
bh_play_digest(const struct bh_engine *engine)
{
    uint64_t hash = 1;

    bh_engine_digest(engine, mix_bytes, &hash);
    return hash;
}

static uint64_t
mix_piece(uint64_t hash, const struct bh_partition *partition)
{
    hash = mixed(hash, partition->partition.v);
    hash = mixed(hash, (uint64_t)partition->gpu.v << 32 | partition->profile);
    return mixed(hash, (uint64_t)partition->start << 1 | partition->carve);
}

static uint64_t
mix_decision(uint64_t hash, const struct bh_decision *decision)
{
    hash = mixed(hash, (uint64_t)decision->kind << 32 | decision->cause);
    hash = mixed(hash, decision->job.v);
    hash = mixed(hash, decision->lease.v);
    hash = mixed(hash, decision->for_job.v);
    hash = mixed(hash, decision->member);
    for (uint32_t i = 0; i < decision->partition_count; i++)
        hash = mix_piece(hash, &decision->partitions[i]);
    return hash;
}

static uint64_t
mix_effect(uint64_t hash, const struct bh_effect *effect)
{
    hash = mixed(hash, (uint64_t)effect->kind << 32 | effect->node.v);
    hash = mixed(hash, effect->order);
    hash = mixed(hash, effect->lease.v);
    hash = mixed(hash, effect->job.v);
    hash = mixed(hash, effect->grace_ns);
    hash = mixed(hash, (uint64_t)effect->state << 32 | effect->cause);
    hash = mixed(hash, (uint32_t)effect->exit_status);
    return mix_piece(hash, &effect->partition);
}

static uint64_t
mix_reason(uint64_t hash, const struct bh_reason *reason)
{
    hash = mixed(hash, (uint64_t)reason->code << 32 | reason->tenant.v);
    hash = mixed(hash, (uint64_t)reason->sku.v << 32 | reason->gpu.v);
    hash = mixed(hash, reason->expected);
    hash = mixed(hash, reason->job.v);
    hash = mixed(hash, reason->limit);
    hash = mixed(hash, reason->used);
    return mixed(hash, reason->wanted);
}

uint64_t
bh_play_answer(bh_rc rc, const struct bh_step *step)
{
    uint64_t hash = mixed(1, (uint64_t)rc);

    if (rc != BH_OK)
        return mix_reason(hash, &step->verdict);
    hash = mixed(hash, step->more);
    for (uint32_t i = 0; i < step->decision_count; i++)
        hash = mix_decision(hash, &step->decisions[i]);
    for (uint32_t i = 0; i < step->effect_count; i++)
        hash = mix_effect(hash, &step->effects[i]);
    return hash;
}

/* ---- the site ---- */

/* One draw in each full expression: C leaves open in which order others are made. */
static void
add_quota(struct bh_play *play, struct bh_ev_tenant *tenant, enum bh_quota_scope scope)
{
    struct bh_tenant_quota *quota = &tenant->quotas[tenant->quota_count++];

    quota->scope = scope;
    quota->of = BH_GPU_H100_80GB;
    if (scope == BH_QUOTA_SKU)
        quota->of = 1 + draw(play, SKUS - 1);
    quota->limit = 1 + draw(play, 6);
    if (scope == BH_QUOTA_MODEL) {
        quota->limit = 4200 + quota->limit / 2 * UINT64_C(4200);
        quota->guarantee = 2100;
        quota->withhold = draw(play, 2) * UINT64_C(1050);
    }
}

static void
tell_tenant(struct bh_play *play, uint32_t at, struct bh_event *event)
{
    static const uint64_t limits[] = { BH_UNLIMITED, BH_UNLIMITED, 4200, 8400, 1200 };
    static const uint64_t guarantees[] = { 0, 0, 2100, 4200 };
    struct bh_ev_tenant *tenant = &event->u.tenant;

    event->kind = BH_EV_TENANT;
    tenant->tenant.v = play->tenant_ids[at];
    if (at >= 2) /* 0 and 1 are roots, 2..4 departments, the rest projects */
        tenant->parent.v = play->tenant_ids[at < 5 ? draw(play, 2) : 2 + draw(play, 3)];
    tenant->kind = at < 2 ? BH_TENANT_ORGANIZATION : at < 5 ? BH_TENANT_DEPARTMENT : BH_TENANT_PROJECT;
    tenant->boundary = (enum bh_boundary)(chance(play, 60) ? 0 : draw(play, BH_BOUNDARIES));
    tenant->dedicated_nodes = chance(play, 6);
    tenant->limit = limits[draw(play, BH_COUNT(limits))];
    tenant->guarantee = guarantees[draw(play, BH_COUNT(guarantees))];
    tenant->withhold = chance(play, 20) ? draw(play, (uint32_t)tenant->guarantee + 1) : 0;
    tenant->user_limit = chance(play, 20) ? 600 + draw(play, 8) * UINT64_C(1050) : 0;
    tenant->weight = draw(play, 300);
    if (chance(play, 30))
        add_quota(play, tenant, BH_QUOTA_SKU);
    if (chance(play, 20))
        add_quota(play, tenant, BH_QUOTA_MODEL);
    if (chance(play, 10))
        tenant->budget = (struct bh_budget){ BH_PERIOD_DAY, BH_UNLIMITED, BH_UNLIMITED };
    if (tenant->budget.period && chance(play, 25))
        tenant->budget.gpu_s = 20;
    if (tenant->budget.period && chance(play, 25))
        tenant->budget.money = 30;
}

static void
tell_sku(struct bh_play *play, uint32_t id, struct bh_event *event)
{
    static const char *const on_h100[] = { "1g.10gb", "2g.20gb", "3g.40gb", "1g.20gb", NULL, "4g.40gb" };
    static const char *const on_a30[] = { "1g.6gb", "2g.12gb", NULL, "1g.6gb+me", NULL, "4g.24gb" };
    const char *names[] = { on_h100[id - 1], on_a30[id - 1] };
    static const enum bh_gpu_model models[] = { BH_GPU_H100_80GB, BH_GPU_A30_24GB };
    struct bh_ev_sku *sku = &event->u.sku;

    event->kind = BH_EV_SKU;
    sku->sku.v = id;
    sku->grade = on_h100[id - 1] ? BH_GRADE_C : BH_GRADE_B;
    sku->price = id * UINT64_C(1000000);
    sku->model_count = chance(play, 80) ? 2 : 1;
    for (uint32_t i = 0; i < sku->model_count; i++) {
        sku->models[i].model = models[i];
        sku->models[i].profile = names[i] ? bh_profile_find(models[i], names[i])->id.v : BH_PROFILE_WHOLE.v;
    }
}

static void
tell_gpu(struct bh_play *play, uint32_t at, struct bh_event *event)
{
    event->kind = BH_EV_GPU;
    event->u.gpu = play->gpus[at];
}

static void
tell_node(uint32_t node, bool up, struct bh_event *event)
{
    event->kind = BH_EV_NODE;
    event->u.node = (struct bh_ev_node){ { node }, up, 0, node == 1 ? 0 : 9000 };
}

static void
tell_site(struct bh_play *play, struct bh_event *event)
{
    uint32_t at = (uint32_t)play->told++;

    if (at < NODES) {
        tell_node(at + 1, true, event);
    } else if (at < NODES + BH_PLAY_GPUS) {
        tell_gpu(play, at - NODES, event);
    } else if (at < NODES + BH_PLAY_GPUS + SKUS) {
        tell_sku(play, at - NODES - BH_PLAY_GPUS + 1, event);
    } else {
        tell_tenant(play, at - NODES - BH_PLAY_GPUS - SKUS, event);
    }
}

static bool
play_has_tenant(const struct bh_play *play, uint32_t id)
{
    for (uint32_t i = 0; i < BH_PLAY_TENANTS; i++)
        if (play->tenant_ids[i] == id)
            return true;
    return false;
}

/* The next name that no tenant bears, in turn. */
static uint32_t
play_next_tenant(struct bh_play *play)
{
    do
        play->next_tenant = play->next_tenant % TENANTS_EVER + 1;
    while (play_has_tenant(play, play->next_tenant));
    return play->next_tenant;
}

void
bh_play_begin(struct bh_play *play, uint64_t seed)
{
    memset(play, 0, sizeof(*play));
    play->random = seed * 0x9e3779b97f4a7c15ull + 1;
    play->now_ns = 1000;
    play->next_job = 1;
    for (uint32_t i = 0; i < BH_PLAY_TENANTS; i++)
        play->tenant_ids[i] = play_next_tenant(play);
    for (uint32_t i = 0; i < BH_PLAY_GPUS; i++)
        play->gpus[i] =
            (struct bh_ev_gpu){ .gpu = { i + 1 },
                                .node = { 1 + i / GPUS_PER_NODE },
                                .managed = true,
                                .link = i % 2,
                                .numa = 1 + i % 2,
                                .model = i % GPUS_PER_NODE == 3 ? BH_GPU_A30_24GB : BH_GPU_H100_80GB,
                                .mig_capable = true };
}

/* ---- what people and time do ---- */

static void
submit(struct bh_play *play, struct bh_event *event)
{
    static const uint64_t limits[] = { 0, 0, 1000000000, 5000000000 };
    struct bh_ev_submit *job = &event->u.submit;

    if (play->job_count == BH_PLAY_JOBS)
        return;
    event->kind = BH_EV_SUBMIT;
    job->job.v = play->next_job++;
    job->tenant.v = play->tenant_ids[2 + draw(play, BH_PLAY_TENANTS - 2)];
    job->principal.v = 1 + draw(play, 3);
    job->sku.v = chance(play, 99) ? 1 + draw(play, SKUS - 1) : SPARE_SKU;
    job->count = chance(play, 70) ? 1 : 1 + draw(play, 4);
    job->gang = chance(play, 85) ? 0 : 2 + draw(play, 2);
    job->kind = (enum bh_job_kind)draw(play, BH_JOB_KINDS);
    job->priority = (enum bh_priority)(1 + draw(play, 4));
    job->contract = (enum bh_contract)draw(play, BH_CONTRACTS);
    job->time_limit_ns = limits[draw(play, BH_COUNT(limits))];
    job->grace_ns = draw(play, 1000000000);
    job->memory_mib = chance(play, 60) ? 0 : 1000 * (1 + draw(play, 4));
    job->hold = chance(play, 4);
}

/* What is frozen does not end by itself. */
static bool
may_exit(const struct bh_play_job *job)
{
    return job->lease != 0 && !job->frozen;
}

static void
exit_some(struct bh_play *play, struct bh_event *event)
{
    uint32_t from = draw(play, BH_PLAY_JOBS), at = from;

    while (at < from + play->job_count && !may_exit(&play->jobs[at % play->job_count]))
        at++;
    if (at == from + play->job_count)
        return; /* a TICK it is */
    event->kind = BH_EV_ENDED;
    event->u.ended.lease.v = play->jobs[at % play->job_count].lease;
    event->u.ended.cause = chance(play, 85) ? BH_END_EXITED : (enum bh_end_cause)draw(play, BH_END_CAUSES);
    event->u.ended.exit_status = chance(play, 80) ? 0 : 1;
    event->u.ended.unasked = chance(play, 50);
}

static void
cancel_some(struct bh_play *play, struct bh_event *event)
{
    uint32_t at = play->job_count ? draw(play, play->job_count) : 0;

    if (play->job_count == 0)
        return;
    event->kind = play->jobs[at].hold ? BH_EV_RELEASE : BH_EV_CANCEL;
    event->u.job.job.v = play->jobs[at].job;
    if (event->kind == BH_EV_CANCEL && draw(play, 4) == 0)
        event->u.job.cause = BH_END_DATASET;
}

static void
change_gpu(struct bh_play *play, struct bh_event *event)
{
    uint32_t at = draw(play, BH_PLAY_GPUS);
    struct bh_ev_gpu *gpu = &play->gpus[at];

    gpu->cordoned = chance(play, 15);
    gpu->fenced = chance(play, 15);
    gpu->managed = chance(play, 95);
    tell_gpu(play, at, event);
}

static void
change_node(struct bh_play *play, struct bh_event *event)
{
    uint32_t node = 1 + draw(play, NODES);

    tell_node(node, chance(play, 70), event);
}

static void
remove_tenant(struct bh_play *play, struct bh_event *event)
{
    event->kind = BH_EV_TENANT_REMOVE;
    event->u.tenant.tenant.v = play->tenant_ids[5 + draw(play, BH_PLAY_TENANTS - 5)];
}

static void
lose_piece(struct bh_play *play, struct bh_event *event)
{
    uint64_t known = play->partition_count < BH_PLAY_PIECES ? play->partition_count : BH_PLAY_PIECES;

    if (known == 0)
        return;
    event->kind = BH_EV_PARTITION_GONE;
    event->u.partition.partition.v = play->partitions[draw(play, (uint32_t)known)];
}

static void
change_settings(struct bh_play *play, struct bh_event *event)
{
    static const uint64_t half_lives[] = { 60000000000, 3600000000000, BH_UNLIMITED };

    event->kind = BH_EV_SETTINGS;
    event->u.settings.order = (enum bh_queue_order)draw(play, BH_ORDERS);
    event->u.settings.half_life_ns = half_lives[draw(play, BH_COUNT(half_lives))];
    event->u.settings.lending = (enum bh_lending)draw(play, BH_LENDINGS);
    event->u.settings.hotspots = chance(play, 50);
    event->u.settings.preshape = chance(play, 50);
    event->u.settings.spread_kinds = chance(play, 50);
    event->u.settings.defrag =
        (struct bh_defrag){ .mode = chance(play, 80) ? BH_DEFRAG_SUGGEST : BH_DEFRAG_OFF,
                            .moves = 50,
                            .gain_percent = 1,
                            .lost_gpu_s = 1000000,
                            .rest_ns = 1 };
}

/* What forecasts might say. */
static void
foresee(struct bh_play *play, struct bh_event *event)
{
    struct bh_ev_advice *advice = &event->u.advice;
    uint32_t count;
    const struct bh_profile *first = bh_profile_first(BH_GPU_H100_80GB, &count);

    event->kind = BH_EV_ADVICE;
    advice->of = (enum bh_advice_of)draw(play, BH_ADVICE_OFS);
    advice->tenant.v = play->tenant_ids[draw(play, BH_PLAY_TENANTS)];
    advice->expected = chance(play, 30) ? 0 : draw(play, 12600);
    advice->node.v = 1 + draw(play, 4);
    advice->hot = chance(play, 50);
    advice->profile = first[draw(play, count)].id.v;
    advice->ready = draw(play, 4);
}

/* The present plan of moves, or a tick where there is none. */
static void
move_some(const struct bh_engine *engine, struct bh_event *event)
{
    struct bh_defrag_plan plan;

    event->kind = BH_EV_TICK;
    if (!bh_defrag_find(engine, &plan))
        return;
    event->kind = BH_EV_MOVE;
    event->u.move = plan.move;
}

static void
change_spare_sku(struct bh_play *play, struct bh_event *event)
{
    if (chance(play, 50)) {
        tell_sku(play, SPARE_SKU, event);
        return;
    }
    event->kind = BH_EV_SKU_REMOVE;
    event->u.sku.sku.v = SPARE_SKU;
}

/* An answer or a command about something that may never have been. */
static void
tell_nonsense(struct bh_play *play, struct bh_event *event)
{
    static const enum bh_event_kind kinds[] = { BH_EV_CARVED,  BH_EV_DESTROYED, BH_EV_STARTED,
                                                BH_EV_RESUMED, BH_EV_SUSPENDED, BH_EV_ENDED,
                                                BH_EV_CANCEL,  BH_EV_RELEASE };

    event->kind = kinds[draw(play, BH_COUNT(kinds))];
    if (event->kind == BH_EV_CARVED || event->kind == BH_EV_DESTROYED)
        event->u.partition.partition.v = draw(play, 4000);
    else if (event->kind == BH_EV_ENDED)
        event->u.ended.lease.v = draw(play, 4000);
    else if (event->kind == BH_EV_CANCEL || event->kind == BH_EV_RELEASE)
        event->u.job.job.v = draw(play, 4000);
    else
        event->u.lease.lease.v = draw(play, 4000);
}

/* ---- what nodes do ---- */

static void
forget_effect(struct bh_play *play, uint32_t at)
{
    play->waiting_count--;
    memmove(&play->waiting[at], &play->waiting[at + 1],
            (play->waiting_count - at) * sizeof(play->waiting[0]));
}

/* A node answers, mostly its oldest order, mostly well. */
static void
answer_some(struct bh_play *play, struct bh_event *event)
{
    static const uint8_t kinds[BH_EFFECT_KINDS] = {
        [BH_FX_CARVE] = BH_EV_CARVED,      [BH_FX_DESTROY] = BH_EV_DESTROYED, [BH_FX_START] = BH_EV_STARTED,
        [BH_FX_SUSPEND] = BH_EV_SUSPENDED, [BH_FX_RESUME] = BH_EV_RESUMED,    [BH_FX_STOP] = BH_EV_ENDED,
        [BH_FX_RESET] = BH_EV_SERVICED,    [BH_FX_TEST] = BH_EV_SERVICED,
    };
    enum bh_outcome_kind outcome = BH_OUTCOME_OK;
    struct bh_effect effect;
    uint32_t at;

    if (play->waiting_count == 0) {
        submit(play, event);
        return;
    }
    at = draw(play, chance(play, 70) ? 1 : play->waiting_count);
    if (chance(play, 4))
        outcome = chance(play, 50) ? BH_OUTCOME_FAILED : BH_OUTCOME_CONTEXT_HELD;
    effect = play->waiting[at];
    forget_effect(play, at);
    event->kind = (enum bh_event_kind)kinds[effect.kind];
    if (event->kind == BH_EV_ENDED)
        event->u.ended =
            (struct bh_ev_ended){ .lease = effect.lease, .exit_status = 15, .cause = BH_END_SIGNALLED };
    else if (effect.kind == BH_FX_CARVE || effect.kind == BH_FX_DESTROY)
        event->u.partition = (struct bh_ev_partition){ effect.partition.partition, outcome, 0 };
    else if (event->kind == BH_EV_SERVICED)
        event->u.serviced = (struct bh_ev_serviced){ effect.partition.gpu, outcome, 0 };
    else
        event->u.lease = (struct bh_ev_lease){ effect.lease, outcome, 0 };
}

/* ---- faults, and what operators say of GPUs ---- */

static void
worsen(struct bh_play *play, const struct bh_engine *engine, struct bh_event *event)
{
    struct bh_ev_health *fault = &event->u.health;
    struct bh_partition_view partition;
    uint32_t cursor = 0, skip = draw(play, 12);

    event->kind = BH_EV_HEALTH;
    fault->gpu.v = 1 + draw(play, BH_PLAY_GPUS);
    while (bh_view_next_partition(engine, &cursor, &partition) && skip-- > 0) {
        fault->gpu = partition.partition.gpu;
        fault->partition = partition.partition.partition;
    }
    fault->ends = (enum bh_fault_ends)draw(play, fault->partition.v ? BH_FAULT_ENDS : 1);
    fault->then = (enum bh_fault_then)draw(play, BH_FAULT_THENS);
}

static void
hold(struct bh_play *play, struct bh_event *event)
{
    event->kind = BH_EV_CORDON;
    if (chance(play, 80))
        event->u.cordon.gpu.v = 1 + draw(play, BH_PLAY_GPUS);
    else
        event->u.cordon.node.v = 1 + draw(play, NODES);
    event->u.cordon.held = chance(play, 80) ? BH_HELD_NOT : (enum bh_held)draw(play, BH_HELDS);
    event->u.cordon.clear_fault = chance(play, 80);
}

/* A node that jobs did not start on was checked. */
static void
check(struct bh_play *play, struct bh_event *event)
{
    event->kind = BH_EV_CHECKED;
    event->u.checked.node.v = 1 + draw(play, NODES);
    event->u.checked.outcome = chance(play, 70) ? BH_OUTCOME_OK : BH_OUTCOME_FAILED;
}

static void
declare(struct bh_play *play, const struct bh_engine *engine, struct bh_event *event)
{
    struct bh_ev_layout *gpu_layout = &event->u.gpu_layout;
    const struct bh_profile *profile = bh_profile_find(BH_GPU_H100_80GB, "1g.10gb");

    event->kind = BH_EV_LAYOUT;
    gpu_layout->gpu.v = 1 + draw(play, BH_PLAY_GPUS);
    gpu_layout->apply = bh_view_applied(engine) + 1;
    gpu_layout->mode = (enum bh_layout_mode)draw(play, BH_LAYOUT_MODES);
    if (gpu_layout->mode != BH_LAYOUT_UNDECLARED)
        gpu_layout->partitions[gpu_layout->partition_count++] =
            (struct bh_ev_layout_partition){ profile->id.v, draw(play, 7) };
}

static void
happen(struct bh_play *play, const struct bh_engine *engine, struct bh_event *event)
{
    uint32_t what = draw(play, 1000);

    if (what < 270)
        submit(play, event);
    else if (what < 700)
        answer_some(play, event);
    else if (what < 850)
        exit_some(play, event);
    else if (what < 890)
        cancel_some(play, event);
    else if (what < 920)
        move_some(engine, event);
    else if (what < 950)
        event->kind = BH_EV_TICK;
    else if (what < 955)
        change_node(play, event);
    else if (what < 965)
        change_gpu(play, event);
    else if (what < 970)
        lose_piece(play, event);
    else if (what < 975)
        tell_tenant(play, draw(play, BH_PLAY_TENANTS), event);
    else if (what < 978)
        remove_tenant(play, event);
    else if (what < 980)
        tell_sku(play, 1 + draw(play, SKUS - 1), event);
    else if (what < 983)
        change_spare_sku(play, event);
    else if (what < 986)
        change_settings(play, event);
    else if (what < 990)
        foresee(play, event);
    else if (what < 992)
        worsen(play, engine, event);
    else if (what < 994)
        hold(play, event);
    else if (what < 995)
        check(play, event);
    else if (what < 997)
        declare(play, engine, event);
    else
        tell_nonsense(play, event);
}

void
bh_play_next(struct bh_play *play, const struct bh_engine *engine, struct bh_event *ret_event)
{
    memset(ret_event, 0, sizeof(*ret_event));
    play->now_ns += draw(play, 4) ? draw(play, 50000000) : 0;
    play->now_ns += draw(play, 4000) ? 0 : DAY_NS;
    if (play->told < SITE) {
        tell_site(play, ret_event);
    } else if (play->renewed) {
        tell_tenant(play, play->renewed - 1, ret_event);
        play->renewed = 0;
    } else {
        happen(play, engine, ret_event);
    }
    ret_event->now_ns = play->now_ns;
    ret_event->seq = ++play->seq;
}

/* ---- what was answered ---- */

static struct bh_play_job *
job_of(struct bh_play *play, uint64_t id)
{
    for (uint32_t i = 0; i < play->job_count; i++)
        if (play->jobs[i].job == id)
            return &play->jobs[i];
    return NULL;
}

static void
learn_job(struct bh_play *play, const struct bh_effect *effect)
{
    struct bh_play_job *job = job_of(play, effect->job.v);

    if (!job)
        return;
    if (effect->state >= BH_JOB_COMPLETED)
        *job = play->jobs[--play->job_count];
    else if (effect->state == BH_JOB_PENDING)
        job->lease = 0;
}

/* A STOP takes the place of the lease's orders that are not answered. */
static void
drop_orders(struct bh_play *play, uint64_t lease)
{
    for (uint32_t i = play->waiting_count; i > 0; i--) {
        const struct bh_effect *effect = &play->waiting[i - 1];

        if (effect->lease.v == lease && effect->kind != BH_FX_CARVE && effect->kind != BH_FX_DESTROY)
            forget_effect(play, i - 1);
    }
}

static void
learn_effect(struct bh_play *play, const struct bh_effect *effect)
{
    struct bh_play_job *job = job_of(play, effect->job.v);

    play->effects[effect->kind]++;
    if (effect->kind == BH_FX_JOB) {
        learn_job(play, effect);
        return;
    }
    if (effect->kind == BH_FX_CARVE)
        play->partitions[play->partition_count++ % BH_PLAY_PIECES] = effect->partition.partition.v;
    if (effect->kind == BH_FX_START && job)
        job->lease = effect->lease.v;
    if (job)
        job->frozen = effect->kind == BH_FX_SUSPEND;
    if (effect->kind == BH_FX_STOP)
        drop_orders(play, effect->lease.v);
    BH_ASSERT(play->waiting_count < BH_PLAY_WAITING);
    play->waiting[play->waiting_count++] = *effect;
}

static void
learn_event(struct bh_play *play, const struct bh_event *event)
{
    struct bh_play_job *job;

    if (event->kind == BH_EV_SUBMIT) {
        play->jobs[play->job_count++] =
            (struct bh_play_job){ .job = event->u.submit.job.v, .hold = event->u.submit.hold };
    } else if (event->kind == BH_EV_RELEASE) {
        job = job_of(play, event->u.job.job.v);
        if (job)
            job->hold = false;
    } else if (event->kind == BH_EV_TENANT_REMOVE) {
        for (uint32_t i = 0; i < BH_PLAY_TENANTS; i++)
            if (play->tenant_ids[i] == event->u.tenant.tenant.v)
                play->renewed = i + 1;
        play->tenant_ids[play->renewed - 1] = play_next_tenant(play);
    }
}

void
bh_play_took(struct bh_play *play, const struct bh_event *event, bh_rc rc, const struct bh_step *step)
{
    play->trail = mixed(play->trail, bh_play_answer(rc, step));
    if (rc != BH_OK) {
        play->refused++;
        return;
    }
    play->accepted++;
    play->events[event->kind]++;
    learn_event(play, event);
    for (uint32_t i = 0; i < step->decision_count; i++)
        play->decisions[step->decisions[i].kind]++;
    for (uint32_t i = 0; i < step->effect_count; i++)
        learn_effect(play, &step->effects[i]);
}

const char *
bh_play_missing(const struct bh_play *play)
{
    for (uint32_t i = 0; i < BH_EVENT_KINDS; i++)
        if (play->events[i] == 0)
            return bh_event_names[i];
    for (uint32_t i = 0; i < BH_DECISION_KINDS; i++)
        if (play->decisions[i] == 0)
            return bh_decision_names[i];
    return NULL;
}
