/* The engine against a search that tries everything (optimum.h), on small random sites
 * where all is quiet: one job is submitted, and
 *
 *   it is placed, if any legal place exists, and the place is legal;
 *   one partition goes where it takes least of what the room is worth, several not much worse,
 *   the members of a gang on as few nodes as can be;
 *   if it is not placed, no legal place exists;
 *   if others are made to leave for it, the room they make is legal, and no cheaper set of
 *   them would do; if they are not, no set at all would do.
 *
 * Choosing partition by partition is not always best: how often several partitions, and victims, cost
 * more than the least is counted, printed and bounded.
 *
 *   optimum_test [cases [seed]] */

#include "base/attr.h"
#include "engine/gpu/gpu_form.h"
#include "engine/gpu/node_index.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"
#include "tests/evidence/optimum.h"

static uint64_t cases_wanted = 1500, seed_wanted = 1;

enum { SKUS = 6, VICTIMS_TRIED = 9, ANSWERS_MAX = 2000 };

struct tally {
    uint64_t cases, refused, placed, several, scattered, worse, none;
    uint64_t preempted, preempted_several, dearer;
    uint64_t too_many;
    uint64_t dearer_singles, dearer_by[3]; /* class, work lost, number */
    int64_t worse_by, worst_by, least_sum;
};

struct small {
    struct bh_fixture *fixture;
    uint64_t random;
    struct bh_opt_site site;
    struct bh_ev_sku skus[SKUS + 1];
    struct tally tally;
};

static uint32_t
draw(struct small *small, uint32_t below)
{
    small->random ^= small->random << 13;
    small->random ^= small->random >> 7;
    small->random ^= small->random << 17;
    return (uint32_t)((small->random >> 33) % below);
}

static bool
chance(struct small *small, uint32_t percent)
{
    return draw(small, 100) < percent;
}

/* ---- a small site ---- */

static void
add_gpus(struct small *small)
{
    struct bh_opt_site *site = &small->site;
    uint32_t nodes = 1 + draw(small, BH_OPT_NODES), gpus = 1 + draw(small, 3);

    for (uint32_t i = 0; i < nodes; i++)
        bh_fixture_node(small->fixture, i + 1, true);
    for (uint32_t i = 0; i < nodes * gpus; i++) {
        struct bh_opt_gpu *gpu = &site->gpus[site->gpu_count++];

        *gpu = (struct bh_opt_gpu){ .id = i + 1, .node = i / gpus, .open = true, .model = BH_GPU_A30_24GB };
        if (chance(small, 60))
            gpu->model = BH_GPU_H100_80GB;
        gpu->mig = chance(small, 92);
        bh_fixture_gpu(small->fixture, (struct bh_ev_gpu){ .gpu = { gpu->id },
                                                           .node = { gpu->node + 1 },
                                                           .model = gpu->model,
                                                           .managed = true,
                                                           .mig_capable = gpu->mig });
    }
}

static void
add_skus(struct small *small)
{
    static const char *const on_h100[] = { "1g.10gb", "2g.20gb", "3g.40gb", "1g.20gb", NULL, "4g.40gb" };
    static const char *const on_a30[] = { "1g.6gb", "2g.12gb", "2g.12gb+me", "1g.6gb+me", NULL, NULL };

    for (uint32_t i = 0; i < SKUS; i++) {
        const char *names[] = { on_h100[i], on_a30[i] };
        struct bh_ev_sku *sku = &small->skus[i + 1];

        *sku = (struct bh_ev_sku){ .sku = { i + 1 },
                                   .grade = BH_GRADE_C,
                                   .model_count = 1 + (draw(small, 4) > 0) };
        if (chance(small, 15))
            sku->grade = BH_GRADE_B; /* for MIG: only tenants with nodes of their own */
        for (uint32_t k = 0; k < sku->model_count; k++) {
            sku->models[k].model = k ? BH_GPU_A30_24GB : BH_GPU_H100_80GB;
            sku->models[k].profile = BH_PROFILE_WHOLE.v;
            if (names[k])
                sku->models[k].profile =
                    bh_profile_find((enum bh_gpu_model)sku->models[k].model, names[k])->id.v;
        }
        bh_fixture_must_send(small->fixture, &(struct bh_event){ .kind = BH_EV_SKU, .u.sku = *sku });
    }
}

