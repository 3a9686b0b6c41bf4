#include "api/request/why.h"

#include "api/request/visible.h"

enum { WORDS_MAX = 4096 };

static bool
why_may_name(const struct bh_explain *how, uint32_t tenant)
{
    const struct bh_visible visible = { (uint32_t *)(uintptr_t)how->visible, how->visible_count, how->all };

    return tenant != 0 && bh_visible_has(&visible, tenant);
}

/* What the tenant is expected to use, and its path, for a caller that may see it. */
static void
why_fill_tenant(const struct bh_explain *how, const struct bh_reason *reason, struct bh_reply_operands *ret)
{
    const struct bh_dir_tenant *tenant = bh_directory_tenant(how->dir, reason->tenant);

    if (!tenant || !why_may_name(how, tenant->id.v))
        return;
    ret->expected_parts = reason->expected;
    ret->tenant = tenant->path;
}

static void
why_fill_jobs(const struct bh_explain *how, const struct bh_reason *reason, struct bh_reply_operands *ret)
{
    bool holder = how->all || why_may_name(how, how->holder_tenant.v);
    bool away = reason->code >= BH_REASON_IN_REPAIR && reason->code <= BH_REASON_NEEDS_REBOOT;
    const struct bh_dir_gpu *gpu = bh_directory_gpu(how->dir, reason->gpu);

    if (gpu && (holder || away || reason->code == BH_REASON_STARTING))
        ret->gpu = gpu->uuid;
    if (holder)
        ret->job = reason->job.v;
    if (!why_may_name(how, how->preemptor_tenant.v))
        return;
    ret->moved_for = reason->moved_for.v;
    ret->preempted_for = reason->preempted_for.v;
}

struct bh_reply_operands
bh_why_operands(const struct bh_explain *how, const struct bh_reason *reason)
{
    const struct bh_dir_sku *sku = bh_directory_sku(how->dir, reason->sku);
    const struct bh_dir_gpu *also = bh_directory_gpu(how->dir, reason->also_gpu);
    struct bh_reply_operands operands = BH_NO_OPERANDS;

    operands.also = reason->also ? bh_reason_names[reason->also] : NULL;
    operands.also_gpu = also ? also->uuid : NULL;
    operands.assumed = reason->frees_at_ns && reason->assumed;
    operands.frees_at_ns = reason->frees_at_ns;
    operands.free_parts = reason->free_partitions;
    operands.guarantee = reason->guarantee.cause ? bh_guarantee_cause_names[reason->guarantee.cause] : NULL;
    operands.moved_ns = reason->moved_ns;
    operands.sku = sku ? sku->name : NULL;
    if (reason->limit || reason->wanted) {
        operands.limit = reason->limit;
        operands.used = reason->used;
        operands.wanted = reason->wanted;
    }
    why_fill_tenant(how, reason, &operands);
    why_fill_jobs(how, reason, &operands);
    return operands;
}

struct bh_reply_reason
bh_why_reason(struct bh_arena *arena, const struct bh_explain *how, const struct bh_reason *reason)
{
    struct bh_reply_reason words = { .operands = bh_why_operands(how, reason),
                                     .reason = bh_reason_names[reason->code] };
    struct bh_buf text;

    bh_buf_init(&text, WORDS_MAX);
    bh_explain_next(&text, how, reason);
    if (bh_buf_text(&text))
        words.next = bh_arena_strdup(arena, bh_buf_text(&text));
    bh_buf_clear(&text);
    bh_explain_sentence(&text, how, reason);
    if (bh_buf_text(&text))
        words.sentence = bh_arena_strdup(arena, bh_buf_text(&text));
    bh_buf_fini(&text);
    return words;
}
