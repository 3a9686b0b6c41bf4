#include "api/jobs/members.h"

#include <inttypes.h>
#include <string.h>

#include "api/request/facts.h"
#include "base/assert.h"
#include "base/json.h"

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

static void
members_put_partition(const struct bh_call *call, struct bh_json_writer *w,
                      const struct bh_partition *partition)
{
    char name[BH_PARTITION_NAME_MAX];
    const struct bh_dir_gpu *gpu = bh_directory_gpu(call->dir, partition->gpu);

    bh_partition_name(BH_GPU_MODEL_NONE, partition->profile, name);
    bh_json_open(w, NULL, '{');
    bh_json_str(w, "gpu", gpu ? gpu->uuid : "");
    bh_json_u64(w, "id", partition->partition.v);
    bh_json_str(w, "profile", name);
    bh_json_u64(w, "start", partition->start);
    bh_json_close(w, '}');
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

/* How it stands with its shares of GPUs; nothing of one without. */
static void
members_put_share(struct bh_json_writer *w, bh_json_value sample)
{
    static const struct {
        const char *name, *sampled;
        uint32_t shift;
    } rows[] = { { "cap_mib", "share_cap_bytes", 20 },
                 { "driver_mib", "share_driver_bytes", 20 },
                 { "promised_permille", "share_promised", 0 },
                 { "reserved_mib", "share_charged_bytes", 20 },
                 { "turns_permille", "share_permille", 0 } };

    if (!bh_json_number(bh_json_get(sample, "share_cap_bytes"), 0))
        return;
    bh_json_open(w, "share", '{');
    for (size_t i = 0; i < BH_COUNT(rows); i++)
        bh_json_u64(w, rows[i].name,
                    bh_json_number(bh_json_get(sample, rows[i].sampled), 0) >> rows[i].shift);
    bh_json_close(w, '}');
}

static void
members_put_member(const struct bh_call *call, struct bh_json_writer *w, const struct members *members,
                   uint32_t at)
{
    const struct bh_member_view *view = &members->views[at];

    bh_json_open(w, NULL, '{');
    bh_json_u64(w, "lease", view->lease.v);
    bh_json_u64(w, "member", view->member);
    bh_json_str(w, "node", members->nodes[at] ? members->nodes[at] : "");
    bh_json_open(w, "pieces", '[');
    for (uint32_t i = 0; i < view->partition_count; i++)
        members_put_partition(call, w, &view->partitions[i]);
    bh_json_close(w, ']');
    members_put_share(w, members_sample_of(&members->facts, view->lease.v));
    bh_json_str(w, "state", view->done ? "done" : bh_job_state_names[view->state]);
    bh_json_close(w, '}');
}

bh_rc
bh_members_put(struct bh_call *call, struct bh_json_writer *w, uint64_t job, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct members members = { .job = { job }, .arena = call->arena };
    bh_rc rc;

    members.views = bh_arena_alloc(call->arena, BH_JOB_GANG_MAX * sizeof *members.views);
    BH_ASSERT(members.views);
    rc = bh_call_ask(call, ask_members, &members, err);
    if (rc != BH_OK || members.count == 0)
        return rc;
    rc = store->ops->list_names(store->self, members_read_name, &members, err);
    bh_facts_load(&call->api->options.owner, &members.facts);
    bh_json_open(w, "members", '[');
    for (uint32_t i = 0; i < members.count; i++)
        members_put_member(call, w, &members, i);
    bh_json_close(w, ']');
    bh_facts_fini(&members.facts);
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