/* Limits as the engine takes them, and as the search does. */
static void
limit(struct small *small, struct bh_opt_tenant *row, struct bh_ev_tenant *tenant)
{
    row->limit = row->user_limit = BH_UNLIMITED;
    if (chance(small, 20))
        row->limit = tenant->limit = 1200 + draw(small, 8) * UINT64_C(1050);
    if (chance(small, 15))
        row->user_limit = tenant->user_limit = 1200 + draw(small, 8) * UINT64_C(1050);
    if (chance(small, 15)) {
        row->quota_sku = 1 + draw(small, SKUS);
        row->quota_pieces = 1 + draw(small, 5);
        tenant->quotas[tenant->quota_count++] =
            (struct bh_tenant_quota){ BH_QUOTA_SKU, row->quota_sku, .limit = row->quota_pieces };
    }
    if (chance(small, 15)) {
        row->quota_model = BH_GPU_H100_80GB;
        row->quota_parts = 2100 + draw(small, 5) * UINT64_C(2100);
        tenant->quotas[tenant->quota_count++] =
            (struct bh_tenant_quota){ BH_QUOTA_MODEL, row->quota_model, .limit = row->quota_parts };
    }
}

/* Two organizations; departments 2 and 3 and their projects below the first. */
static void
add_tenants(struct small *small)
{
    static const uint32_t parents[] = { BH_OPT_NOBODY, 0, 0, 1, 1, 2, BH_OPT_NOBODY, 6 };
    static const enum bh_tenant_kind kinds[] = { BH_TENANT_ORGANIZATION, BH_TENANT_DEPARTMENT,
                                                 BH_TENANT_DEPARTMENT,   BH_TENANT_PROJECT,
                                                 BH_TENANT_PROJECT,      BH_TENANT_PROJECT,
                                                 BH_TENANT_ORGANIZATION, BH_TENANT_PROJECT };

    for (uint32_t i = 0; i < BH_COUNT(parents); i++) {
        struct bh_opt_tenant *row = &small->site.tenants[small->site.tenant_count++];
        struct bh_ev_tenant tenant = { .tenant = { i + 1 }, .kind = kinds[i] };

        *row = (struct bh_opt_tenant){ .id = i + 1, .parent = parents[i] };
        row->boundary = bh_boundary_default(kinds[i]);
        if (chance(small, 30))
            row->boundary = tenant.boundary = (enum bh_boundary)(1 + draw(small, BH_BOUNDARIES - 1));
        row->dedicated = tenant.dedicated_nodes = chance(small, 6);
        tenant.parent.v = parents[i] == BH_OPT_NOBODY ? 0 : parents[i] + 1;
        limit(small, row, &tenant);
        bh_fixture_tenant(small->fixture, tenant);
    }
}

/* ---- a history that leaves it broken up, and quiet ---- */

static struct bh_ev_submit
any_job(struct small *small, bool last)
{
    static const uint32_t projects[] = { 4, 5, 6, 8 };
    struct bh_ev_submit job = { .kind = BH_JOB_BATCH, .count = 1 };

    job.tenant.v = projects[draw(small, BH_COUNT(projects))];
    job.principal.v = 1 + draw(small, 2);
    job.sku.v = 1 + draw(small, SKUS);
    if (chance(small, last ? 50 : 25))
        job.count = 2 + draw(small, 2);
    else if (chance(small, last ? 30 : 15))
        job.gang = 2 + draw(small, 2);
    if (job.gang == 2 && chance(small, 30))
        job.count = 2;
    job.priority = (enum bh_priority)(1 + draw(small, last ? 4 : 3));
    job.contract = (enum bh_contract)draw(small, BH_CONTRACTS);
    return job;
}

