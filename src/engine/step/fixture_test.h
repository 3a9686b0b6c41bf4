#ifndef BH_ENGINE_STEP_FIXTURE_TEST_H
#define BH_ENGINE_STEP_FIXTURE_TEST_H

/* Stories for tests of the engine: verbs for what people, nodes and jobs do to it, on
 * top of the twins. */

#include "engine/step/replica_test.h"

static inline void
bh_fixture_must_send(struct bh_fixture *fixture, struct bh_event *event)
{
    assert_int_equal(bh_fixture_send(fixture, event), BH_OK);
}

static inline void
bh_fixture_tick(struct bh_fixture *fixture, uint64_t after_ns)
{
    fixture->now_ns += after_ns;
    do
        bh_fixture_must_send(fixture, &(struct bh_event){ .kind = BH_EV_TICK });
    while (fixture->step.more);
}

static inline void
bh_fixture_tenant(struct bh_fixture *fixture, struct bh_ev_tenant tenant)
{
    if (tenant.limit == 0)
        tenant.limit = BH_UNLIMITED;
    bh_fixture_must_send(fixture, &(struct bh_event){ .kind = BH_EV_TENANT, .u.tenant = tenant });
}

/* SKU `id` as a profile of the H100-80GB ("1g.10gb"), or the whole GPU (NULL). */
static inline void
bh_fixture_sku(struct bh_fixture *fixture, uint32_t id, const char *profile)
{
    struct bh_event event = { .kind = BH_EV_SKU };

    event.u.sku = (struct bh_ev_sku){ .sku = { id }, .model_count = 1 };
    event.u.sku.grade = profile ? BH_GRADE_C : BH_GRADE_B;
    event.u.sku.models[0].model = BH_GPU_H100_80GB;
    event.u.sku.models[0].profile =
        profile ? bh_profile_find(BH_GPU_H100_80GB, profile)->id.v : BH_PROFILE_WHOLE.v;
    bh_fixture_must_send(fixture, &event);
}

static inline void
bh_fixture_node(struct bh_fixture *fixture, uint32_t node, bool up)
{
    bh_fixture_must_send(fixture, &(struct bh_event){ .kind = BH_EV_NODE, .u.node = { { node }, up } });
}

static inline void
bh_fixture_gpu(struct bh_fixture *fixture, struct bh_ev_gpu gpu)
{
    bh_fixture_must_send(fixture, &(struct bh_event){ .kind = BH_EV_GPU, .u.gpu = gpu });
}

/* A node of H100s, up, with GPUs numbered from `first`. */
static inline void
bh_fixture_h100s(struct bh_fixture *fixture, uint32_t node, uint32_t first, uint32_t count)
{
    bh_fixture_node(fixture, node, true);
    for (uint32_t i = 0; i < count; i++)
        bh_fixture_gpu(fixture, (struct bh_ev_gpu){ .gpu = { first + i },
                                                    .node = { node },
                                                    .model = BH_GPU_H100_80GB,
                                                    .managed = true,
                                                    .mig_capable = true });
}

/* Submit; count, priority and kind take their usual values when 0. */
static inline bh_rc
bh_fixture_try_submit(struct bh_fixture *fixture, struct bh_ev_submit submit)
{
    submit.job.v = submit.job.v ? submit.job.v : fixture->next_job++;
    submit.count = submit.count ? submit.count : 1;
    submit.priority = submit.priority ? submit.priority : BH_PRIORITY_NORMAL;
    return bh_fixture_send(fixture, &(struct bh_event){ .kind = BH_EV_SUBMIT, .u.submit = submit });
}

static inline uint64_t
bh_fixture_submit(struct bh_fixture *fixture, struct bh_ev_submit submit)
{
    submit.job.v = fixture->next_job++;
    assert_int_equal(bh_fixture_try_submit(fixture, submit), BH_OK);
    return submit.job.v;
}

static inline bh_rc
bh_fixture_cancel(struct bh_fixture *fixture, uint64_t job)
{
    return bh_fixture_send(fixture, &(struct bh_event){ .kind = BH_EV_CANCEL, .u.job = { { job } } });
}

/* Take the oldest effect that the node has not answered. */
static inline bool
bh_fixture_next_effect(struct bh_fixture *fixture, struct bh_effect *ret_effect)
{
    if (fixture->effect_count == 0)
        return false;
    *ret_effect = fixture->effects[0];
    memmove(&fixture->effects[0], &fixture->effects[1],
            --fixture->effect_count * sizeof(fixture->effects[0]));
    return true;
}

