/* One job: its state and what may be done, its life, where it lies, what it costs, its specification. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/num.h"
#include "web/job_text.h"
#include "web/panel.h"
#include "web/show.h"
#include "web/svg.h"

enum { TEXT_MAX = 192, PARTITIONS_MAX = 64, PARTS_A_GPU = 4200 };

#define HOUR_NS (UINT64_C(3600) * BH_NS_PER_S)

static bool
job_has_ended(bh_json_value job)
{
    return bh_show_number_of(job, "ended_ns") != 0;
}

/* Whether the API would let the caller do that (`may`). */
static bool
job_may(bh_json_value job, const char *what)
{
    bh_json_value may = bh_json_get(job, "may");

    for (size_t i = 0; i < bh_json_count(may); i++)
        if (strcmp(bh_json_text(bh_json_at(may, i), ""), what) == 0)
            return true;
    return false;
}

/* ---- the job ---- */

static void
job_put_end(struct bh_html *html, bh_json_value job)
{
    bh_json_value status = bh_json_get(job, "exit_status");

    bh_show_fact_begin(html, "How it ended");
    bh_html_text(html, bh_show_text_of(job, "cause"));
    if (bh_json_kind(status) == BH_JSON_INTEGER) {
        bh_html_text(html, ", exit status ");
        bh_html_u64(html, bh_json_number(status, 0));
    }
    bh_show_fact_end(html);
}

static void
job_put_number(struct bh_html *html, const char *name, uint64_t number)
{
    bh_show_fact_begin(html, name);
    bh_html_u64(html, number);
    bh_show_fact_end(html);
}

static void
job_put_text(struct bh_html *html, const char *name, const char *text)
{
    if (text[0])
        bh_show_fact(html, name, text);
}

static void
job_put_limits(struct bh_html *html, bh_json_value job)
{
    bh_show_fact_begin(html, "Time limit");
    if (bh_show_number_of(job, "time_limit_ns"))
        bh_show_span(html, bh_show_number_of(job, "time_limit_ns"));
    else
        bh_html_text(html, "none");
    bh_show_fact_end(html);
    if (bh_show_number_of(job, "deadline_ns")) {
        bh_show_fact_begin(html, "Deadline");
        bh_show_time(html, bh_show_number_of(job, "deadline_ns"));
        bh_show_fact_end(html);
    }
    bh_show_fact(html, "When preempted", bh_show_text_of(job, "contract"));
    if (bh_show_text_of(job, "checkpoint_signal")[0])
        bh_show_fact(html, "Asked for a checkpoint by", bh_show_text_of(job, "checkpoint_signal"));
    if (bh_show_number_of(job, "restarts"))
        job_put_number(html, "Queued again", bh_show_number_of(job, "restarts"));
}

static void
job_put_traffic(struct bh_html *html, bh_json_value traffic)
{
    static const struct {
        const char *name, *key;
    } rows[] = { { "Sent", "tx_bytes" }, { "Received", "rx_bytes" }, { "Not let through", "denied_bytes" } };

    for (size_t i = 0; traffic && i < BH_COUNT(rows); i++) {
        bh_show_fact_begin(html, rows[i].name);
        bh_show_mib(html, bh_show_number_of(traffic, rows[i].key) >> 20);
        bh_show_fact_end(html);
    }
}

static void
job_put_facts(struct bh_html *html, bh_json_value job)
{
    bh_html_open(html, "dl");
    bh_html_attr(html, "class", "facts");
    bh_show_fact_begin(html, "State");
    bh_show_state(html, bh_show_text_of(job, "state"));
    bh_show_fact_end(html);
    if (job_has_ended(job))
        job_put_end(html, job);
    job_put_text(html, "Name", bh_show_text_of(job, "name"));
    bh_show_fact_begin(html, "Tenant");
    bh_show_tenant(html, bh_show_text_of(job, "tenant"));
    bh_show_fact_end(html);
    bh_show_fact(html, "User", bh_show_text_of(job, "user"));
    bh_show_fact(html, "SKU", bh_show_text_of(job, "sku"));
    job_put_number(html, "Partitions", bh_show_number_of(job, "count"));
    if (bh_show_number_of(job, "gang") > 1)
        job_put_number(html, "Members", bh_show_number_of(job, "gang"));
    bh_show_fact(html, "Kind", bh_show_text_of(job, "kind"));
    bh_show_fact(html, "Priority", bh_show_text_of(job, "priority"));
    job_put_limits(html, job);
    job_put_text(html, "Image", bh_show_text_of(job, "image"));
    job_put_text(html, "Image digest", bh_show_text_of(job, "image_digest"));
    job_put_traffic(html, bh_json_get(job, "traffic"));
    bh_html_close(html, "dl");
}