/* The job at a random place of the walk that is (not) running, or 0. */
static uint64_t
some_job(struct small *small, bool running)
{
    struct bh_job_view view;
    uint32_t cursor = 0, seen = 0;
    uint64_t job = 0;

    while (bh_view_next_job(small->fixture->engine, &cursor, &view)) {
        if (view.state >= BH_JOB_COMPLETED || (view.state == BH_JOB_RUNNING) != running)
            continue;
        if (draw(small, ++seen) == 0)
            job = view.job.v;
    }
    return job;
}

/* The node carries out all its orders; an engine that never comes to rest is at fault. */
static void
settle(struct small *small)
{
    uint32_t answers = 0;

    while (bh_fixture_answer_next(small->fixture, BH_OUTCOME_OK))
        assert_true(++answers < ANSWERS_MAX);
}

static void
let_be_quiet(struct small *small)
{
    uint64_t job;

    settle(small);
    while ((job = some_job(small, false)) != 0) {
        bh_fixture_cancel(small->fixture, job);
        settle(small);
    }
}

static void
live(struct small *small)
{
    for (uint32_t i = 0, steps = 4 + draw(small, 22); i < steps; i++) {
        uint64_t job = chance(small, 30) ? some_job(small, true) : 0;

        small->fixture->now_ns += 1 + draw(small, 1000000000);
        if (job && bh_fixture_job(small->fixture, job).gang > 1)
            bh_fixture_cancel(small->fixture, job);
        else if (job)
            bh_fixture_exit_job(small->fixture, job, 0);
        else
            (void)!bh_fixture_try_submit(small->fixture, any_job(small, false));
        settle(small);
    }
    let_be_quiet(small);
    for (uint32_t i = 0; i < small->site.gpu_count; i++) {
        struct bh_opt_gpu *gpu = &small->site.gpus[i];

        if (chance(small, 93))
            continue;
        gpu->open = false;
        bh_fixture_gpu(small->fixture, (struct bh_ev_gpu){ .gpu = { gpu->id },
                                                           .node = { gpu->node + 1 },
                                                           .model = gpu->model,
                                                           .managed = true,
                                                           .cordoned = true,
                                                           .mig_capable = gpu->mig });
    }
    small->fixture->now_ns += 1000;
    let_be_quiet(small);
}

/* ---- what runs, as the search sees it ---- */

/* Nothing when it does not run yet, its grace when it writes a checkpoint, else all since it began; also of a
 * suspended one. */
static uint64_t
loses_ns(const struct small *small, const struct bh_job_view *job)
{
    if (job->state != BH_JOB_RUNNING)
        return 0;
    return job->contract == BH_CONTRACT_CHECKPOINT ? 0 /* no job here has a grace */
                                                   : small->fixture->now_ns - job->started_ns;
}

static uint32_t
runner_of(struct small *small, const struct bh_partition_view *partition)
{
    struct bh_opt_site *site = &small->site;
    struct bh_opt_runner *runner;
    struct bh_job_view job;
    uint32_t at = 0;

    if (partition->state == BH_PARTITION_IDLE)
        return BH_OPT_NOBODY;
    while (at < site->runner_count && site->runners[at].job != partition->job.v)
        at++;
    assert_true(at < BH_OPT_RUNNERS);
    runner = &site->runners[at];
    if (at == site->runner_count) {
        site->runner_count++;
        assert_true(bh_view_job(small->fixture->engine, partition->job, &job));
        *runner = (struct bh_opt_runner){ .job = job.job.v,
                                          .tenant = job.tenant.v - 1,
                                          .principal = job.principal.v,
                                          .sku = job.sku.v,
                                          .priority = job.priority,
                                          .stays = job.contract == BH_CONTRACT_NEVER,
                                          .model = site->gpus[partition->partition.gpu.v - 1].model,
                                          .loses_ns = loses_ns(small, &job),
                                          .suspends = job.contract == BH_CONTRACT_SUSPEND };
    }
    runner->partitions++;
    runner->equivalent +=
        bh_parts_equivalent(bh_profile_parts((bh_profile_id){ partition->partition.profile }));
    return at;
}