/* The event that answers an effect. */
static inline struct bh_event
bh_fixture_answer(const struct bh_effect *effect, enum bh_outcome_kind outcome)
{
    static const uint8_t kinds[BH_EFFECT_KINDS] = {
        [BH_FX_CARVE] = BH_EV_CARVED,      [BH_FX_DESTROY] = BH_EV_DESTROYED, [BH_FX_START] = BH_EV_STARTED,
        [BH_FX_SUSPEND] = BH_EV_SUSPENDED, [BH_FX_RESUME] = BH_EV_RESUMED,    [BH_FX_STOP] = BH_EV_ENDED,
        [BH_FX_RESET] = BH_EV_SERVICED,    [BH_FX_TEST] = BH_EV_SERVICED,
    };
    struct bh_event event = { .kind = (enum bh_event_kind)kinds[effect->kind] };

    if (event.kind == BH_EV_ENDED)
        event.u.ended =
            (struct bh_ev_ended){ .lease = effect->lease, .cause = BH_END_SIGNALLED, .exit_status = 15 };
    else if (effect->kind == BH_FX_CARVE || effect->kind == BH_FX_DESTROY)
        event.u.partition = (struct bh_ev_partition){ effect->partition.partition, outcome, 0 };
    else if (event.kind == BH_EV_SERVICED)
        event.u.serviced = (struct bh_ev_serviced){ effect->partition.gpu, outcome, 0 };
    else
        event.u.lease = (struct bh_ev_lease){ effect->lease, outcome, 0 };
    return event;
}

/* Answer the oldest effect. */
static inline bool
bh_fixture_answer_next(struct bh_fixture *fixture, enum bh_outcome_kind outcome)
{
    struct bh_effect effect;
    struct bh_event event;

    if (!bh_fixture_next_effect(fixture, &effect))
        return false;
    event = bh_fixture_answer(&effect, outcome);
    bh_fixture_must_send(fixture, &event);
    return true;
}

/* Let the node carry out all its orders. */
static inline void
bh_fixture_finish_effects(struct bh_fixture *fixture)
{
    while (bh_fixture_answer_next(fixture, BH_OUTCOME_OK))
        ;
}

static inline struct bh_job_view
bh_fixture_job(const struct bh_fixture *fixture, uint64_t job)
{
    struct bh_job_view view = { 0 };

    if (!bh_view_job(fixture->engine, (bh_job_id){ job }, &view))
        view.state = BH_JOB_STATES;
    return view;
}

static inline enum bh_job_state
bh_fixture_state(const struct bh_fixture *fixture, uint64_t job)
{
    return bh_fixture_job(fixture, job).state;
}

/* The job's processes end by themselves with this status. */
static inline void
bh_fixture_exit_job(struct bh_fixture *fixture, uint64_t job, int32_t status)
{
    struct bh_event event = { .kind = BH_EV_ENDED };

    event.u.ended = (struct bh_ev_ended){ .lease = bh_fixture_job(fixture, job).lease,
                                          .cause = BH_END_EXITED,
                                          .exit_status = status };
    bh_fixture_must_send(fixture, &event);
}

static inline struct bh_reason
bh_fixture_why(const struct bh_fixture *fixture, uint64_t job)
{
    struct bh_reason reason;

    bh_engine_why(fixture->engine, (bh_job_id){ job }, fixture->now_ns, &reason);
    return reason;
}

/* Shorthands for the site of bh_fixture_site. */
static inline struct bh_ev_submit
bh_fixture_submission(uint32_t tenant, uint32_t sku, uint32_t count)
{
    return (struct bh_ev_submit){ .tenant = { tenant }, .sku = { sku }, .count = count };
}

/* Submit and let it run. */
static inline uint64_t
bh_fixture_submit_running(struct bh_fixture *fixture, struct bh_ev_submit submit)
{
    uint64_t job = bh_fixture_submit(fixture, submit);

    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    return job;
}

/* Where its first partition stands: gpu * 100 + start; 0 when it has none. */
static inline uint32_t
bh_fixture_placement_of(const struct bh_fixture *fixture, uint64_t job)
{
    struct bh_job_view view = bh_fixture_job(fixture, job);

    return view.partition_count ? view.partitions[0].gpu.v * 100 + view.partitions[0].start : 0;
}

/* How many effects of a kind the last step ordered. */
static inline uint32_t
bh_fixture_effects(const struct bh_fixture *fixture, enum bh_effect_kind kind)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < fixture->step.effect_count; i++)
        count += fixture->step.effects[i].kind == kind;
    return count;
}

/* An organization 1 with departments 2 and 3, each with a project 21 and 31; SKUs
 * 1 small (1g.10gb), 2 medium (3g.40gb), 3 whole; one node of `gpus` H100s. */
static inline struct bh_fixture *
bh_fixture_site(uint32_t gpus)
{
    static const struct bh_ev_tenant tenants[] = {
        { .tenant = { 1 }, .kind = BH_TENANT_ORGANIZATION },
        { .tenant = { 2 }, .parent = { 1 }, .kind = BH_TENANT_DEPARTMENT },
        { .tenant = { 3 }, .parent = { 1 }, .kind = BH_TENANT_DEPARTMENT },
        { .tenant = { 21 }, .parent = { 2 }, .kind = BH_TENANT_PROJECT },
        { .tenant = { 31 }, .parent = { 3 }, .kind = BH_TENANT_PROJECT },
    };
    struct bh_fixture *fixture = bh_fixture_open();

    bh_fixture_sku(fixture, 1, "1g.10gb");
    bh_fixture_sku(fixture, 2, "3g.40gb");
    bh_fixture_sku(fixture, 3, NULL);
    for (size_t i = 0; i < sizeof(tenants) / sizeof(tenants[0]); i++)
        bh_fixture_tenant(fixture, tenants[i]);
    bh_fixture_h100s(fixture, 1, 1, gpus);
    return fixture;
}

#endif
