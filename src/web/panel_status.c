/* What the site is doing now, in a row of figures. */
#include <stdio.h>

#include "web/panel.h"
#include "web/show.h"

static void
status_put_count(struct bh_html *html, const char *name, uint64_t count, const char *class)
{
    bh_html_open(html, "div");
    if (class)
        bh_html_attr(html, "class", class);
    bh_html_element(html, "dt", NULL, name);
    bh_html_open(html, "dd");
    bh_html_u64(html, count);
    bh_html_close(html, "dd");
    bh_html_close(html, "div");
}

static void
status_put_node(struct bh_html *html, bh_json_value status)
{
    bh_json_value node = bh_json_get(status, "node");

    bh_show_fact_begin(html, "Driver");
    if (bh_show_truth_of(node, "connected"))
        bh_html_text(html, bh_show_text_of(node, "driver"));
    else
        bh_show_unavailable(html, "no node is connected");
    bh_show_fact_end(html);
}

void
bh_panel_status(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value jobs = bh_json_get(call->data, "jobs"), gpus = bh_json_get(call->data, "gpus");
    uint64_t fenced = bh_show_number_of(gpus, "fenced");

    bh_html_open(html, "dl");
    bh_html_attr(html, "class", "figures");
    status_put_count(html, "Jobs running", bh_show_number_of(jobs, "running"), NULL);
    status_put_count(html, "Jobs pending", bh_show_number_of(jobs, "pending"), NULL);
    status_put_count(html, "GPUs", bh_show_number_of(gpus, "total"), NULL);
    status_put_count(html, "GPUs fenced", fenced, fenced ? "bad" : NULL);
    status_put_count(html, "Nodes", bh_show_number_of(call->data, "nodes"), NULL);
    status_put_node(html, call->data);
    bh_html_close(html, "dl");
}
