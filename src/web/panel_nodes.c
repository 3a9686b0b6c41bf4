/* Nodes and how they are. */
#include <stdio.h>

#include "web/panel.h"
#include "web/show.h"

/* Two cells, empty where the node has not said what it has. */
static void
nodes_put_resources(struct bh_html *html, bh_json_value node)
{
    char text[64] = "";

    if (!bh_json_get(node, "offered_cpu_milli")) {
        bh_show_cell(html, "");
        bh_show_cell(html, "");
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

static void
nodes_put_row(struct bh_html *html, bh_json_value node)
{

    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_link(html, "/nodes/", bh_show_text_of(node, "name"), bh_show_text_of(node, "name"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_state(html, bh_show_text_of(node, "state"));
    bh_html_text(html, " ");
    bh_show_cordon(html, bh_show_text_of(node, "cordon"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    if (bh_json_get(node, "gpus"))
        bh_html_u64(html, bh_show_number_of(node, "gpus"));
    else
        bh_show_unavailable(html, "the node is away");
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_text_of(node, "driver"));
    nodes_put_resources(html, node);
    bh_show_cell(html, bh_show_text_of(node, "isolation"));
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
        nodes_put_row(html, bh_json_at(list, i));
    bh_show_table_end(html);
}
