/* One node: what runs on it and why it offers what it does. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "web/hold_form.h"
#include "web/panel.h"
#include "web/show.h"
#include "web/svg.h"

enum { TEXT_MAX = 192 };

static void
node_put_state(struct bh_html *html, bh_json_value node, bh_ns now)
{
    bh_show_fact_begin(html, "State");
    bh_show_state(html, bh_show_text_of(node, "state"));
    bh_html_text(html, " ");
    bh_node_put_cordon(html, node);
    bh_show_age(html, bh_show_number_of(node, "reported_ns"), now);
    if (bh_show_truth_of(node, "needs_reboot"))
        bh_html_text(html, " it must be rebooted before it gets new work");
    if (bh_show_truth_of(node, "unchecked"))
        bh_html_text(html, " its isolation is not checked yet: no new work until it is");
    bh_show_fact_end(html);
}

/* A text that a node gives when it connects. */
static void
node_put_text(struct bh_html *html, bh_json_value node, const char *name, const char *member)
{
    const char *text = bh_show_text_of(node, member);

    bh_show_fact_begin(html, name);
    if (text[0])
        bh_html_text(html, text);
    else
        bh_show_unavailable(html, bh_json_get(node, member) ? "the node does not know" : "the node is away");
    bh_show_fact_end(html);
}

static void
node_put_faults(struct bh_html *html, bh_json_value node)
{
    bh_json_value faults = bh_json_get(node, "driver_faults");

    if (bh_json_count(faults) == 0)
        return;
    bh_show_fact_begin(html, "Driver's known faults, worked around");
    for (size_t i = 0; i < bh_json_count(faults); i++) {
        bh_html_text(html, i ? ", " : "");
        bh_html_text(html, bh_json_text(bh_json_at(faults, i), ""));
    }
    bh_show_fact_end(html);
}

static void
node_put_programs(struct bh_html *html, bh_json_value node, bh_ns now)
{
    bh_html_open(html, "dl");
    bh_html_attr(html, "class", "facts");
    node_put_state(html, node, now);
    node_put_text(html, node, "Driver", "driver");
    node_put_text(html, node, "Runtime", "runtime");
    node_put_text(html, node, "Driver clears freed memory", "driver_scrub");
    node_put_text(html, node, "Checkpoints", "checkpoint");
    node_put_faults(html, node);
    bh_html_close(html, "dl");
}

/* Since when it is up or away, and what was done to it. */
static void
node_put_records_link(struct bh_html *html, const struct bh_panel_call *call)
{
    char object[TEXT_MAX];

    if (!bh_page_may(call->page, "record.view"))
        return;
    snprintf(object, sizeof object, "node/%.120s", bh_show_text_of(call->data, "name"));
    bh_html_open(html, "p");
    bh_show_search(html, "object", object, "Since when, and what was done to it: the records about it");
    bh_html_close(html, "p");
}

/* ---- resources ---- */

static void
node_put_bar(struct bh_html *html, const char *title, uint64_t used, uint64_t offered)
{
    bh_svg_put_bar(html, &(struct bh_svg_bar){ .title = title,
                                               .used = used,
                                               .guarantee = offered,
                                               .limit = BH_SVG_NO_LIMIT,
                                               .whole = offered ? offered : 1 });
}

static void
node_put_resources(struct bh_html *html, bh_json_value node)
{
    uint64_t cores = bh_show_number_of(node, "offered_cpu_milli");
    uint64_t used = bh_show_number_of(node, "used_cpu_milli");
    char text[TEXT_MAX];

    bh_html_element(html, "h3", NULL, "Resources for jobs");
    if (!bh_json_get(node, "offered_cpu_milli")) {
        bh_html_open(html, "p");
        bh_show_unavailable(html, bh_json_get(node, "gpus") ? "its jobs of before are not settled yet"
                                                            : "the node is away");
        bh_html_close(html, "p");
        return;
    }
    bh_html_open(html, "dl");
    bh_html_attr(html, "class", "facts");
    snprintf(text, sizeof text, "%llu.%llu of %llu.%llu cores", (unsigned long long)used / 1000,
             (unsigned long long)used / 100 % 10, (unsigned long long)cores / 1000,
             (unsigned long long)cores / 100 % 10);
    bh_show_fact_begin(html, "CPUs");
    node_put_bar(html, text, used, cores);
    bh_html_text(html, text);
    bh_show_fact_end(html);
    bh_show_fact_begin(html, "Memory");
    node_put_bar(html, "main memory", bh_show_number_of(node, "used_memory_mib"),
                 bh_show_number_of(node, "offered_memory_mib"));
    bh_show_mib(html, bh_show_number_of(node, "used_memory_mib"));
    bh_html_text(html, " of ");
    bh_show_mib(html, bh_show_number_of(node, "offered_memory_mib"));
    bh_show_fact_end(html);
    bh_html_close(html, "dl");
}

/* ---- isolation ---- */

