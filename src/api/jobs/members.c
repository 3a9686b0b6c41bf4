#include "api/jobs/members.h"

#include <inttypes.h>
#include <string.h>

#include "api/documents/replies.h"
#include "api/request/facts.h"

struct members {
    bh_job_id job;
    uint32_t count;
    struct bh_member_view *views; /* BH_JOB_GANG_MAX */
    const char *nodes[BH_JOB_GANG_MAX];
    struct bh_arena *arena;
    struct bh_facts facts;
};

static void
ask_members(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct members *members = self;

    while (members->count < BH_JOB_GANG_MAX
           && bh_view_member(engine, members->job, members->count, &members->views[members->count]))
        members->count++;
}

/* Nodes have no place in the directory: their names come from the store. */
static bool
members_read_name(void *self, const struct bh_name_row *row)
{
    struct members *members = self;

    for (uint32_t i = 0; row->kind == BH_NAME_NODE && i < members->count; i++)
        if (members->views[i].node.v == row->id)
            members->nodes[i] = bh_arena_strdup(members->arena, row->name);
    return true;
}

static bh_rc
members_list_partitions(const struct bh_call *call, const struct bh_member_view *view, struct bh_list *ret,
                        struct bh_err *err)
{
    struct bh_reply_job_partition *rows;
    bh_rc rc = bh_call_alloc(call, view->partition_count * sizeof *rows, &rows, err);

    for (uint32_t i = 0; i < view->partition_count && rc == BH_OK; i++) {
        const struct bh_partition *partition = &view->partitions[i];
        const struct bh_dir_gpu *gpu = bh_directory_gpu(call->dir, partition->gpu);
        char *name;

        rc = bh_call_alloc(call, BH_PARTITION_NAME_MAX, &name, err);
        if (rc != BH_OK)
            return rc;
        bh_partition_name(BH_GPU_MODEL_NONE, partition->profile, name);
        rows[i] = (struct bh_reply_job_partition){ .gpu = gpu ? gpu->uuid : "",
                                                   .id = partition->partition.v,
                                                   .profile = name,
                                                   .start = partition->start };
    }
    if (rc == BH_OK)
        *ret = (struct bh_list){ rows, view->partition_count };
    return rc;
}

/* What its node sampled of a lease last; NULL: nothing. */
static bh_json_value
members_sample_of(const struct bh_facts *facts, uint64_t lease)
{
    for (uint32_t i = 0; i < facts->node_count; i++) {
        bh_json_value samples = bh_json_get(bh_json_get(facts->nodes[i].root, "samples"), "samples");

        for (size_t n = 0; n < bh_json_count(samples); n++)
            if (bh_json_number(bh_json_get(bh_json_at(samples, n), "lease"), 0) == lease)
                return bh_json_at(samples, n);
    }
    return NULL;
}

/* Its shares of GPUs, as its node sampled them last; NULL: it has none. */
static bh_rc
members_find_share(const struct bh_call *call, bh_json_value sample, const struct bh_reply_job_share **ret,
                   struct bh_err *err)
{
    struct bh_reply_job_share *share;
    bh_rc rc;

    if (!bh_json_number(bh_json_get(sample, "share_cap_bytes"), 0))
        return BH_OK;
    rc = bh_call_alloc(call, sizeof *share, &share, err);
    if (rc != BH_OK)
        return rc;
    *share = (struct bh_reply_job_share){
        .cap_mib = bh_json_number(bh_json_get(sample, "share_cap_bytes"), 0) >> 20,
        .driver_mib = bh_json_number(bh_json_get(sample, "share_driver_bytes"), 0) >> 20,
        .promised_permille = bh_json_number(bh_json_get(sample, "share_promised"), 0),
        .reserved_mib = bh_json_number(bh_json_get(sample, "share_charged_bytes"), 0) >> 20,
        .time_slice_permille = bh_json_number(bh_json_get(sample, "share_permille"), 0),
    };
    *ret = share;
    return BH_OK;
}

static bh_rc
members_fill(const struct bh_call *call, const struct members *members, uint32_t at,
             struct bh_reply_job_member *ret, struct bh_err *err)
{
    const struct bh_member_view *view = &members->views[at];
    bh_rc rc = members_find_share(call, members_sample_of(&members->facts, view->lease.v), &ret->share, err);

    if (rc != BH_OK)
        return rc;
    ret->lease = view->lease.v;
    ret->member = view->member;
    ret->node = members->nodes[at] ? members->nodes[at] : "";
    ret->state = view->done ? "done" : bh_job_state_names[view->state];
    return members_list_partitions(call, view, &ret->partitions, err);
}

bh_rc
bh_members_list(struct bh_call *call, uint64_t job, struct bh_list *ret, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct members members = { .job = { job }, .arena = call->arena };
    struct bh_reply_job_member *rows;
    bh_rc rc = bh_call_alloc(call, BH_JOB_GANG_MAX * sizeof *members.views, &members.views, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_call_ask(call, ask_members, &members, err);
    if (rc != BH_OK || members.count == 0)
        return rc;
    rc = bh_call_alloc(call, members.count * sizeof *rows, &rows, err);
    if (rc != BH_OK)
        return rc;
    rc = store->ops->list_names(store->self, members_read_name, &members, err);
    bh_facts_load(&call->api->options.owner, &members.facts);
    for (uint32_t i = 0; i < members.count && rc == BH_OK; i++)
        rc = members_fill(call, &members, i, &rows[i], err);
    bh_facts_fini(&members.facts);
    *ret = (struct bh_list){ rows, members.count };
    return rc;
}

bh_rc
bh_members_check(uint64_t job, uint32_t gang, uint32_t member, struct bh_err *err)
{
    if (member < (gang ? gang : 1))
        return BH_OK;
    bh_err_set(err, BH_NOT_FOUND, "job %" PRIu64 " has no member %" PRIu32, job, member);
    return gang > 1 ? bh_err_hint(err, "its members are 0 to %" PRIu32, gang - 1)
                    : bh_err_hint(err, "it has one member, 0; --gang makes jobs of several");
}

bh_rc
bh_members_refuse_ended(uint64_t job, const char *state, struct bh_err *err)
{
    bh_err_set(err, BH_CONFLICT, "job %" PRIu64 " is not running: it is %s", job, state);
    return bh_err_hint(
        err, "`bulkhead logs %" PRIu64 "` has its output, `bulkhead why %" PRIu64 "` its state", job, job);
}
