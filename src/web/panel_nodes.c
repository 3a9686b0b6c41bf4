/* Nodes and how they are. */
#include <stdio.h>

#include "web/panel.h"
#include "web/show.h"

/* So many cells in one, with why there are no figures. */
static void
nodes_put_unavailable(struct bh_html *html, const char *cells, const char *why)
{
    bh_html_open(html, "td");
    bh_html_attr(html, "colspan", cells);
    bh_show_unavailable(html, why);
    bh_html_close(html, "td");
}

static void
nodes_put_text(struct bh_html *html, bh_json_value node, const char *member)
{
    const char *text = bh_show_text_of(node, member);

    if (text[0])
        bh_show_cell(html, text);
    else
        nodes_put_unavailable(html, "1", "the node does not know");
}

/* Two cells. */
static void
nodes_put_resources(struct bh_html *html, bh_json_value node)
{
    char text[64] = "";

    if (!bh_json_get(node, "offered_cpu_milli")) {
        nodes_put_unavailable(html, "2", "its jobs of before are not settled yet");
        return;
    }
    snprintf(text, sizeof text, "%llu of %llu",
             (unsigned long long)bh_show_number_of(node, "used_cpu_milli") / 1000,
             (unsigned long long)bh_show_number_of(node, "offered_cpu_milli") / 1000);
    bh_show_cell(html, text);
    bh_html_open(html, "td");
    bh_show_mib(html, bh_show_number_of(node, "used_memory_mib"));
    bh_html_text(html, " of ");
    bh_show_mib(html, bh_show_number_of(node, "offered_memory_mib"));
    bh_html_close(html, "td");
}

/* What it says of itself: five cells. */
static void
nodes_put_report(struct bh_html *html, bh_json_value node)
{
    if (!bh_json_get(node, "gpus")) {
        nodes_put_unavailable(html, "5", "the node is away");
        return;
    }
    bh_html_open(html, "td");
    bh_html_u64(html, bh_show_number_of(node, "gpus"));
    bh_html_close(html, "td");
    nodes_put_text(html, node, "driver");
    nodes_put_resources(html, node);
    bh_show_cell(html, bh_show_text_of(node, "isolation"));
}

static void
nodes_put_row(struct bh_html *html, bh_json_value node, bh_ns now)
{
    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_link(html, "/nodes/", bh_show_text_of(node, "name"), bh_show_text_of(node, "name"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_state(html, bh_show_text_of(node, "state"));
    bh_html_text(html, " ");
    bh_node_put_cordon(html, node);
    bh_show_age(html, bh_show_number_of(node, "reported_ns"), now);
    bh_html_close(html, "td");
    nodes_put_report(html, node);
    bh_html_close(html, "tr");
}

void
bh_panel_nodes(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const columns[] = { "Node", "State",  "GPUs",      "Driver",
                                           "CPUs", "Memory", "Isolation", NULL };
    bh_json_value list = bh_json_get(call->data, "items");

    if (bh_json_count(list) == 0) {
        bh_html_element(html, "p", NULL,
                        "No node has connected yet. bulkhead-node connects by itself once it runs.");
        return;
    }
    bh_show_table(html, "Nodes", columns);
    for (size_t i = 0; i < bh_json_count(list); i++)
        nodes_put_row(html, bh_json_at(list, i), call->now);
    bh_show_table_end(html);
}
