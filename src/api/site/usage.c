#include "api/site/usage.h"

#include <string.h>

#include "api/request/reply.h"
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

enum { PART_NS_SIZE = 40 };
#define PART_NS_TEXT ((char[PART_NS_SIZE]){ "" })

static const char *
usage_text(bh_part_ns amount, char text[PART_NS_SIZE])
{
    bh_part_ns_format(amount, text);
    return text;
}

/* Two amounts, for as long as the block is. */
#define PART_NS(compute, memory)                                                                             \
    {                                                                                                        \
        usage_text(compute, PART_NS_TEXT), usage_text(memory, PART_NS_TEXT)                                  \
    }

static void
usage_put_tenant(struct bh_rows *rows, const struct bh_dir_tenant *tenant, const struct usage *usage)
{
    const struct bh_reply_usage_shown row = {
        .compute_part_ns = usage_text(usage->own.compute, PART_NS_TEXT),
        .dedicated_compute_part_ns = usage_text(usage->dedicated.compute, PART_NS_TEXT),
        .dedicated_memory_part_ns = usage_text(usage->dedicated.memory, PART_NS_TEXT),
        .memory_part_ns = usage_text(usage->own.memory, PART_NS_TEXT),
        .removed = tenant->gone,
        .tenant = tenant->path,
        .with_below = PART_NS(usage->all.compute, usage->all.memory),
    };

    (void)bh_rows_put(rows, &row);
}

/* What is unheard stands by itself: it alone falls, when it is settled (ADR 0064). */
static void
usage_put_end(struct bh_rows *rows, const struct usage_question *q, bool all)
{
    const struct bh_ledger_view *ledger = &q->ledger;
    const bh_part_ns *compute = ledger->causes_compute, *memory = ledger->causes_memory;
#define CAUSE(cause) PART_NS(compute[cause], memory[cause])
    const struct bh_reply_usage_sums sums = {
        .idle = PART_NS(ledger->idle_compute, ledger->idle_memory),
        .physical = PART_NS(ledger->physical, ledger->physical),
        .tenants = PART_NS(ledger->tenants_compute, ledger->tenants_memory),
        .unheard = CAUSE(BH_UNUSABLE_UNHEARD),
        .unusable = PART_NS(ledger->unusable_compute - compute[BH_UNUSABLE_UNHEARD],
                            ledger->unusable_memory - memory[BH_UNUSABLE_UNHEARD]),
        .unusable_by = { .away = CAUSE(BH_UNUSABLE_AWAY),
                         .carving = CAUSE(BH_UNUSABLE_CARVING),
                         .cordoned = CAUSE(BH_UNUSABLE_CORDONED),
                         .fault = CAUSE(BH_UNUSABLE_FAULT),
                         .geometry = CAUSE(BH_UNUSABLE_GEOMETRY),
                         .reserve = CAUSE(BH_UNUSABLE_RESERVE) },
    };
#undef CAUSE

    bh_rows_end(rows, &(struct bh_reply_usage_list){ .at_ns = q->now_ns, .sums = all ? &sums : NULL });
}

bh_rc
bh_usage_show(struct bh_call *call, struct bh_err *err)
{
    struct usage_question q = { .dir = call->dir };
    struct bh_visible visible;
    struct bh_rows rows;
    bh_rc rc = bh_visible_read(call, "usage.view", &visible, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_call_alloc(call, call->dir->tenant_count * sizeof *q.usages, &q.usages, err);
    if (rc != BH_OK)
        return rc;
    memset(q.usages, 0, call->dir->tenant_count * sizeof *q.usages);
    rc = bh_call_ask(call, ask_usage, &q, err);
    if (rc != BH_OK)
        return rc;
    rows = bh_rows_begin(call, &bh_reply_usage_list_fields);
    for (uint32_t i = 0; i < call->dir->tenant_count; i++)
        if (q.usages[i].metered && bh_visible_has(&visible, call->dir->tenants[i].id.v))
            usage_put_tenant(&rows, &call->dir->tenants[i], &q.usages[i]);
    usage_put_end(&rows, &q, visible.all);
    return BH_OK;
}
