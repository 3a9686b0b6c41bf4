/* What is expected: demand by tenant and pool, hot nodes; and moves that would let other jobs start. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "web/panel.h"
#include "web/panel_forecast.h"
#include "web/show.h"
#include "web/svg.h"

enum { TEXT_MAX = 192 };

/* ---- bounds ---- */

static uint64_t
forecast_parts(bh_json_value bounds, const char *which)
{
    return bh_show_number_of(bh_json_get(bounds, which), "parts");
}

/* The bound, and why it is none. */
static void
forecast_put_bound(struct bh_html *html, bh_json_value bounds, const char *which)
{
    bh_json_value bound = bh_json_get(bounds, which);

    bh_html_open(html, "td");
    if (!bh_show_number_of(bound, "changes")) {
        bh_show_unavailable(html, "no past yet");
    } else {
        bh_show_parts(html, bh_show_number_of(bound, "parts"));
        if (!bh_show_truth_of(bound, "firm"))
            bh_html_text(html, " (few data)");
    }
    bh_html_close(html, "td");
}

static void
forecast_put_level(struct bh_html *html, const char *title, uint64_t level, uint64_t bound, uint64_t whole)
{
    bh_html_open(html, "td");
    bh_svg_put_bar(html, &(struct bh_svg_bar){ .title = title,
                                               .used = level,
                                               .guarantee = bound,
                                               .limit = BH_SVG_NO_LIMIT,
                                               .whole = whole ? whole : 1 });
    bh_html_close(html, "td");
}

static void
forecast_put_cell_parts(struct bh_html *html, uint64_t parts)
{
    bh_html_open(html, "td");
    bh_show_parts(html, parts);
    bh_html_close(html, "td");
}

/* The largest level or bound of a list: its bars have one scale. */
static uint64_t
forecast_scale(bh_json_value list)
{
    uint64_t most = 1;

    for (size_t i = 0; i < bh_json_count(list); i++) {
        bh_json_value row = bh_json_at(list, i);
        uint64_t level = bh_show_number_of(row, "level_parts");
        uint64_t bound = forecast_parts(bh_json_get(row, "bounds"), "near");

        most = level > most ? level : most;
        most = bound > most ? bound : most;
    }
    return most;
}

static void
forecast_put_tenant(struct bh_html *html, bh_json_value row, uint64_t scale)
{
    bh_json_value bounds = bh_json_get(row, "bounds");
    uint64_t level = bh_show_number_of(row, "level_parts");

    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_tenant(html, bh_show_text_of(row, "name"));
    bh_html_close(html, "td");
    forecast_put_level(html, "use now within the near bound", level, forecast_parts(bounds, "near"), scale);
    forecast_put_cell_parts(html, level);
    forecast_put_bound(html, bounds, "near");
    forecast_put_bound(html, bounds, "later");
    forecast_put_bound(html, bounds, "far");
    forecast_put_cell_parts(html, bh_show_number_of(row, "guarantee_parts"));
    forecast_put_cell_parts(html, bh_show_number_of(row, "lends_parts"));
    bh_html_close(html, "tr");
}

static void
forecast_put_tenants(struct bh_html *html, bh_json_value list)
{
    static const char *const columns[] = { "Tenant", "Now and near", "Now",         "Near", "Later",
                                           "Far",    "Guarantee",    "It can lend", NULL };
    uint64_t scale = forecast_scale(list);

    bh_html_element(html, "h3", NULL, "Demand of tenants, GPUs");
    if (bh_json_count(list) == 0) {
        bh_html_element(html, "p", "note", "No tenant has a past to forecast from yet.");
        return;
    }
    bh_show_table(html, "Demand of tenants", columns);
    for (size_t i = 0; i < bh_json_count(list); i++)
        forecast_put_tenant(html, bh_json_at(list, i), scale);
    bh_show_table_end(html);
}

/* "grow by 8": what to do about the pool's size. */
static void
forecast_put_proposal(struct bh_html *html, bh_json_value proposal)
{
    const char *move = bh_show_text_of(proposal, "move");
    char text[TEXT_MAX];

    if (strcmp(move, "keep") == 0)
        snprintf(text, sizeof text, "keep");
    else
        snprintf(text, sizeof text, "%.20s by %llu GPUs", move,
                 (unsigned long long)bh_show_number_of(proposal, "gpus"));
    bh_show_cell(html, text);
}