/* What room is worth as the site stands, worked out anew. */
static void
price(struct small *small, enum bh_gpu_model model)
{
    static _Alignas(16) unsigned char memory[BH_GPU_MODELS][48 * 1024];
    struct bh_opt_site *site = &small->site;
    struct bh_mig_demand demand = { .weights = { 0 } };
    struct bh_mig_pool pool = { 0 };
    struct bh_demand_view asked;
    struct bh_mig *figures;

    if (!bh_view_demand(small->fixture->engine, model, &asked))
        return;
    assert_true(bh_mig_size() <= sizeof memory[0]);
    figures = bh_mig_init(memory[model], model);
    for (uint32_t gpu = 0; gpu < site->gpu_count; gpu++) {
        struct bh_occupancy occupancy = bh_optimum_occupancy(site, gpu);

        if (site->gpus[gpu].model == model && site->gpus[gpu].open && site->gpus[gpu].mig)
            bh_mig_pool_add(figures, &pool, &occupancy);
    }
    for (uint32_t i = 0; i < bh_mig_shapes(figures); i++)
        demand.weights[i] = 1 + asked.partitions[i];
    bh_mig_price(figures, &demand, &pool, &site->prices[model]);
    site->figures[model] = figures;
}

/* What whole GPUs cost as the site stands, as the index has it. */
static void
cost_whole_ones(struct small *small, const struct bh_opt_want *want)
{
    struct bh_engine *engine = small->fixture->engine;

    bh_node_index_update(engine);
    for (uint32_t model = 1; model < BH_GPU_MODELS; model++)
        for (uint32_t node = 0; node < BH_OPT_NODES; node++)
            for (uint32_t members = 1; members * want->count <= BH_OPT_GPUS; members++) {
                struct bh_node_request whole = { .gpus = members * want->count,
                                                 .models = UINT64_C(1) << model };
                uint32_t slot = node_find(engine, node + 1);

                small->site.whole_costs[model][node][members] =
                    slot ? bh_node_index_cost(engine, slot, &whole) : 0;
            }
}

static void
look(struct small *small)
{
    struct bh_opt_site *site = &small->site;
    struct bh_partition_view partition;
    uint32_t cursor = 0;

    while (bh_view_next_partition(small->fixture->engine, &cursor, &partition)) {
        assert_true(site->partition_count < BH_OPT_PIECES);
        assert_true(partition.state == BH_PARTITION_LEASED || partition.state == BH_PARTITION_IDLE);
        site->partitions[site->partition_count++] =
            (struct bh_opt_piece){ partition.partition.gpu.v - 1, partition.partition.profile,
                                   partition.partition.start, runner_of(small, &partition),
                                   partition.tenant.v - 1 };
    }
}

/* The search knows no boundaries' forms (tests/scenario/forms.bh is their specification): rows of
 * the SKU that are not for this tenant are left out for it. */
static bool
is_form_allowed(const struct small *small, const struct bh_ev_submit *job, uint32_t row)
{
    const struct bh_engine *engine = small->fixture->engine;

    return bh_gpu_form_allows(engine, tenant_find(engine, job->tenant.v),
                              sku_at(engine, sku_find(engine, job->sku.v)), row);
}

