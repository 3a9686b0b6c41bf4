#include "api/site/skus.h"

#include "api/request/amounts.h"

struct sku_question {
    const struct bh_directory *dir;
    struct bh_ev_sku *skus; /* beside dir->skus; sku.v 0 where unknown */
};

static void
ask_skus(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct sku_question *q = self;

    for (uint32_t i = 0; i < q->dir->sku_count; i++)
        if (!bh_view_sku(engine, q->dir->skus[i].id, &q->skus[i]))
            q->skus[i].sku.v = 0;
}

static void
put_model(struct bh_json_writer *w, const struct bh_sku_model *entry)
{
    struct bh_parts parts = bh_profile_parts((bh_profile_id){ entry->profile });
    char name[BH_PARTITION_NAME_MAX];
    struct bh_share share;

    bh_partition_name((enum bh_gpu_model)entry->model, entry->profile, name);
    bh_json_open(w, NULL, '{');
    bh_json_u64(w, "compute_parts", parts.compute);
    bh_put_gpus(w, "gpus", bh_parts_equivalent(parts));
    bh_json_u64(w, "memory_parts", parts.memory);
    bh_json_str(w, "model", bh_model_facts((enum bh_gpu_model)entry->model)->name);
    bh_json_str(w, "profile", name);
    if (bh_share_get((bh_profile_id){ entry->profile }, &share))
        bh_json_str(w, "share_mode", bh_share_mode_names[share.mode]);
    bh_json_close(w, '}');
}

static bool
has_shares(const struct bh_ev_sku *sku)
{
    for (uint32_t i = 0; i < sku->model_count; i++) {
        if (bh_profile_is_share((bh_profile_id){ sku->models[i].profile }))
            return true;
    }
    return false;
}

static void
skus_put_sku(struct bh_json_writer *w, const struct bh_dir_sku *named, const struct bh_ev_sku *sku)
{
    bh_json_open(w, NULL, '{');
    if (named->cpu)
        bh_json_str(w, "cpu", named->cpu);
    bh_json_str(w, "grade", bh_grade_names[sku->grade]);
    if (has_shares(sku))
        bh_json_str(w, "managed", bh_managed_names[named->managed]);
    if (named->memory)
        bh_json_str(w, "memory", named->memory);
    bh_json_open(w, "models", '[');
    for (uint32_t i = 0; i < sku->model_count; i++)
        put_model(w, &sku->models[i]);
    bh_json_close(w, ']');
    bh_json_str(w, "name", named->name);
    if (has_shares(sku))
        bh_json_str(w, "over_cap", bh_over_cap_names[named->over_cap]);
    if (has_shares(sku))
        bh_json_str(w, "over_time", bh_over_time_names[named->over_time]);
    bh_put_decimal(w, "price", sku->price, BH_MONEY_UNIT);
    bh_json_close(w, '}');
}

bh_rc
bh_skus_list(struct bh_call *call, struct bh_err *err)
{
    struct bh_json_writer w = bh_call_writer(call);
    struct sku_question q = { .dir = call->dir };
    bh_rc rc = bh_call_alloc(call, call->dir->sku_count * sizeof *q.skus, &q.skus, err);
    if (rc != BH_OK)
        return rc;

    rc = bh_call_ask(call, ask_skus, &q, err);
    if (rc != BH_OK)
        return rc;
    bh_json_open(&w, NULL, '{');
    bh_json_open(&w, "items", '[');
    for (uint32_t i = 0; i < call->dir->sku_count; i++)
        if (q.skus[i].sku.v && !call->dir->skus[i].gone)
            skus_put_sku(&w, &call->dir->skus[i], &q.skus[i]);
    bh_json_close(&w, ']');
    bh_json_close(&w, '}');
    return BH_OK;
}
