#ifndef BH_ENGINE_STORY_TEST_H
#define BH_ENGINE_STORY_TEST_H

/* Stories for tests of the engine: verbs for what people, nodes and jobs do to it, on
 * top of the twins. */

#include "engine/twin_test.h"

static inline void
bh_story_must(struct bh_story *story, struct bh_event *event)
{
    assert_int_equal(bh_story_send(story, event), BH_OK);
}

static inline void
bh_story_tick(struct bh_story *story, uint64_t after_ns)
{
    story->now_ns += after_ns;
    do
        bh_story_must(story, &(struct bh_event){ .kind = BH_EV_TICK });
    while (story->step.more);
}

static inline void
bh_story_tenant(struct bh_story *story, struct bh_ev_tenant tenant)
{
    if (tenant.limit == 0)
        tenant.limit = BH_UNLIMITED;
    bh_story_must(story, &(struct bh_event){ .kind = BH_EV_TENANT, .u.tenant = tenant });
}

/* SKU `id` as a profile of the H100-80GB ("1g.10gb"), or the whole GPU (NULL). */
static inline void
bh_story_sku(struct bh_story *story, uint32_t id, const char *profile)
{
    struct bh_event event = { .kind = BH_EV_SKU };

    event.u.sku = (struct bh_ev_sku){ .sku = { id }, .model_count = 1 };
    event.u.sku.grade = profile ? BH_GRADE_C : BH_GRADE_B;
    event.u.sku.models[0].model = BH_GPU_H100_80GB;
    event.u.sku.models[0].profile =
        profile ? bh_profile_find(BH_GPU_H100_80GB, profile)->id.v : BH_PROFILE_WHOLE.v;
    bh_story_must(story, &event);
}

static inline void
bh_story_node(struct bh_story *story, uint32_t node, bool up)
{
    bh_story_must(story, &(struct bh_event){ .kind = BH_EV_NODE, .u.node = { { node }, up } });
}

static inline void
bh_story_gpu(struct bh_story *story, struct bh_ev_gpu gpu)
{
    bh_story_must(story, &(struct bh_event){ .kind = BH_EV_GPU, .u.gpu = gpu });
}

/* A node of H100s, up, with GPUs numbered from `first`. */
static inline void
bh_story_h100s(struct bh_story *story, uint32_t node, uint32_t first, uint32_t count)
{
    bh_story_node(story, node, true);
    for (uint32_t i = 0; i < count; i++)
        bh_story_gpu(story, (struct bh_ev_gpu){ .gpu = { first + i }, .node = { node },
                                                .model = BH_GPU_H100_80GB, .managed = true,
                                                .mig_capable = true });
}

/* Submit; count, priority and kind take their usual values when 0. */
static inline bh_rc
bh_story_try(struct bh_story *story, struct bh_ev_submit submit)
{
    submit.job.v = submit.job.v ? submit.job.v : story->next_job++;
    submit.count = submit.count ? submit.count : 1;
    submit.priority = submit.priority ? submit.priority : BH_PRIORITY_NORMAL;
    return bh_story_send(story, &(struct bh_event){ .kind = BH_EV_SUBMIT,
                                                    .u.submit = submit });
}

static inline uint64_t
bh_story_submit(struct bh_story *story, struct bh_ev_submit submit)
{
    submit.job.v = story->next_job++;
    assert_int_equal(bh_story_try(story, submit), BH_OK);
    return submit.job.v;
}

static inline bh_rc
bh_story_cancel(struct bh_story *story, uint64_t job)
{
    return bh_story_send(story, &(struct bh_event){ .kind = BH_EV_CANCEL,
                                                    .u.job = { { job } } });
}

/* Take the oldest effect that the node has not answered. */
static inline bool
bh_story_take(struct bh_story *story, struct bh_effect *ret_effect)
{
    if (story->effect_count == 0)
        return false;
    *ret_effect = story->effects[0];
    memmove(&story->effects[0], &story->effects[1],
            --story->effect_count * sizeof(story->effects[0]));
    return true;
}

/* The event that answers an effect. */
static inline struct bh_event
bh_story_answer(const struct bh_effect *effect, enum bh_outcome_kind outcome)
{
    static const uint8_t kinds[BH_EFFECT_KINDS] = {
        [BH_FX_CARVE] = BH_EV_CARVED,   [BH_FX_DESTROY] = BH_EV_DESTROYED,
        [BH_FX_START] = BH_EV_STARTED,  [BH_FX_SUSPEND] = BH_EV_SUSPENDED,
        [BH_FX_RESUME] = BH_EV_RESUMED, [BH_FX_STOP] = BH_EV_ENDED,
        [BH_FX_RESET] = BH_EV_SERVICED, [BH_FX_TEST] = BH_EV_SERVICED,
    };
    struct bh_event event = { .kind = (enum bh_event_kind)kinds[effect->kind] };

    if (event.kind == BH_EV_ENDED)
        event.u.ended = (struct bh_ev_ended){ .lease = effect->lease,
                                              .cause = BH_END_SIGNALLED, .exit_status = 15 };
    else if (effect->kind == BH_FX_CARVE || effect->kind == BH_FX_DESTROY)
        event.u.piece = (struct bh_ev_piece){ effect->piece.partition, outcome, 0 };
    else if (event.kind == BH_EV_SERVICED)
        event.u.serviced = (struct bh_ev_serviced){ effect->piece.gpu, outcome, 0 };
    else
        event.u.lease = (struct bh_ev_lease){ effect->lease, outcome, 0 };
    return event;
}

