#include "api/site/usage.h"

#include <string.h>

#include "api/request/visible.h"

struct usage_amounts {
    bh_part_ns compute, memory;
};

/* What a tenant used by itself, and with all that is or was below it. */
struct usage {
    struct usage_amounts own, all;
    struct usage_amounts dedicated; /* of its own: what its dedicated nodes kept from others */
    bool metered;                   /* it, or something below it, has a row of the ledger */
};

struct usage_question {
    const struct bh_directory *dir;
    struct usage *usages; /* beside dir->tenants */
    struct bh_ledger_view ledger;
    uint64_t now_ns;
};

static void
read_own(struct usage *usage, const struct bh_metered_view *row)
{
    usage->own = (struct usage_amounts){ row->compute_ns, row->memory_ns };
    usage->dedicated = (struct usage_amounts){ row->dedicated_compute_ns, row->dedicated_memory_ns };
}

/* Add a row to its tenant and to all above it. */
static void
add_row(struct usage_question *q, const struct bh_metered_view *row)
{
    const struct bh_dir_tenant *tenant = bh_directory_tenant(q->dir, row->tenant);

    if (tenant)
        read_own(&q->usages[tenant - q->dir->tenants], row);
    for (; tenant; tenant = bh_directory_tenant(q->dir, tenant->parent)) {
        struct usage *usage = &q->usages[tenant - q->dir->tenants];

        usage->all.compute += row->compute_ns;
        usage->all.memory += row->memory_ns;
        usage->metered = true;
    }
}

static void
ask_usage(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct usage_question *q = self;
    struct bh_metered_view row;
    uint32_t cursor = 0;

    q->now_ns = now_ns;
    bh_view_ledger(engine, now_ns, &q->ledger);
    while (bh_view_next_metered(engine, &cursor, now_ns, &row))
        add_row(q, &row);
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
usage_put_tenant(struct bh_json_writer *w, const struct bh_dir_tenant *tenant, const struct usage *usage)
{
    bh_json_open(w, NULL, '{');
    put_amount(w, "compute_part_ns", usage->own.compute);
    put_amount(w, "dedicated_compute_part_ns", usage->dedicated.compute);
    put_amount(w, "dedicated_memory_part_ns", usage->dedicated.memory);
    put_amount(w, "memory_part_ns", usage->own.memory);
    if (tenant->gone)
        bh_json_bool(w, "removed", true);
    bh_json_str(w, "tenant", tenant->path);
    put_both(w, "with_below", usage->all.compute, usage->all.memory);
    bh_json_close(w, '}');
}

/* What is unheard stands by itself: it alone falls, when it is settled (ADR 0064). */
static void
put_sums(struct bh_json_writer *w, const struct bh_ledger_view *ledger)
{
    static const enum bh_unusable by_name[] = { BH_UNUSABLE_AWAY,     BH_UNUSABLE_CARVING,
                                                BH_UNUSABLE_CORDONED, BH_UNUSABLE_RESERVE,
                                                BH_UNUSABLE_FAULT,    BH_UNUSABLE_GEOMETRY };
    bh_part_ns compute = ledger->causes_compute[BH_UNUSABLE_UNHEARD];
    bh_part_ns memory = ledger->causes_memory[BH_UNUSABLE_UNHEARD];

    put_both(w, "idle", ledger->idle_compute, ledger->idle_memory);
    put_both(w, "physical", ledger->physical, ledger->physical);
    put_both(w, "tenants", ledger->tenants_compute, ledger->tenants_memory);
    put_both(w, "unheard", compute, memory);
    put_both(w, "unusable", ledger->unusable_compute - compute, ledger->unusable_memory - memory);
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
    if (rc != BH_OK)
        return rc;

    rc = bh_call_alloc(call, call->dir->tenant_count * sizeof *q.usages, &q.usages, err);
    if (rc != BH_OK)
        return rc;
    memset(q.usages, 0, call->dir->tenant_count * sizeof *q.usages);
    rc = bh_call_ask(call, ask_usage, &q, err);
    if (rc != BH_OK)
        return rc;
    bh_json_open(&w, NULL, '{');
    bh_json_ns(&w, "at_ns", q.now_ns);
    bh_json_open(&w, "items", '[');
    for (uint32_t i = 0; i < call->dir->tenant_count; i++)
        if (q.usages[i].metered && bh_visible_has(&visible, call->dir->tenants[i].id.v))
            usage_put_tenant(&w, &call->dir->tenants[i], &q.usages[i]);
    bh_json_close(&w, ']');
    if (visible.all) {
        bh_json_open(&w, "sums", '{');
        put_sums(&w, &q.ledger);
        bh_json_close(&w, '}');
    }
    bh_json_close(&w, '}');
    return BH_OK;
}