static void
job_put_notices(struct bh_html *html, bh_json_value notices)
{
    if (bh_json_count(notices) == 0)
        return;
    bh_html_open(html, "ul");
    bh_html_attr(html, "class", "notices");
    for (size_t i = 0; i < bh_json_count(notices); i++) {
        bh_json_value notice = bh_json_at(notices, i);
        uint64_t count = bh_show_number_of(notice, "count");

        bh_html_open(html, "li");
        bh_html_text(html, bh_show_text_of(notice, "sentence"));
        bh_html_text(html, " (");
        bh_show_time(html, bh_show_number_of(notice, "first_ns"));
        if (count > 1) {
            bh_html_text(html, ", ");
            bh_html_u64(html, count);
            bh_html_text(html, " times");
        }
        bh_html_text(html, ")");
        bh_html_close(html, "li");
    }
    bh_html_close(html, "ul");
}

static void
job_put_link(struct bh_html *html, const char *address, const char *class, const char *text)
{
    bh_html_open(html, "a");
    bh_html_attr(html, "class", class);
    bh_html_attr(html, "href", address);
    bh_html_text(html, text);
    bh_html_close(html, "a");
}

static void
job_put_button(struct bh_html *html, const struct bh_panel_call *call, const char *verb, const char *label)
{
    char action[TEXT_MAX];

    snprintf(action, sizeof action, "/jobs/%" PRIu64 "/%s", bh_show_number_of(call->data, "id"), verb);
    bh_frame_form(html, call->frame, action);
    bh_frame_button(html, "plain", label);
    bh_html_close(html, "form");
}

/* What ends something asks again first, on a page of its own. */
static void
job_put_actions(struct bh_html *html, const struct bh_panel_call *call)
{
    uint64_t id = bh_show_number_of(call->data, "id");
    char address[TEXT_MAX];

    bh_html_open(html, "div");
    bh_html_attr(html, "class", "actions");
    if (job_may(call->data, "release"))
        job_put_button(html, call, "release", "Release");
    if (job_may(call->data, "verify"))
        job_put_button(html, call, "verify", "Verify isolation");
    if (job_may(call->data, "submit") && bh_json_get(call->data, "spec")) {
        snprintf(address, sizeof address, "/submit?like=%" PRIu64, id);
        job_put_link(html, address, "button plain", "Submit another like this");
    }
    snprintf(address, sizeof address, "/jobs/%" PRIu64 "/cancel", id);
    if (job_may(call->data, "cancel"))
        job_put_link(html, address, "button grave", "Cancel\xe2\x80\xa6");
    bh_html_close(html, "div");
}

void
bh_panel_job(struct bh_html *html, const struct bh_panel_call *call)
{
    job_put_facts(html, call->data);
    job_put_notices(html, bh_json_get(call->data, "notices"));
    job_put_actions(html, call);
}

void
bh_panel_why(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_ns start = bh_show_number_of(call->data, "estimated_start_ns");

    bh_html_element(html, "p", NULL, bh_show_text_of(call->data, "sentence"));
    if (start) {
        bh_html_open(html, "p");
        bh_html_text(html, "Expected to start ");
        bh_show_time(html, start);
        bh_html_text(html, ", ");
        bh_html_text(html, bh_show_text_of(call->data, "assumption"));
        bh_html_text(html, ".");
        bh_html_close(html, "p");
    }
    bh_html_open(html, "p");
    bh_html_element(html, "strong", NULL, "Next: ");
    bh_show_sentence(html, bh_show_text_of(call->data, "next"));
    bh_html_close(html, "p");
}