/* Answer the oldest effect. */
static inline bool
bh_story_next(struct bh_story *story, enum bh_outcome_kind outcome)
{
    struct bh_effect effect;
    struct bh_event event;

    if (!bh_story_take(story, &effect))
        return false;
    event = bh_story_answer(&effect, outcome);
    bh_story_must(story, &event);
    return true;
}

/* Let the node do all it was told, well. */
static inline void
bh_story_settle(struct bh_story *story)
{
    while (bh_story_next(story, BH_OUTCOME_OK))
        ;
}

static inline struct bh_job_view
bh_story_job(const struct bh_story *story, uint64_t job)
{
    struct bh_job_view view = { 0 };

    if (!bh_view_job(story->engine, (bh_job_id){ job }, &view))
        view.state = BH_JOB_STATES;
    return view;
}

static inline enum bh_job_state
bh_story_state(const struct bh_story *story, uint64_t job)
{
    return bh_story_job(story, job).state;
}

/* The job's processes end by themselves with this status. */
static inline void
bh_story_exit(struct bh_story *story, uint64_t job, int32_t status)
{
    struct bh_event event = { .kind = BH_EV_ENDED };

    event.u.ended = (struct bh_ev_ended){ .lease = bh_story_job(story, job).lease,
                                          .cause = BH_END_EXITED, .exit_status = status };
    bh_story_must(story, &event);
}

static inline struct bh_reason
bh_story_why(const struct bh_story *story, uint64_t job)
{
    struct bh_reason reason;

    bh_engine_why(story->engine, (bh_job_id){ job }, story->now_ns, &reason);
    return reason;
}

/* Shorthands for the site of bh_story_site. */
static inline struct bh_ev_submit
bh_story_wants(uint32_t tenant, uint32_t sku, uint32_t count)
{
    return (struct bh_ev_submit){ .tenant = { tenant }, .sku = { sku }, .count = count };
}

/* Submit and let it run. */
static inline uint64_t
bh_story_run(struct bh_story *story, struct bh_ev_submit submit)
{
    uint64_t job = bh_story_submit(story, submit);

    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, job), BH_JOB_RUNNING);
    return job;
}

/* Where its first piece stands: gpu * 100 + start; 0 when it has none. */
static inline uint32_t
bh_story_where(const struct bh_story *story, uint64_t job)
{
    struct bh_job_view view = bh_story_job(story, job);

    return view.piece_count ? view.pieces[0].gpu.v * 100 + view.pieces[0].start : 0;
}

/* How many effects of a kind the last step ordered. */
static inline uint32_t
bh_story_effects(const struct bh_story *story, enum bh_effect_kind kind)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < story->step.effect_count; i++)
        count += story->step.effects[i].kind == kind;
    return count;
}

/* An organization 1 with departments 2 and 3, each with a project 21 and 31; SKUs
 * 1 small (1g.10gb), 2 medium (3g.40gb), 3 whole; one node of `gpus` H100s. */
static inline struct bh_story *
bh_story_site(uint32_t gpus)
{
    static const struct bh_ev_tenant tenants[] = {
        { .tenant = { 1 }, .kind = BH_TENANT_ORGANIZATION },
        { .tenant = { 2 }, .parent = { 1 }, .kind = BH_TENANT_DEPARTMENT },
        { .tenant = { 3 }, .parent = { 1 }, .kind = BH_TENANT_DEPARTMENT },
        { .tenant = { 21 }, .parent = { 2 }, .kind = BH_TENANT_PROJECT },
        { .tenant = { 31 }, .parent = { 3 }, .kind = BH_TENANT_PROJECT },
    };
    struct bh_story *story = bh_story_open();

    bh_story_sku(story, 1, "1g.10gb");
    bh_story_sku(story, 2, "3g.40gb");
    bh_story_sku(story, 3, NULL);
    for (size_t i = 0; i < sizeof(tenants) / sizeof(tenants[0]); i++)
        bh_story_tenant(story, tenants[i]);
    bh_story_h100s(story, 1, 1, gpus);
    return story;
}

#endif
