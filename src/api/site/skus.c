#include "api/site/skus.h"

#include "api/request/amounts.h"
#include "api/request/reply.h"

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

/* The models of a SKU, while its row is written. */
struct sku_models {
    struct bh_reply_sku_model_shown rows[BH_SKU_MODELS_MAX];
    char names[BH_SKU_MODELS_MAX][BH_PARTITION_NAME_MAX], gpus[BH_SKU_MODELS_MAX][BH_AMOUNT_SIZE];
};

static void
skus_fill_model(const struct bh_sku_model *entry, uint32_t at, struct sku_models *ret)
{
    struct bh_parts parts = bh_profile_parts((bh_profile_id){ entry->profile });
    struct bh_share share;

    bh_partition_name((enum bh_gpu_model)entry->model, entry->profile, ret->names[at]);
    ret->rows[at] = (struct bh_reply_sku_model_shown){
        .compute_parts = parts.compute,
        .gpus = bh_gpus_text(bh_parts_equivalent(parts), ret->gpus[at]),
        .memory_parts = parts.memory,
        .model = bh_model_facts((enum bh_gpu_model)entry->model)->name,
        .profile = ret->names[at],
    };
    if (bh_share_get((bh_profile_id){ entry->profile }, &share))
        ret->rows[at].share_mode = bh_share_mode_names[share.mode];
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
skus_put_sku(struct bh_rows *rows, const struct bh_dir_sku *named, const struct bh_ev_sku *sku)
{
    struct sku_models models;
    struct bh_reply_sku_shown row = { .cpu = named->cpu,
                                      .grade = bh_grade_names[sku->grade],
                                      .memory = named->memory,
                                      .models = { models.rows, sku->model_count },
                                      .name = named->name,
                                      .price = bh_decimal_text(sku->price, BH_MONEY_UNIT, BH_AMOUNT_TEXT) };

    for (uint32_t i = 0; i < sku->model_count; i++)
        skus_fill_model(&sku->models[i], i, &models);
    if (has_shares(sku)) {
        row.managed = bh_managed_names[named->managed];
        row.over_cap = bh_over_cap_names[named->over_cap];
        row.over_time = bh_over_time_names[named->over_time];
    }
    (void)bh_rows_put(rows, &row);
}

bh_rc
bh_skus_list(struct bh_call *call, struct bh_err *err)
{
    struct sku_question q = { .dir = call->dir };
    struct bh_rows rows;
    bh_rc rc = bh_call_alloc(call, call->dir->sku_count * sizeof *q.skus, &q.skus, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_call_ask(call, ask_skus, &q, err);
    if (rc != BH_OK)
        return rc;
    rows = bh_rows_begin(call, &bh_reply_sku_list_fields);
    for (uint32_t i = 0; i < call->dir->sku_count; i++)
        if (q.skus[i].sku.v && !call->dir->skus[i].gone)
            skus_put_sku(&rows, &call->dir->skus[i], &q.skus[i]);
    bh_rows_end(&rows, NULL);
    return BH_OK;
}
