/* GPUs as cards, by the nodes that they are on. */
#include <string.h>

#include "web/gpu_card.h"
#include "web/panel.h"
#include "web/show.h"

static const char *
gpus_node_at(bh_json_value list, size_t i)
{
    return bh_show_text_of(bh_json_at(list, i), "node");
}

/* Whether no GPU before it is on the same node. */
static bool
gpus_is_first_of_node(bh_json_value list, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(gpus_node_at(list, i), gpus_node_at(list, at)) == 0)
            return false;
    return true;
}

static void
gpus_put_node(struct bh_html *html, bh_json_value list, const char *node, bh_ns now)
{
    bh_html_open(html, "h3");
    if (node[0])
        bh_show_link(html, "/nodes/", node, node);
    else
        bh_html_text(html, "Of nodes that are away");
    bh_html_close(html, "h3");
    bh_html_open(html, "div");
    bh_html_attr(html, "class", "cards");
    for (size_t i = 0; i < bh_json_count(list); i++)
        if (strcmp(gpus_node_at(list, i), node) == 0)
            bh_gpu_card_put(html, bh_json_at(list, i), now);
    bh_html_close(html, "div");
}

void
bh_panel_gpus(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value list = bh_json_get(call->data, "items");

    if (bh_json_count(list) == 0) {
        bh_html_element(
            html, "p", NULL,
            "No GPU is known yet. Start bulkhead-node on a server with GPUs, or try: bulkhead up --sim "
            "\"8x H100-80GB\".");
        return;
    }
    bh_gpu_card_put_legend(html, list);
    for (size_t i = 0; i < bh_json_count(list); i++)
        if (gpus_is_first_of_node(list, i))
            gpus_put_node(html, list, gpus_node_at(list, i), call->now);
}

void
bh_panel_node_gpus(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value list = bh_json_get(call->data, "items");

    if (bh_json_count(list) == 0) {
        bh_html_element(html, "p", NULL, "No GPU of this node is known while it is away.");
        return;
    }
    bh_gpu_card_put_legend(html, list);
    bh_html_open(html, "div");
    bh_html_attr(html, "class", "cards");
    for (size_t i = 0; i < bh_json_count(list); i++)
        bh_gpu_card_put(html, bh_json_at(list, i), call->now);
    bh_html_close(html, "div");
}