/* ---- its life ---- */

/* A step of it: "done", "now" or "expected" is its class, and said in words besides. */
static void
job_put_step(struct bh_html *html, const char *class, const char *name, bh_ns at)
{
    bh_html_open(html, "li");
    bh_html_attr(html, "class", class);
    bh_html_element(html, "strong", NULL, name);
    if (at) {
        bh_html_text(html, strcmp(class, "expected") == 0 ? " about " : " ");
        bh_show_time(html, at);
    }
    bh_html_close(html, "li");
}

static void
job_put_present(struct bh_html *html, bh_json_value job)
{
    const char *state = bh_show_text_of(job, "state");
    bh_ns start = bh_show_number_of(job, "estimated_start_ns"), kept = bh_show_number_of(job, "reserved_ns");

    if (strcmp(state, "running") == 0)
        return;
    job_put_step(html, "now", state, 0);
    if (kept)
        job_put_step(html, "expected", "capacity is reserved from", kept);
    if (start)
        job_put_step(html, "expected", "expected to start", start);
}

/* What the job itself says; its records have every step, and searching them takes a while. */
void
bh_panel_life(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value job = call->data;
    bh_ns started = bh_show_number_of(job, "started_ns"), limit = bh_show_number_of(job, "time_limit_ns");
    bool runs = strcmp(bh_show_text_of(job, "state"), "running") == 0;
    char address[TEXT_MAX];

    bh_html_open(html, "ol");
    bh_html_attr(html, "class", "life");
    job_put_step(html, "done", "submitted", bh_show_number_of(job, "submitted_ns"));
    if (started)
        job_put_step(html, runs ? "now" : "done", runs ? "running since" : "started", started);
    if (job_has_ended(job))
        job_put_step(html, "done", bh_show_text_of(job, "state"), bh_show_number_of(job, "ended_ns"));
    else
        job_put_present(html, job);
    if (runs && limit)
        job_put_step(html, "expected", "reaches its time limit", started + limit);
    bh_html_close(html, "ol");
    if (job_may(job, "records")) {
        snprintf(address, sizeof address, "/jobs/%" PRIu64 "/records", bh_show_number_of(job, "id"));
        job_put_link(html, address, "records", "Every step, with its record");
    }
}

/* ---- where it lies ---- */

/* The texts that a picture borrows. */
struct job_picture {
    struct bh_svg_partition partitions[PARTITIONS_MAX];
    char titles[PARTITIONS_MAX][TEXT_MAX];
    uint32_t count;
};

static void
job_add_partition(struct job_picture *picture, bh_json_value gpu, bh_json_value row)
{
    bool whole = strcmp(bh_show_text_of(row, "profile"), "whole") == 0;
    uint32_t at = picture->count++;

    snprintf(picture->titles[at], TEXT_MAX, "%s at %" PRIu64, bh_show_text_of(row, "profile"),
             bh_show_number_of(row, "start"));
    picture->partitions[at] = (struct bh_svg_partition){
        .start = whole ? 0 : (uint32_t)bh_show_number_of(row, "start"),
        .units = (uint32_t)bh_show_number_of(whole ? gpu : row, whole ? "memory_units" : "units"),
        .slices = (uint32_t)bh_show_number_of(whole ? gpu : row, whole ? "compute_slices" : "slices"),
        .title = picture->titles[at],
        .label = bh_show_text_of(row, "profile"),
        .state = bh_show_text_of(row, "state"),
        .hue = bh_svg_hue(bh_show_text_of(row, "tenant")),
    };
}

