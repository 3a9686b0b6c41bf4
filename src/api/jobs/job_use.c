#include "api/jobs/job_use.h"

#include <string.h>

#include "api/request/amounts.h"

struct use_question {
    bh_job_id job;
    bh_sku_id sku;
    struct bh_ev_sku known;
    uint32_t suspensions;
    bool found;
};

static void
use_ask(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct use_question *q = self;
    struct bh_job_view job;

    q->found = bh_view_sku(engine, q->sku, &q->known);
    if (bh_view_job(engine, q->job, &job))
        q->suspensions = job.suspensions;
}

/* The model of GPU that its partitions are of: rows name them "GPU-1bd7ab2e 1g.10gb@6". */
static const struct bh_sku_model *
use_find_model(const struct bh_ev_sku *sku, const char *partitions)
{
    for (uint32_t i = 0; i < sku->model_count; i++) {
        char name[BH_PARTITION_NAME_MAX];

        bh_partition_name((enum bh_gpu_model)sku->models[i].model, sku->models[i].profile, name);
        if (strstr(partitions, name))
            return &sku->models[i];
    }
    return NULL;
}

/* Jobs that can be suspended gave their partitions back meanwhile, and no row says for how long. */
static uint64_t
use_held_ns(const struct bh_call *call, const struct bh_job_row *row, const struct use_question *q)
{
    bool ended = row->ended_ns != 0;
    bool suspendable = strcmp(row->contract, "suspend") == 0 || strcmp(row->contract, "checkpoint") == 0;
    uint64_t end_ns = ended ? row->ended_ns : bh_call_now(call);

    if (suspendable && (ended || q->suspensions > 0 || strncmp(row->state, "suspend", 7) == 0))
        return (uint64_t)BH_UNSET;
    return end_ns > row->started_ns ? end_ns - row->started_ns : 0;
}

static bh_rc
use_fill(const struct bh_call *call, const struct bh_job_row *row, const struct use_question *q,
         const struct bh_reply_job_use **ret_use, struct bh_err *err)
{
    const struct bh_sku_model *model = use_find_model(&q->known, row->partitions);
    struct bh_parts parts;
    uint64_t partitions = (uint64_t)row->count * (row->gang ? row->gang : 1);
    char gpus[BH_AMOUNT_SIZE], price[BH_AMOUNT_SIZE];
    struct bh_reply_job_use *use;
    bh_rc rc = model ? bh_call_alloc(call, sizeof *use, &use, err) : BH_OK;

    if (rc != BH_OK || !model)
        return rc;
    parts = bh_profile_parts((bh_profile_id){ model->profile });
    parts = (struct bh_parts){ parts.compute * partitions, parts.memory * partitions };
    *use = (struct bh_reply_job_use){
        .held_ns = use_held_ns(call, row, q),
        .parts = { .compute = parts.compute,
                   .gpus = bh_arena_strdup(call->arena, bh_gpus_text(bh_parts_equivalent(parts), gpus)),
                   .memory = parts.memory },
        .partitions = (uint32_t)partitions,
        .price = q->known.price
                     ? bh_arena_strdup(call->arena, bh_decimal_text(q->known.price, BH_MONEY_UNIT, price))
                     : NULL,
    };
    if (!use->parts.gpus)
        return bh_err_set(err, BH_FULL, "the answer is too large");
    *ret_use = use;
    return BH_OK;
}

bh_rc
bh_job_use_find(const struct bh_call *call, const struct bh_job_row *row,
                const struct bh_reply_job_use **ret_use, struct bh_err *err)
{
    const struct bh_dir_sku *sku = bh_directory_sku_named(call->dir, row->sku);
    struct use_question q = { .job = { row->job } };
    bh_rc rc;

    if (row->started_ns == 0 || strcmp(row->state, "pending") == 0 || !sku)
        return BH_OK;
    q.sku = sku->id;
    rc = bh_call_ask(call, use_ask, &q, err);
    return rc == BH_OK && q.found ? use_fill(call, row, &q, ret_use, err) : rc;
}
