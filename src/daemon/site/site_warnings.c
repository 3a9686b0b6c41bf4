#include "daemon/site/site_warnings.h"

#include <string.h>

#include "base/nearest.h"

enum { WARNINGS_BYTES_MAX = 32 << 10, LINE_BYTES_MAX = 512 };

struct warnings {
    const struct bh_core *core;
    struct bh_buf text;
    uint32_t left; /* that did not fit */
};

static void
site_warnings_put_line(struct warnings *w, struct bh_buf *line)
{
    if (!bh_buf_text(line) || w->text.length + line->length + 2 * LINE_BYTES_MAX > WARNINGS_BYTES_MAX)
        w->left++;
    else
        bh_buf_printf(&w->text, "%s\n", bh_buf_text(line));
}

/* ---- names that are not used ---- */

/* Warn where `name` is no name of that kind; `entry` is what says it. */
static void
warn_of_name(struct warnings *w, enum bh_name_kind kind, const char *entry, const char *name)
{
    struct bh_nearest nearest = { 0 };
    char memory[LINE_BYTES_MAX];
    struct bh_buf line;
    const char *known;
    uint32_t cursor = 0, id;

    if (strcmp(name, "all") == 0 || bh_catalog_find(w->core->catalog, kind, name))
        return;
    while ((known = bh_catalog_next(w->core->catalog, kind, &cursor, &id)))
        bh_nearest_try(&nearest, name, known);
    bh_buf_init_fixed(&line, memory, sizeof memory);
    bh_buf_printf(&line, "%s[%.80s]: no node %s so far", entry, name,
                  kind == BH_NAME_GPU ? "has shown such a GPU" : "of that name has connected");
    if (nearest.word)
        bh_buf_printf(&line, "; did you mean %.80s?", nearest.word);
    site_warnings_put_line(w, &line);
}

static void
warn_of_gpus(struct warnings *w, const struct bh_site *site)
{
    const struct bh_site_gpu *gpus = site->gpus.items;

    for (uint32_t i = 0; i < site->gpus.count; i++)
        warn_of_name(w, BH_NAME_GPU, "gpus", gpus[i].uuid);
}

static void
warn_of_pools(struct warnings *w, const struct bh_site *site)
{
    const struct bh_site_pool *pools = site->pools.items;

    for (uint32_t i = 0; i < site->pools.count; i++)
        for (uint32_t n = 0; n < pools[i].nodes.count; n++) {
            char memory[LINE_BYTES_MAX];
            struct bh_buf entry;

            bh_buf_init_fixed(&entry, memory, sizeof memory);
            bh_buf_printf(&entry, "pools[%.80s].nodes", pools[i].name);
            warn_of_name(w, BH_NAME_NODE, bh_buf_text(&entry), pools[i].nodes.items[n]);
        }
}

/* ---- grades that no job gets ---- */

static void
warn_of_grades(struct warnings *w, const struct bh_site *site)
{
    const struct bh_site_tenant *tenants = site->tenants.items;
    const struct bh_site_sku *skus = site->skus.items;

    for (uint32_t i = 0; i < site->tenants.count; i++)
        if (tenants[i].dedicated_nodes)
            return;
    for (uint32_t i = 0; i < site->skus.count; i++) {
        char memory[LINE_BYTES_MAX];
        struct bh_buf line;

        if (skus[i].grade != BH_GRADE_A)
            continue;
        bh_buf_init_fixed(&line, memory, sizeof memory);
        bh_buf_printf(&line,
                      "skus[%.80s]: grade A is a node without other tenants, and no tenant "
                      "has dedicated_nodes: its jobs never start",
                      skus[i].name);
        site_warnings_put_line(w, &line);
    }
}

const char *
bh_site_warnings(const struct bh_core *core, const struct bh_site *site, struct bh_arena *arena)
{
    struct warnings w = { .core = core };
    const char *copy;

    bh_buf_init(&w.text, WARNINGS_BYTES_MAX);
    warn_of_gpus(&w, site);
    warn_of_pools(&w, site);
    warn_of_grades(&w, site);
    if (w.left)
        bh_buf_printf(&w.text, "%u more of that kind\n", w.left);
    copy = w.text.length ? bh_arena_strdup(arena, bh_buf_text(&w.text)) : "";
    bh_buf_fini(&w.text);
    return copy;
}