/* The job's partitions of that GPU. */
static void
job_read_picture(bh_json_value gpu, uint64_t job, struct job_picture *ret)
{
    bh_json_value list = bh_json_get(gpu, "partitions");

    ret->count = 0;
    for (size_t i = 0; i < bh_json_count(list) && ret->count < PARTITIONS_MAX; i++)
        if (bh_show_number_of(bh_json_at(list, i), "job") == job)
            job_add_partition(ret, gpu, bh_json_at(list, i));
}

static void
job_put_gpu(struct bh_html *html, bh_json_value gpu, const struct job_picture *picture)
{
    char title[TEXT_MAX];
    size_t used = (size_t)snprintf(title, sizeof title, "On it: ");

    for (uint32_t i = 0; i < picture->count && used < sizeof title; i++)
        used +=
            (size_t)snprintf(title + used, sizeof title - used, "%s%s", i ? ", " : "", picture->titles[i]);
    bh_html_open(html, "article");
    bh_html_attr(html, "class", "card");
    bh_html_open(html, "h3");
    bh_show_gpu(html, bh_show_text_of(gpu, "uuid"));
    bh_html_close(html, "h3");
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_show_link(html, "/nodes/", bh_show_text_of(gpu, "node"), bh_show_text_of(gpu, "node"));
    bh_html_text(html, " GPU ");
    bh_html_u64(html, bh_show_number_of(gpu, "index"));
    bh_html_text(html, ", ");
    bh_html_text(html, bh_show_text_of(gpu, "model"));
    bh_html_close(html, "p");
    bh_svg_put_gpu(html, &(struct bh_svg_gpu){ .title = title,
                                               .units = (uint32_t)bh_show_number_of(gpu, "memory_units"),
                                               .slices = (uint32_t)bh_show_number_of(gpu, "compute_slices"),
                                               .partitions = picture->partitions,
                                               .partition_count = picture->count });
    bh_html_element(html, "p", "holders", title);
    bh_html_close(html, "article");
}

void
bh_panel_placement(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value list = bh_json_get(call->data, "items");
    struct job_picture picture;
    uint32_t shown = 0;
    struct bh_err err;
    uint64_t job;

    if (bh_parse_u64(call->id, &job, &err) != BH_OK)
        return;
    bh_html_open(html, "div");
    bh_html_attr(html, "class", "cards");
    for (size_t i = 0; i < bh_json_count(list); i++) {
        job_read_picture(bh_json_at(list, i), job, &picture);
        if (picture.count == 0)
            continue;
        job_put_gpu(html, bh_json_at(list, i), &picture);
        shown++;
    }
    bh_html_close(html, "div");
    if (shown == 0)
        bh_html_element(html, "p", NULL, "It holds no partition of a GPU now.");
}

