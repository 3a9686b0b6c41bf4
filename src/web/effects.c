#include "web/effects.h"

#include <string.h>

#include "base/attr.h"
#include "web/show.h"

static const struct effect {
    const char *kind, *words;
    bool moves, when; /* say by how much, and when */
} effects[] = {
    { "cancelled", "ends", false, true },
    { "suspended", "is suspended", false, true },
    { "requeued", "is stopped and queued again", false, true },
    { "never", "no longer starts", false, false },
    { "later", "starts", true, true },
    { "earlier", "starts", true, true },
    { "starts", "starts, which it otherwise would not", false, true },
    { "spared", "is no longer preempted", false, false },
};

static const struct effect *
effects_find(const char *kind)
{
    for (size_t i = 0; i < BH_COUNT(effects); i++)
        if (strcmp(effects[i].kind, kind) == 0)
            return &effects[i];
    return NULL;
}

static void
effects_put_when(struct bh_html *html, const struct effect *effect, bh_json_value change)
{
    bh_ns before = bh_show_number_of(change, "before_ns"), after = bh_show_number_of(change, "after_ns");

    if (effect->moves) {
        bh_html_text(html, " ");
        bh_show_span(html, after > before ? after - before : before - after);
        bh_html_text(html, " ");
        bh_html_text(html, effect->kind);
    }
    if (effect->when && after) {
        bh_html_text(html, ", about ");
        bh_show_time(html, after);
    }
}

static void
effects_put_change(struct bh_html *html, bh_json_value change)
{
    const char *kind = bh_show_text_of(change, "kind");
    const struct effect *effect = effects_find(kind);

    bh_html_open(html, "li");
    bh_html_text(html, "Job ");
    bh_show_job(html, bh_show_number_of(change, "job"));
    bh_html_text(html, " of ");
    bh_show_tenant(html, bh_show_text_of(change, "tenant"));
    bh_html_text(html, " ");
    bh_html_text(html, effect ? effect->words : kind);
    if (effect)
        effects_put_when(html, effect, change);
    if (bh_show_number_of(change, "for_job")) {
        bh_html_text(html, " for job ");
        bh_show_job(html, bh_show_number_of(change, "for_job"));
    } else if (bh_show_text_of(change, "for")[0]) {
        bh_html_text(html, " for ");
        bh_html_text(html, bh_show_text_of(change, "for"));
    }
    bh_html_close(html, "li");
}

/* Of jobs that the caller may not see only the kind is known. */
static bool
effects_put_others(struct bh_html *html, bh_json_value others)
{
    void *cursor = NULL;
    const char *kind;
    bh_json_value unused;
    bool some = false;

    for (; bh_json_next(others, &cursor, &kind, &unused); some = true) {
        bh_html_open(html, "li");
        bh_html_text(html, "Jobs of other tenants: ");
        bh_html_text(html, kind);
        bh_html_close(html, "li");
    }
    return some;
}

void
bh_effects_put(struct bh_html *html, bh_json_value whatif)
{
    bh_json_value list = bh_json_get(whatif, "changes");
    bool some = bh_json_count(list) > 0;

    bh_html_open(html, "ul");
    bh_html_attr(html, "class", "effects");
    for (size_t i = 0; i < bh_json_count(list); i++)
        effects_put_change(html, bh_json_at(list, i));
    some = effects_put_others(html, bh_json_get(whatif, "changes_of_other_tenants")) || some;
    if (!some)
        bh_html_element(html, "li", NULL, "No other job starts earlier or later.");
    bh_html_close(html, "ul");
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_html_text(html, "Expected ");
    bh_html_text(html, bh_show_text_of(whatif, "assumption"));
    bh_html_text(html, ".");
    bh_html_close(html, "p");
}
