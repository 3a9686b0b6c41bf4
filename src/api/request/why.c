#include "api/request/why.h"

#include "api/request/visible.h"

enum { WORDS_MAX = 4096 };

static bool
why_may_name(const struct bh_explain *how, uint32_t tenant)
{
    const struct bh_visible visible = { (uint32_t *)(uintptr_t)how->visible, how->visible_count, how->all };

    return tenant != 0 && bh_visible_has(&visible, tenant);
}

static void
why_put_number(struct bh_json_writer *w, const char *key, uint64_t value)
{
    if (value)
        bh_json_u64(w, key, value);
}

void
bh_why_put_operands(struct bh_json_writer *w, const char *key, const struct bh_explain *how,
                    const struct bh_reason *reason)
{
    const struct bh_dir_tenant *tenant = bh_directory_tenant(how->dir, reason->tenant);
    const struct bh_dir_sku *sku = bh_directory_sku(how->dir, reason->sku);
    const struct bh_dir_gpu *gpu = bh_directory_gpu(how->dir, reason->gpu);
    const struct bh_dir_gpu *also = bh_directory_gpu(how->dir, reason->also_gpu);
    bool holder = how->all || why_may_name(how, how->holder_tenant.v);
    bool away = reason->code >= BH_REASON_IN_REPAIR && reason->code <= BH_REASON_NEEDS_REBOOT;

    bh_json_open(w, key, '{');
    if (reason->also)
        bh_json_str(w, "also", bh_reason_names[reason->also]);
    if (also)
        bh_json_str(w, "also_gpu", also->uuid);
    if (reason->frees_at_ns && reason->assumed)
        bh_json_bool(w, "assumed", true);
    if (tenant && why_may_name(how, tenant->id.v))
        why_put_number(w, "expected_parts", reason->expected);
    if (reason->frees_at_ns)
        bh_json_ns(w, "frees_at_ns", reason->frees_at_ns);
    why_put_number(w, "free_parts", reason->free_partitions);
    if (gpu && (holder || away || reason->code == BH_REASON_STARTING))
        bh_json_str(w, "gpu", gpu->uuid);
    if (reason->guarantee.cause)
        bh_json_str(w, "guarantee", bh_guarantee_cause_names[reason->guarantee.cause]);
    if (reason->job.v && holder)
        bh_json_u64(w, "job", reason->job.v);
    if (reason->limit || reason->wanted) {
        bh_json_u64(w, "limit", reason->limit);
        bh_json_u64(w, "used", reason->used);
        bh_json_u64(w, "wanted", reason->wanted);
    }
    if (reason->moved_for.v && why_may_name(how, how->preemptor_tenant.v))
        bh_json_u64(w, "moved_for", reason->moved_for.v);
    if (reason->moved_ns)
        bh_json_ns(w, "moved_ns", reason->moved_ns);
    if (reason->preempted_for.v && why_may_name(how, how->preemptor_tenant.v))
        bh_json_u64(w, "preempted_for", reason->preempted_for.v);
    if (sku)
        bh_json_str(w, "sku", sku->name);
    if (tenant && why_may_name(how, tenant->id.v))
        bh_json_str(w, "tenant", tenant->path);
    bh_json_close(w, '}');
}

void
bh_why_put(struct bh_json_writer *w, const struct bh_explain *how, const struct bh_reason *reason,
           const char *more)
{
    struct bh_buf text;

    bh_buf_init(&text, WORDS_MAX);
    bh_explain_next(&text, how, reason);
    bh_json_str(w, "next", bh_buf_text(&text));
    bh_why_put_operands(w, "operands", how, reason);
    bh_json_str(w, "reason", bh_reason_names[reason->code]);
    bh_buf_clear(&text);
    bh_explain_sentence(&text, how, reason);
    bh_buf_puts(&text, more);
    bh_json_str(w, "sentence", bh_buf_text(&text));
    bh_buf_fini(&text);
}