static void
job_put_member(struct bh_html *html, bh_json_value member)
{
    bh_json_value list = bh_json_get(member, "partitions");

    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_html_u64(html, bh_show_number_of(member, "member"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_state(html, bh_show_text_of(member, "state"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_link(html, "/nodes/", bh_show_text_of(member, "node"), bh_show_text_of(member, "node"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    for (size_t i = 0; i < bh_json_count(list); i++) {
        bh_html_text(html, i ? ", " : "");
        bh_html_text(html, bh_show_text_of(bh_json_at(list, i), "profile"));
        bh_html_text(html, " of ");
        bh_show_gpu(html, bh_show_text_of(bh_json_at(list, i), "gpu"));
    }
    bh_html_close(html, "td");
    bh_html_close(html, "tr");
}

void
bh_panel_members(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const columns[] = { "Member", "State", "Node", "Partitions", NULL };
    bh_json_value list = bh_json_get(call->data, "members");
    const char *was = bh_show_text_of(call->data, "partitions");

    if (bh_json_count(list) > 0) {
        bh_show_table(html, "Members of the job", columns);
        for (size_t i = 0; i < bh_json_count(list); i++)
            job_put_member(html, bh_json_at(list, i));
        bh_show_table_end(html);
    } else if (was[0]) {
        bh_html_open(html, "p");
        bh_html_text(html, "It has no member any more. The first had ");
        bh_show_partitions(html, call->data);
        bh_html_text(html, " on ");
        bh_show_link(html, "/nodes/", bh_show_text_of(call->data, "node"),
                     bh_show_text_of(call->data, "node"));
        bh_html_text(html, ".");
        bh_html_close(html, "p");
    } else {
        bh_html_element(html, "p", NULL, "It has not been placed: its members have no partitions yet.");
    }
}

/* ---- GPU time ---- */

/* Part-nanoseconds as GPU-hours in three decimals, cut. */
static void
job_put_gpu_hours(struct bh_html *html, uint64_t parts, uint64_t held_ns)
{
    unsigned __int128 thousandths =
        (unsigned __int128)parts * held_ns * 1000 / ((unsigned __int128)PARTS_A_GPU * HOUR_NS);
    char text[TEXT_MAX];

    snprintf(text, sizeof text, "%" PRIu64 ".%03" PRIu64 " GPU-hours", (uint64_t)(thousandths / 1000),
             (uint64_t)(thousandths % 1000));
    bh_html_text(html, text);
}

static void
job_put_dimension(struct bh_html *html, const char *name, uint64_t parts, bh_json_value held, bool runs)
{
    uint64_t held_ns = bh_json_number(held, 0);

    bh_show_fact_begin(html, name);
    /* what runs changes its bytes once a minute, and no more often */
    if (held)
        job_put_gpu_hours(html, parts, runs ? held_ns / (60 * BH_NS_PER_S) * (60 * BH_NS_PER_S) : held_ns);
    else
        bh_show_unavailable(html, "it may have been suspended meanwhile, and its records say for how long");
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_html_u64(html, parts);
    bh_html_text(html, " of 4200 parts of a GPU");
    bh_html_close(html, "p");
    bh_show_fact_end(html);
}

void
bh_panel_use(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value use = bh_json_get(call->data, "use"), parts = bh_json_get(use, "parts");
    bh_json_value held = bh_json_get(use, "held_ns");
    const char *price = bh_show_text_of(use, "price");
    bool runs = !job_has_ended(call->data);

    if (!use) {
        bh_html_element(html, "p", NULL, "It has not run, so it has used nothing.");
        return;
    }
    bh_html_open(html, "dl");
    bh_html_attr(html, "class", "facts");
    job_put_dimension(html, "Compute", bh_show_number_of(parts, "compute"), held, runs);
    job_put_dimension(html, "Memory", bh_show_number_of(parts, "memory"), held, runs);
    bh_show_fact_begin(html, "Declared price");
    if (price[0]) {
        bh_html_text(html, price);
        bh_html_text(html, " for each of ");
        bh_html_u64(html, bh_show_number_of(use, "partitions"));
        bh_html_text(html, " partitions and hour");
    } else {
        bh_show_unavailable(html, "the site file declares none for this SKU");
    }
    bh_show_fact_end(html);
    bh_html_close(html, "dl");
    bh_html_element(html, "p", "note",
                    runs ? "Since it last began to run, in whole minutes." : "Of its last run.");
}

/* ---- the specification ---- */

void
bh_panel_spec(struct bh_html *html, const struct bh_panel_call *call)
{
    BH_AUTO(bh_buf_fini)
    struct bh_buf yaml = { .max = BH_JOB_TEXT_MAX }, command = { .max = BH_JOB_TEXT_MAX };
    bh_json_value spec = bh_json_get(call->data, "spec");

    if (!spec) {
        bh_html_open(html, "p");
        bh_show_unavailable(html, bh_show_truth_of(call->data, "erased")
                                      ? "what was submitted was destroyed for good"
                                      : "the service does not say it");
        bh_html_close(html, "p");
        return;
    }
    bh_job_text_put_yaml(&yaml, spec);
    bh_job_text_put_command(&command, spec);
    bh_html_element(html, "pre", "source", bh_buf_text(&yaml) ? bh_buf_text(&yaml) : "(too long)");
    bh_html_element(html, "p", "note", "The same from a terminal:");
    bh_html_element(html, "pre", "source", bh_buf_text(&command) ? bh_buf_text(&command) : "(too long)");
}