static void
node_put_isolation(struct bh_html *html, bh_json_value node)
{
    bh_ns again = bh_show_number_of(node, "isolation_again_ns");

    bh_html_element(html, "h3", NULL, "Isolation");
    bh_html_open(html, "p");
    bh_html_text(html, "Checks: ");
    if (bh_show_text_of(node, "isolation")[0])
        bh_show_state(html, bh_show_text_of(node, "isolation"));
    else
        bh_show_unavailable(html, "the node is away");
    if (bh_show_text_of(node, "isolation_why")[0]) {
        bh_html_text(html, ": ");
        bh_html_text(html, bh_show_text_of(node, "isolation_why"));
    }
    if (again > 0) {
        bh_html_text(html, "; tried again at ");
        bh_show_time(html, again);
    }
    bh_html_close(html, "p");
}

static void
node_put_grades(struct bh_html *html, bh_json_value node)
{
    static const char *const columns[] = { "Grade", "Why it is not offered", NULL };
    bh_json_value grades = bh_json_get(node, "grades_not_offered");

    if (bh_json_count(grades) == 0)
        return;
    bh_show_table(html, "Grades that are not offered", columns);
    for (size_t i = 0; i < bh_json_count(grades); i++) {
        bh_html_open(html, "tr");
        bh_show_cell(html, bh_show_text_of(bh_json_at(grades, i), "grade"));
        bh_show_cell(html, bh_show_text_of(bh_json_at(grades, i), "why"));
        bh_html_close(html, "tr");
    }
    bh_show_table_end(html);
}

static void
node_put_fenced(struct bh_html *html, bh_json_value node)
{
    static const char *const columns[] = { "Fenced GPU", "Why", NULL };
    bh_json_value fenced = bh_json_get(node, "fenced_gpus");

    if (bh_json_count(fenced) == 0)
        return;
    bh_show_table(html, "Fenced GPUs", columns);
    for (size_t i = 0; i < bh_json_count(fenced); i++) {
        bh_html_open(html, "tr");
        bh_html_open(html, "td");
        bh_show_gpu(html, bh_show_text_of(bh_json_at(fenced, i), "uuid"));
        bh_html_close(html, "td");
        bh_show_cell(html, bh_show_text_of(bh_json_at(fenced, i), "why"));
        bh_html_close(html, "tr");
    }
    bh_show_table_end(html);
}

static void
node_put_verify(struct bh_html *html, const struct bh_panel_call *call)
{
    if (!bh_page_may(call->page, "isolation.verify"))
        return;
    bh_frame_form(html, call->frame, "/verify");
    bh_frame_hidden(html, "node", bh_show_text_of(call->data, "name"));
    bh_frame_button(html, "plain", "Verify its isolation now");
    bh_html_close(html, "form");
}

void
bh_panel_node(struct bh_html *html, const struct bh_panel_call *call)
{
    const char *cordon = bh_show_text_of(call->data, "cordon");

    node_put_programs(html, call->data, call->now);
    node_put_records_link(html, call);
    node_put_resources(html, call->data);
    node_put_isolation(html, call->data);
    node_put_grades(html, call->data);
    node_put_fenced(html, call->data);
    node_put_verify(html, call);
    bh_hold_form_put(html, call,
                     &(struct bh_hold_target){ .folder = "/nodes/",
                                               .target = bh_show_text_of(call->data, "name"),
                                               .cordoned = cordon[0] && strcmp(cordon, "no") != 0 });
}

/* ---- jobs ---- */

static void
node_put_job(struct bh_html *html, bh_json_value gpu, bh_json_value partition)
{
    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_job(html, bh_show_number_of(partition, "job"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_tenant(html, bh_show_text_of(partition, "tenant"));
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_text_of(partition, "profile"));
    bh_html_open(html, "td");
    bh_show_gpu(html, bh_show_text_of(gpu, "uuid"));
    bh_html_close(html, "td");
    bh_html_close(html, "tr");
}

/* The partitions of a GPU that jobs hold; whether there was one before, or is now. */
static bool
node_put_jobs_of(struct bh_html *html, bh_json_value gpu, bool any)
{
    static const char *const columns[] = { "Job", "Tenant", "Partition", "GPU", NULL };
    bh_json_value partitions = bh_json_get(gpu, "partitions");

    for (size_t i = 0; i < bh_json_count(partitions); i++) {
        if (!bh_show_number_of(bh_json_at(partitions, i), "job"))
            continue;
        if (!any)
            bh_show_table(html, "Jobs there", columns);
        any = true;
        node_put_job(html, gpu, bh_json_at(partitions, i));
    }
    return any;
}

void
bh_panel_node_jobs(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value list = bh_json_get(call->data, "items");
    bool any = false;

    for (size_t i = 0; i < bh_json_count(list); i++)
        any = node_put_jobs_of(html, bh_json_at(list, i), any);
    if (any)
        bh_show_table_end(html);
    else
        bh_html_element(html, "p", NULL, "No job that you may see holds a GPU of it.");
}