static struct bh_opt_want
want_of(const struct small *small, const struct bh_ev_submit *job)
{
    const struct bh_ev_sku *sku = &small->skus[job->sku.v];
    struct bh_opt_want want = { .tenant = job->tenant.v - 1,
                                .principal = job->principal.v,
                                .sku = job->sku.v,
                                .count = job->count,
                                .grade = sku->grade,
                                .gang = job->gang ? job->gang : 1,
                                .priority = job->priority,
                                .row_count = 0 };

    for (uint32_t i = 0; i < sku->model_count; i++) {
        if (!is_form_allowed(small, job, i))
            continue;
        want.rows[want.row_count].model = (enum bh_gpu_model)sku->models[i].model;
        want.rows[want.row_count++].profile = sku->models[i].profile;
    }
    return want;
}

/* The first decisions of the step, one for each member, as one plan. */
static struct bh_opt_plan
plan_of(const struct small *small, uint32_t *ret_decisions)
{
    const struct bh_step *step = &small->fixture->step;
    struct bh_opt_plan plan = { .count = 0 };
    uint32_t at = 0;

    for (; at < step->decision_count && step->decisions[at].kind == step->decisions[0].kind; at++)
        for (uint32_t i = 0; i < step->decisions[at].partition_count; i++) {
            const struct bh_partition *partition = &step->decisions[at].partitions[i];

            assert_true(plan.count < BH_COUNT(plan.partitions));
            assert_true(bh_same(step->decisions[at].job, step->decisions[0].job));
            plan.partitions[plan.count++] = (struct bh_opt_piece){ .gpu = partition->gpu.v - 1,
                                                                   .profile = partition->profile,
                                                                   .start = partition->start };
        }
    *ret_decisions = at;
    return plan;
}

/* The victims of the decisions after a claim. */
static uint64_t
victims_of(const struct small *small, uint32_t from)
{
    const struct bh_step *step = &small->fixture->step;
    uint64_t gone = 0;

    for (uint32_t i = from; i < step->decision_count; i++) {
        const struct bh_decision *decision = &step->decisions[i];
        uint32_t at = 0;

        assert_true(decision->kind == BH_DO_SUSPEND || decision->kind == BH_DO_STOP);
        assert_true(bh_same(decision->for_job, step->decisions[0].job));
        while (at < small->site.runner_count && small->site.runners[at].job != decision->job.v)
            at++;
        assert_true(at < small->site.runner_count);
        gone |= UINT64_C(1) << at;
    }
    return gone;
}

/* ---- the comparison ---- */

/* What went wrong, so that the case can be found again. */
static void
blame(const struct small *small, const struct bh_opt_want *want, const char *what)
{
    fprintf(stderr, "# case %llu of seed %llu: job of tenant %u, SKU %u, %u x %u pieces: %s\n",
            (unsigned long long)small->tally.cases, (unsigned long long)seed_wanted, want->tenant + 1,
            want->sku, want->gang, want->count, what);
    for (uint32_t i = 0; i < small->site.tenant_count; i++)
        if (small->site.tenants[i].dedicated)
            fprintf(stderr, "#   tenant %u has nodes of its own\n", i + 1);
    for (uint32_t i = 0; i < small->site.partition_count; i++) {
        const struct bh_opt_piece *partition = &small->site.partitions[i];
        const struct bh_profile *profile = bh_profile_get((bh_profile_id){ partition->profile });

        fprintf(stderr, "#   node %u gpu %u %s at %u: job %lld of tenant %u\n",
                small->site.gpus[partition->gpu].node + 1, partition->gpu + 1,
                profile ? profile->name : "whole", partition->start,
                partition->runner == BH_OPT_NOBODY ? -1
                                                   : (long long)small->site.runners[partition->runner].job,
                partition->tenant + 1);
    }
}

static void
must(const struct small *small, const struct bh_opt_want *want, bool good, const char *what)
{
    if (!good)
        blame(small, want, what);
    assert_true(good);
}