static void
forecast_put_pool(struct bh_html *html, bh_json_value row)
{
    bh_json_value bounds = bh_json_get(row, "bounds");
    uint64_t level = bh_show_number_of(row, "level_parts"), gpus = bh_show_number_of(row, "gpus");

    bh_html_open(html, "tr");
    bh_show_cell(html, bh_show_text_of(row, "model"));
    forecast_put_level(html, "use now within the near bound", level, forecast_parts(bounds, "near"),
                       gpus * 4200);
    forecast_put_cell_parts(html, level);
    bh_html_open(html, "td");
    bh_html_u64(html, gpus);
    bh_html_close(html, "td");
    forecast_put_bound(html, bounds, "near");
    forecast_put_bound(html, bounds, "later");
    forecast_put_bound(html, bounds, "far");
    forecast_put_proposal(html, bh_json_get(row, "proposal"));
    bh_html_close(html, "tr");
}

static void
forecast_put_pools(struct bh_html *html, bh_json_value list)
{
    static const char *const columns[] = { "Pool",  "Now and near", "Now",    "GPUs", "Near",
                                           "Later", "Far",          "Advice", NULL };

    if (bh_json_count(list) == 0)
        return;
    bh_html_element(html, "h3", NULL, "Demand for pools, GPUs");
    bh_show_table(html, "Demand for pools", columns);
    for (size_t i = 0; i < bh_json_count(list); i++)
        forecast_put_pool(html, bh_json_at(list, i));
    bh_show_table_end(html);
}

static void
forecast_put_permille(struct bh_html *html, bh_json_value row, const char *member)
{
    char text[TEXT_MAX];

    snprintf(text, sizeof text, "%llu %%", (unsigned long long)bh_show_number_of(row, member) / 10);
    bh_show_cell(html, text);
}

static void
forecast_put_nodes(struct bh_html *html, bh_json_value list)
{
    static const char *const columns[] = { "Node", "Now", "Expected", "Hot over", "Verdict", NULL };

    if (bh_json_count(list) == 0)
        return;
    bh_html_element(html, "h3", NULL, "Hot spots");
    bh_show_table(html, "Hot spots", columns);
    for (size_t i = 0; i < bh_json_count(list); i++) {
        bh_json_value row = bh_json_at(list, i);

        bh_html_open(html, "tr");
        bh_html_open(html, "td");
        bh_show_link(html, "/nodes/", bh_show_text_of(row, "node"), bh_show_text_of(row, "node"));
        bh_html_close(html, "td");
        forecast_put_permille(html, row, "level_permille");
        forecast_put_permille(html, row, "projected_permille");
        forecast_put_permille(html, row, "mark_permille");
        bh_html_open(html, "td");
        bh_show_state(html, bh_show_truth_of(row, "hot") ? "hot" : "as usual");
        bh_html_close(html, "td");
        bh_html_close(html, "tr");
    }
    bh_show_table_end(html);
}

/* "near, later and far are 15m, 1h and 6h ahead": what the columns mean. */
static void
forecast_put_meaning(struct bh_html *html, bh_json_value forecast)
{
    bh_json_value ahead = bh_json_get(forecast, "ahead_ns");
    char text[TEXT_MAX];

    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    snprintf(text, sizeof text,
             "Demand stays below each bound in %llu.%02llu %% of cases; near, later, far are ",
             (unsigned long long)bh_show_number_of(forecast, "q_bp") / 100,
             (unsigned long long)bh_show_number_of(forecast, "q_bp") % 100);
    bh_html_text(html, text);
    for (size_t i = 0; i < bh_json_count(ahead); i++) {
        bh_html_text(html, i ? ", " : "");
        bh_show_span(html, bh_json_number(bh_json_at(ahead, i), 0));
    }
    bh_html_text(html, " ahead.");
    bh_html_close(html, "p");
}

void
bh_panel_forecast(struct bh_html *html, const struct bh_panel_call *call)
{
    forecast_put_meaning(html, call->data);
    forecast_put_tenants(html, bh_json_get(call->data, "tenants"));
    forecast_put_pools(html, bh_json_get(call->data, "pools"));
    forecast_put_nodes(html, bh_json_get(call->data, "nodes"));
}

