#include "api/usage.h"

#include "api/visible.h"

struct usage_question {
    const struct bh_directory *dir;
    struct bh_tenant_view *views; /* beside dir->tenants */
    struct bh_ledger_view ledger;
    uint64_t now_ns;
};

static void
ask_usage(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct usage_question *q = self;

    q->now_ns = now_ns;
    bh_view_ledger(engine, now_ns, &q->ledger);
    for (uint32_t i = 0; i < q->dir->tenant_count; i++)
        if (!bh_view_tenant(engine, q->dir->tenants[i].id, now_ns, &q->views[i]))
            q->views[i].settings.tenant.v = 0;
}

static void
put_amount(struct bh_json_writer *w, const char *key, bh_part_ns amount)
{
    char text[40];

    bh_part_ns_format(amount, text);
    bh_json_str(w, key, text);
}

static void
put_both(struct bh_json_writer *w, const char *key, bh_part_ns compute, bh_part_ns memory)
{
    bh_json_open(w, key, '{');
    put_amount(w, "compute_part_ns", compute);
    put_amount(w, "memory_part_ns", memory);
    bh_json_close(w, '}');
}

static void
put_sums(struct bh_json_writer *w, const struct bh_ledger_view *ledger)
{
    static const enum bh_unusable by_name[] = { BH_UNUSABLE_AWAY, BH_UNUSABLE_CARVING,
                                                BH_UNUSABLE_CORDONED,
                                                BH_UNUSABLE_RESERVE, BH_UNUSABLE_FAULT,
                                                BH_UNUSABLE_GEOMETRY };

    put_both(w, "idle", ledger->idle_compute, ledger->idle_memory);
    put_both(w, "physical", ledger->physical, ledger->physical);
    put_both(w, "tenants", ledger->tenants_compute, ledger->tenants_memory);
    put_both(w, "unusable", ledger->unusable_compute, ledger->unusable_memory);
    bh_json_open(w, "unusable_by", '{');
    for (size_t i = 0; i < BH_COUNT(by_name); i++)
        put_both(w, bh_unusable_names[by_name[i]], ledger->causes_compute[by_name[i]],
                 ledger->causes_memory[by_name[i]]);
    bh_json_close(w, '}');
}

bh_rc
bh_usage_show(struct bh_call *call, struct bh_err *err)
{
    struct bh_json_writer w = bh_call_writer(call);
    struct usage_question q = { .dir = call->dir };
    struct bh_visible visible;
    bh_rc rc = bh_visible_find(call, "usage.view", &visible, err);

    if (rc == BH_OK)
        rc = bh_call_alloc(call, call->dir->tenant_count * sizeof *q.views, &q.views, err);
    if (rc == BH_OK)
        rc = bh_call_ask(call, ask_usage, &q, err);
    if (rc != BH_OK)
        return rc;
    bh_json_open(&w, NULL, '{');
    bh_json_ns(&w, "at_ns", q.now_ns);
    bh_json_open(&w, "items", '[');
    for (uint32_t i = 0; i < call->dir->tenant_count; i++) {
        const struct bh_dir_tenant *named = &call->dir->tenants[i];

        if (!q.views[i].settings.tenant.v || !bh_visible_has(&visible, named->id.v))
            continue;
        bh_json_open(&w, NULL, '{');
        put_amount(&w, "compute_part_ns", q.views[i].compute_ns);
        put_amount(&w, "dedicated_compute_part_ns", q.views[i].dedicated_compute_ns);
        put_amount(&w, "dedicated_memory_part_ns", q.views[i].dedicated_memory_ns);
        put_amount(&w, "memory_part_ns", q.views[i].memory_ns);
        bh_json_str(&w, "tenant", named->path);
        bh_json_close(&w, '}');
    }
    bh_json_close(&w, ']');
    if (visible.all) {
        bh_json_open(&w, "sums", '{');
        put_sums(&w, &q.ledger);
        bh_json_close(&w, '}');
    }
    bh_json_close(&w, '}');
    return BH_OK;
}