static void
compare_place(struct small *small, const struct bh_opt_want *want)
{
    uint32_t decisions;
    struct bh_opt_plan plan = plan_of(small, &decisions), best;
    struct bh_opt_score score, least;
    const char *wrong = bh_optimum_illegal(&small->site, want, 0, &plan);

    must(small, want, !wrong, wrong);
    must(small, want, decisions == small->fixture->step.decision_count, "more than a place");
    assert_true(bh_optimum_find(&small->site, want, 0, &best));
    score = bh_optimum_score(&small->site, want, &plan);
    least = bh_optimum_score(&small->site, want, &best);
    small->tally.placed++;
    if (want->count * want->gang == 1) {
        must(small, want, !bh_optimum_better(&least, &score), "another place is better");
        return;
    }
    small->tally.several++;
    small->tally.scattered += score.nodes > least.nodes;
    if (score.nodes != least.nodes)
        return;
    small->tally.worse += score.growth > least.growth;
    small->tally.worse_by += score.growth - least.growth;
    if (score.growth - least.growth > small->tally.worst_by)
        small->tally.worst_by = score.growth - least.growth;
}

/* Whether the room could be had though one of them stayed. */
static bool
one_too_many(const struct small *small, const struct bh_opt_want *want, uint64_t gone,
             const struct bh_opt_plan *plan)
{
    for (uint64_t rest = gone; rest; rest &= rest - 1)
        if (!bh_optimum_illegal(&small->site, want, gone & ~(rest & -rest), plan))
            return true;
    return false;
}

static void
compare_victims(struct small *small, const struct bh_opt_want *want)
{
    uint32_t claims;
    struct bh_opt_plan plan = plan_of(small, &claims);
    uint64_t gone = victims_of(small, claims), cheapest = 0;
    const char *wrong = bh_optimum_illegal(&small->site, want, gone, &plan);
    struct bh_opt_cost cost = bh_optimum_cost(&small->site, want, gone), least;

    must(small, want, !wrong, wrong);
    must(small, want, gone != 0 && !(gone & ~bh_optimum_lower(&small->site, want)),
         "somebody leaves who need not");
    must(small, want, !bh_optimum_find(&small->site, want, 0, NULL), "there was room");
    must(small, want, !one_too_many(small, want, gone, &plan), "one of them could stay");
    small->tally.preempted++;
    small->tally.preempted_several += want->count * want->gang > 1;
    if (__builtin_popcountll(bh_optimum_lower(&small->site, want)) > VICTIMS_TRIED) {
        small->tally.too_many++;
        return;
    }
    assert_true(bh_optimum_victims(&small->site, want, &cheapest));
    least = bh_optimum_cost(&small->site, want, cheapest);
    if (!bh_optimum_cheaper(&least, &cost))
        return;
    small->tally.dearer++;
    small->tally.dearer_by[least.priority < cost.priority ? 0 : least.lost < cost.lost ? 1 : 2]++;
    small->tally.dearer_singles += want->count * want->gang == 1;
}

/* Nothing was decided: then nothing could be. */
static void
compare_nothing(struct small *small, const struct bh_opt_want *want)
{
    bool room = bh_optimum_find(&small->site, want, 0, NULL);
    bool by_force = !room && bh_optimum_find(&small->site, want, bh_optimum_lower(&small->site, want), NULL);

    small->tally.none++;
    must(small, want, !room, "there is room, but it waits");
    must(small, want, !by_force, "others could make room, but it waits");
}