/* ---- defragmentation ---- */

static void
forecast_put_places(struct bh_html *html, bh_json_value places)
{
    char text[TEXT_MAX];

    bh_html_open(html, "td");
    for (size_t i = 0; i < bh_json_count(places); i++) {
        bh_json_value place = bh_json_at(places, i);

        bh_html_text(html, i ? ", " : "");
        bh_show_gpu(html, bh_show_text_of(place, "gpu"));
        snprintf(text, sizeof text, " %.40s@%llu", bh_show_text_of(place, "profile"),
                 (unsigned long long)bh_show_number_of(place, "start"));
        bh_html_text(html, text);
    }
    bh_html_close(html, "td");
}

static void
forecast_put_move(struct bh_html *html, bh_json_value move)
{
    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_job(html, bh_show_number_of(move, "job"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_tenant(html, bh_show_text_of(move, "tenant"));
    bh_html_close(html, "td");
    forecast_put_places(html, bh_json_get(move, "from"));
    forecast_put_places(html, bh_json_get(move, "to"));
    bh_html_close(html, "tr");
}

static void
forecast_put_gpu_time(struct bh_html *html, const char *name, uint64_t gpu_ms)
{
    bh_show_fact_begin(html, name);
    bh_show_span(html, gpu_ms * BH_NS_PER_MS);
    bh_html_text(html, " of GPU time");
    bh_show_fact_end(html);
}

void
bh_defrag_plan_put(struct bh_html *html, bh_json_value plan)
{
    static const char *const columns[] = { "Job", "Tenant", "From", "To", NULL };
    bh_json_value moves = bh_json_get(plan, "moves"), simulated = bh_json_get(plan, "simulated");
    char text[TEXT_MAX];

    bh_html_open(html, "dl");
    bh_html_attr(html, "class", "facts");
    forecast_put_gpu_time(html, "Gain", bh_show_number_of(plan, "gain_gpu_ms"));
    forecast_put_gpu_time(html, "Cost", bh_show_number_of(plan, "cost_gpu_ms"));
    snprintf(text, sizeof text, "%llu sooner, %llu later",
             (unsigned long long)bh_show_number_of(simulated, "sooner"),
             (unsigned long long)bh_show_number_of(simulated, "later"));
    bh_show_fact(html, "Jobs that start", text);
    if (bh_show_number_of(plan, "for_job")) {
        bh_show_fact_begin(html, "So that this can start");
        bh_show_job(html, bh_show_number_of(plan, "for_job"));
        bh_show_fact_end(html);
    }
    if (bh_show_text_of(plan, "empties")[0]) {
        bh_show_fact_begin(html, "Becomes free");
        bh_show_gpu(html, bh_show_text_of(plan, "empties"));
        bh_show_fact_end(html);
    }
    bh_html_close(html, "dl");
    bh_show_table(html, "Moves", columns);
    for (size_t i = 0; i < bh_json_count(moves); i++)
        forecast_put_move(html, bh_json_at(moves, i));
    bh_show_table_end(html);
}

static void
forecast_put_answers(struct bh_html *html, const struct bh_panel_call *call, const char *token)
{
    if (!bh_page_may(call->page, "job.move"))
        return;
    bh_html_open(html, "div");
    bh_html_attr(html, "class", "actions");
    bh_html_open(html, "a");
    bh_html_attr(html, "class", "button plain");
    bh_html_attr(html, "href", "/defrag");
    bh_html_text(html, "Accept\xe2\x80\xa6");
    bh_html_close(html, "a");
    bh_frame_form(html, call->frame, "/defrag/decline");
    bh_frame_hidden(html, "token", token);
    bh_frame_button(html, "plain", "Decline");
    bh_html_close(html, "form");
    bh_html_close(html, "div");
}

void
bh_panel_defrag(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value plan = bh_json_get(call->data, "plan");

    bh_html_element(html, "p", NULL, bh_show_text_of(call->data, "sentence"));
    if (!plan)
        return;
    bh_html_element(html, "p", "note", bh_show_text_of(call->data, "assumption"));
    bh_defrag_plan_put(html, plan);
    forecast_put_answers(html, call, bh_show_text_of(plan, "token"));
}
