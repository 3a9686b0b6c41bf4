/* What the site is doing now, in a row of figures. */
#include <stdio.h>

#include "base/attr.h"
#include "web/panel.h"
#include "web/show.h"
#include "web/svg.h"

static void
status_open(struct bh_html *html, const char *name, const char *class)
{
    bh_html_open(html, "div");
    if (class)
        bh_html_attr(html, "class", class);
    bh_html_element(html, "dt", NULL, name);
    bh_html_open(html, "dd");
}

static void
status_close(struct bh_html *html)
{
    bh_html_close(html, "dd");
    bh_html_close(html, "div");
}

static void
status_put_count(struct bh_html *html, const char *name, uint64_t count, const char *class)
{
    status_open(html, name, class);
    bh_html_u64(html, count);
    status_close(html);
}

/* "3 whole, 20 MIG, 1 free": what there is none of is left out. */
static void
status_put_modes(struct bh_html *html, bh_json_value gpus)
{
    static const struct {
        const char *member, *word;
    } modes[] = { { "mig", "MIG" }, { "shared", "shared" }, { "whole", "whole" }, { "free", "free" } };
    bool first = true;

    bh_html_open(html, "small");
    for (size_t i = 0; i < BH_COUNT(modes); i++) {
        uint64_t count = bh_show_number_of(gpus, modes[i].member);

        if (count == 0)
            continue;
        bh_html_text(html, first ? " " : ", ");
        bh_html_u64(html, count);
        bh_html_text(html, " ");
        bh_html_text(html, modes[i].word);
        first = false;
    }
    bh_html_close(html, "small");
}

static void
status_put_gpus(struct bh_html *html, bh_json_value gpus)
{
    uint64_t fenced = bh_show_number_of(gpus, "fenced");
    uint64_t total = bh_show_number_of(gpus, "total"), managed = bh_show_number_of(gpus, "managed");

    status_open(html, "GPUs", NULL);
    bh_html_u64(html, total);
    status_put_modes(html, gpus);
    status_close(html);
    if (managed < total)
        status_put_count(html, "Not managed", total - managed, NULL);
    if (fenced > 0)
        status_put_count(html, "Out of service", fenced, "bad");
}

/* The larger dimension: what is lost is lost in one of them. */
static uint64_t
status_parts_of(bh_json_value gpus, const char *member)
{
    bh_json_value parts = bh_json_get(gpus, member);
    uint64_t compute = bh_show_number_of(parts, "compute"), memory = bh_show_number_of(parts, "memory");

    return compute > memory ? compute : memory;
}

static void
status_put_causes(struct bh_html *html, bh_json_value by)
{
    static const struct {
        const char *member, *word;
    } causes[] = { { "fault", "faults" },
                   { "cordoned", "cordoned" },
                   { "away", "nodes away" },
                   { "unheard", "nodes not heard" },
                   { "carving", "being divided" },
                   { "geometry", "left over by MIG" },
                   { "reserve", "driver's reserve" } };
    bool first = true;

    if (!by)
        return;
    bh_html_open(html, "small");
    for (size_t i = 0; i < BH_COUNT(causes); i++) {
        uint64_t parts = status_parts_of(by, causes[i].member);

        if (parts == 0)
            continue;
        bh_html_text(html, first ? " " : ", ");
        bh_show_parts(html, parts);
        bh_html_text(html, " ");
        bh_html_text(html, causes[i].word);
        first = false;
    }
    bh_html_close(html, "small");
}

/* Compute alone, in the picture and beside it, as samples over time have it: in it the three add up to all
 * GPUs. */
static void
status_put_capacity(struct bh_html *html, bh_json_value gpus)
{
    const struct bh_svg_segment segments[] = {
        { "own", bh_show_number_of(bh_json_get(gpus, "used"), "compute") },
        { "idle", bh_show_number_of(bh_json_get(gpus, "idle"), "compute") },
        { "unusable", bh_show_number_of(bh_json_get(gpus, "unusable"), "compute") },
    };
    const struct bh_svg_stack stack = { .title = "compute of all GPUs: used, idle, unusable",
                                        .segments = segments,
                                        .count = BH_COUNT(segments),
                                        .whole = bh_show_number_of(gpus, "total") * 4200 };

    bh_svg_put_stack(html, &stack);
}

static void
status_put_parts(struct bh_html *html, bh_json_value gpus)
{
    status_open(html, "GPUs leased", NULL);
    bh_show_parts(html, bh_show_number_of(bh_json_get(gpus, "used"), "compute"));
    status_put_capacity(html, gpus);
    status_close(html);
    status_open(html, "Idle", NULL);
    bh_show_parts(html, bh_show_number_of(bh_json_get(gpus, "idle"), "compute"));
    status_close(html);
    if (status_parts_of(gpus, "unusable") == 0)
        return;
    status_open(html, "Unusable", NULL);
    bh_show_parts(html, bh_show_number_of(bh_json_get(gpus, "unusable"), "compute"));
    status_put_causes(html, bh_json_get(gpus, "unusable_by"));
    status_close(html);
}

static void
status_put_pending(struct bh_html *html, bh_json_value jobs)
{
    bh_ns oldest = bh_show_number_of(jobs, "oldest_ns");

    status_open(html, "Jobs pending", NULL);
    bh_html_u64(html, bh_show_number_of(jobs, "pending"));
    if (oldest > 0) {
        bh_html_open(html, "small");
        bh_html_text(html, " oldest since ");
        bh_show_time(html, oldest);
        bh_html_close(html, "small");
    }
    status_close(html);
}

static void
status_put_nodes(struct bh_html *html, bh_json_value status)
{
    bh_json_value node = bh_json_get(status, "node");

    status_open(html, "Nodes", NULL);
    bh_html_u64(html, bh_show_number_of(status, "nodes"));
    bh_html_open(html, "small");
    bh_html_text(html, " ");
    if (bh_show_truth_of(node, "connected")) {
        bh_html_text(html, "driver ");
        bh_html_text(html, bh_show_text_of(node, "driver"));
    } else {
        bh_html_text(html, "none is connected");
    }
    bh_html_close(html, "small");
    status_close(html);
}

void
bh_panel_status(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value jobs = bh_json_get(call->data, "jobs"), gpus = bh_json_get(call->data, "gpus");

    bh_html_open(html, "dl");
    bh_html_attr(html, "class", "figures");
    status_put_count(html, "Jobs running", bh_show_number_of(jobs, "running"), NULL);
    status_put_pending(html, jobs);
    status_put_gpus(html, gpus);
    status_put_parts(html, gpus);
    status_put_nodes(html, call->data);
    bh_html_close(html, "dl");
}