static void
compare(struct small *small)
{
    struct bh_ev_submit job = any_job(small, true);
    struct bh_opt_want want = want_of(small, &job);
    const struct bh_step *step = &small->fixture->step;

    look(small);
    small->tally.cases++;
    job.hold = true; /* it counts as asked for before it is placed */
    if (bh_fixture_try_submit(small->fixture, job) != BH_OK) {
        must(small, &want, !bh_optimum_find(&small->site, &want, 0, NULL), "refused, though there is room");
        small->tally.refused++;
        return;
    }
    cost_whole_ones(small, &want);
    bh_fixture_must_send(small->fixture, &(struct bh_event){ .kind = BH_EV_RELEASE,
                                                             .u.job = { { small->fixture->next_job - 1 } } });
    bh_fixture_check(small->fixture);
    for (uint32_t model = 1; model < BH_GPU_MODELS; model++)
        price(small, (enum bh_gpu_model)model); /* the job itself was asked for, too */
    if (step->decision_count == 0 || step->decisions[0].kind == BH_DO_RESERVE) {
        compare_nothing(small, &want);
    } else if (step->decisions[0].kind == BH_DO_PLACE) {
        compare_place(small, &want);
    } else {
        assert_int_equal(step->decisions[0].kind, BH_DO_CLAIM);
        compare_victims(small, &want);
    }
}

static void
try_case(struct small *small)
{
    static const struct bh_engine_caps caps = { .tenants = 16,
                                                .skus = 8,
                                                .nodes = 4,
                                                .gpus = 12,
                                                .jobs = 128,
                                                .leases = 64,
                                                .partitions = 256,
                                                .classes = 64,
                                                .metered = 16 };

    memset(&small->site, 0, sizeof(small->site));
    small->fixture = bh_fixture_open_with(&caps);
    small->fixture->quick = true;
    add_gpus(small);
    add_skus(small);
    add_tenants(small);
    live(small);
    compare(small);
    bh_fixture_close(small->fixture);
}

static void
tell(const struct tally *tally)
{
    fprintf(stderr, "# %llu jobs: %llu placed, %llu made others leave, %llu wait, %llu refused\n",
            (unsigned long long)tally->cases, (unsigned long long)tally->placed,
            (unsigned long long)tally->preempted, (unsigned long long)tally->none,
            (unsigned long long)tally->refused);
    fprintf(stderr,
            "# %llu of several pieces placed: %llu on more nodes than need be; %llu take "
            "more of the room's worth, by %lld each, %lld at most\n",
            (unsigned long long)tally->several, (unsigned long long)tally->scattered,
            (unsigned long long)tally->worse,
            (long long)(tally->worse ? tally->worse_by / (int64_t)tally->worse : 0),
            (long long)tally->worst_by);
    fprintf(stderr,
            "# %llu made others leave for several pieces; %llu (%llu for one piece) at "
            "more cost than need be: class %llu, number %llu, work %llu; %llu not tried\n",
            (unsigned long long)tally->preempted_several, (unsigned long long)tally->dearer,
            (unsigned long long)tally->dearer_singles, (unsigned long long)tally->dearer_by[0],
            (unsigned long long)tally->dearer_by[1], (unsigned long long)tally->dearer_by[2],
            (unsigned long long)tally->too_many);
}

/* What was measured (docs/internals/evidence.md), and some room for chance; better is welcome. */
static void
bound(const struct tally *tally)
{
    assert_true(tally->placed * 5 > tally->cases);
    assert_true(tally->preempted * 20 > tally->cases);
    assert_true(tally->worse * 100 <= tally->several * 30);
    assert_true(tally->scattered * 100 <= tally->several);
    assert_true(tally->dearer * 100 <= tally->preempted * 6);
}

static void
the_engine_finds_what_a_search_of_everything_finds(void **state)
{
    struct small *small = calloc(1, sizeof(*small));

    assert_non_null(small);
    for (uint64_t i = 0; i < cases_wanted; i++) {
        small->random = (seed_wanted * 1000003 + i) * 0x9e3779b97f4a7c15ull + 1;
        try_case(small);
    }
    tell(&small->tally);
    bound(&small->tally);
    free(small);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_engine_finds_what_a_search_of_everything_finds),
    };

    if (argc > 1)
        cases_wanted = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        seed_wanted = strtoull(argv[2], NULL, 10);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
