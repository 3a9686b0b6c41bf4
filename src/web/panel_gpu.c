/* One GPU: who holds what of it, how it is and why, its layout, and what was scrubbed on it. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "web/gpu_card.h"
#include "web/hold_form.h"
#include "web/paging.h"
#include "web/show.h"

enum { TEXT_MAX = 192 };

/* ---- partitions ---- */

static void
gpu_put_size(struct bh_html *html, bh_json_value partition)
{
    uint64_t cap = bh_show_number_of(partition, "cap_bytes"),
             parts = bh_show_number_of(partition, "compute_parts");

    bh_html_open(html, "td");
    if (cap > 0) {
        bh_show_mib(html, cap >> 20);
        bh_html_text(html, ", ");
        bh_show_parts(html, parts);
        bh_html_text(html, " of its time");
    } else if (bh_show_number_of(partition, "memory_mib")) {
        bh_show_mib(html, bh_show_number_of(partition, "memory_mib"));
    } else {
        bh_html_text(html, "all of it");
    }
    bh_html_close(html, "td");
}

/* Parts of 10,000 as percent. */
static void
gpu_put_percent(struct bh_html *html, bh_json_value partition, const char *member, const char *word)
{
    if (!bh_json_get(partition, member))
        return;
    bh_html_u64(html, (bh_show_number_of(partition, member) + 50) / 100);
    bh_html_text(html, word);
}

static const char *
gpu_why_no_activity(bh_json_value gpu, bh_json_value partition)
{
    if (bh_show_text_of(partition, "share_mode")[0])
        return "the driver does not measure shares apart; its job's page has what it measures itself";
    return bh_gpu_card_why_unknown(gpu);
}

/* "26 % busy, 43 % of its SMs, 9.8 GiB used". */
static void
gpu_put_activity(struct bh_html *html, bh_json_value gpu, bh_json_value partition)
{
    bool busy = bh_json_get(partition, "busy_bp"), used = bh_json_get(partition, "memory_used_mib");

    bh_html_open(html, "td");
    gpu_put_percent(html, partition, "busy_bp", " % busy, ");
    gpu_put_percent(html, partition, "sm_bp", " % of its SMs, ");
    if (used) {
        bh_show_mib(html, bh_show_number_of(partition, "memory_used_mib"));
        bh_html_text(html, busy ? " used" : " used, ");
    }
    if (!busy || !used)
        bh_show_unavailable(html, gpu_why_no_activity(gpu, partition));
    bh_html_close(html, "td");
}

static void
gpu_put_partition(struct bh_html *html, bh_json_value gpu, bh_json_value row)
{
    bool placed = bh_show_number_of(row, "units") > 0;

    bh_html_open(html, "tr");
    bh_show_cell(html, bh_show_text_of(row, "profile"));
    bh_html_open(html, "td");
    if (placed)
        bh_html_u64(html, bh_show_number_of(row, "start"));
    bh_html_close(html, "td");
    gpu_put_size(html, row);
    bh_html_open(html, "td");
    bh_show_state(html, bh_show_text_of(row, "state"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    if (bh_show_number_of(row, "job"))
        bh_show_job(html, bh_show_number_of(row, "job"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    if (bh_show_text_of(row, "tenant")[0])
        bh_show_tenant(html, bh_show_text_of(row, "tenant"));
    bh_html_close(html, "td");
    gpu_put_activity(html, gpu, row);
    bh_html_close(html, "tr");
}

static void
gpu_put_partitions(struct bh_html *html, bh_json_value gpu)
{
    static const char *const columns[] = { "Partition", "At",     "Size",     "State",
                                           "Job",       "Tenant", "Activity", NULL };
    struct bh_gpu_order order;

    bh_gpu_card_order(gpu, &order);
    if (order.count == 0) {
        bh_html_element(html, "p", "note", "No partition that you may see is on it.");
        return;
    }
    bh_show_table(html, "Partitions", columns);
    for (uint32_t i = 0; i < order.count; i++)
        gpu_put_partition(html, gpu, order.rows[i]);
    bh_show_table_end(html);
}

/* ---- how it is, and what is done about it ---- */

/* What follows, by docs/health.md. */
static const char *
gpu_next_of(const char *health)
{
    static const struct {
        const char *health, *next;
    } rows[] = {
        { "watched", "Nothing is done; it is shown for a day." },
        { "draining", "It gets no new work, and is reset when what runs has ended." },
        { "fenced", "Its leases are ending; then it is reset." },
        { "resetting", "It is being reset, then tested." },
        { "testing", "It is being tested; when it passes it gets work again." },
        { "burn_in", "It is tested under load; when it passes it gets work again." },
        { "quarantined", "It gets no work until an operator clears the fault." },
        { "needs_reboot", "Its node gets no new work until it was rebooted." },
        { "unverified", "An isolation check failed or has not passed yet: nothing new is placed on it." },
        { "lost", "It does not answer: nothing is placed on it until it does." },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        if (strcmp(rows[i].health, health) == 0)
            return rows[i].next;
    return "";
}

static void
gpu_put_health(struct bh_html *html, bh_json_value gpu)
{
    const char *health = bh_show_text_of(gpu, "health");
    bh_ns until = bh_show_number_of(gpu, "health_until_ns");

    bh_show_fact_begin(html, "Health");
    bh_show_state(html, health);
    if (bh_show_number_of(gpu, "health_since_ns")) {
        bh_html_text(html, " since ");
        bh_show_time(html, bh_show_number_of(gpu, "health_since_ns"));
    }
    if (until > 0) {
        bh_html_text(html, ", until ");
        bh_show_time(html, until);
    }
    bh_html_text(html, " ");
    bh_html_text(html, gpu_next_of(health));
    bh_show_fact_end(html);
    if (bh_show_text_of(gpu, "fault")[0])
        bh_show_fact(html, "Fault", bh_show_text_of(gpu, "fault"));
    if (bh_show_truth_of(gpu, "fenced"))
        bh_show_fact(html, "Fenced",
                     bh_show_text_of(gpu, "fenced_why")[0] ? bh_show_text_of(gpu, "fenced_why")
                                                           : "by its node or its driver");
    if (bh_show_text_of(gpu, "trouble")[0])
        bh_show_fact(html, "Last change failed", bh_show_text_of(gpu, "trouble"));
    if (bh_show_truth_of(gpu, "reset_due"))
        bh_show_fact(html, "Reset", "due when it is next empty");
}

static void
gpu_put_cordon(struct bh_html *html, bh_json_value gpu)
{
    const char *cordon = bh_show_text_of(gpu, "cordon"), *node = bh_show_text_of(gpu, "node_cordon");

    if (bh_show_truth_of(gpu, "cordoned"))
        bh_show_fact(html, "Cordon", "by the site file: it gets nothing new");
    if (strcmp(cordon, "no") != 0 && cordon[0]) {
        bh_show_fact_begin(html, "Cordon");
        bh_show_cordon(html, cordon, bh_gpu_card_is_empty(gpu));
        bh_html_text(html, " by an operator");
        bh_show_fact_end(html);
    }
    if (strcmp(node, "no") != 0 && node[0]) {
        bh_show_fact_begin(html, "Node");
        bh_show_cordon(html, node, bh_gpu_card_is_empty(gpu));
        bh_show_fact_end(html);
    }
    if (bh_show_text_of(gpu, "unmanaged_why")[0]) {
        bh_show_fact(html, "Not managed", bh_show_text_of(gpu, "unmanaged_why"));
        bh_show_fact(html, "Remedy", bh_show_text_of(gpu, "unmanaged_fix"));
    }
}

static void
gpu_put_product(struct bh_html *html, bh_json_value gpu)
{
    const char *product = bh_show_text_of(gpu, bh_show_text_of(gpu, "product")[0] ? "product" : "model");

    bh_show_fact_begin(html, "Product");
    if (product[0])
        bh_html_text(html, product);
    else
        bh_show_unavailable(html, bh_gpu_card_why_unknown(gpu));
    bh_show_fact_end(html);
}

static void
gpu_put_place(struct bh_html *html, bh_json_value gpu)
{
    const char *node = bh_show_text_of(gpu, "node");
    char text[TEXT_MAX];

    bh_show_fact_begin(html, "Node");
    if (node[0])
        bh_show_link(html, "/nodes/", node, node);
    else
        bh_show_unavailable(html, bh_gpu_card_why_unknown(gpu));
    bh_show_fact_end(html);
    snprintf(text, sizeof text, "%llu", (unsigned long long)bh_show_number_of(gpu, "index"));
    if (bh_json_get(gpu, "index"))
        bh_show_fact(html, "Number", text);
    gpu_put_product(html, gpu);
    if (bh_show_text_of(gpu, "pci")[0])
        bh_show_fact(html, "PCI", bh_show_text_of(gpu, "pci"));
    bh_show_fact_begin(html, "NUMA node");
    if (bh_json_get(gpu, "numa"))
        bh_html_u64(html, bh_show_number_of(gpu, "numa"));
    else
        bh_show_unavailable(html, node[0] ? "its node does not know" : bh_gpu_card_why_unknown(gpu));
    bh_show_fact_end(html);
    if (bh_show_number_of(gpu, "link")) {
        snprintf(text, sizeof text, "domain %llu", (unsigned long long)bh_show_number_of(gpu, "link"));
        bh_show_fact(html, "NVLink", text);
    }
}

static void
gpu_put_amounts(struct bh_html *html, bh_json_value gpu, bh_ns now)
{
    static const struct {
        const char *member, *name;
    } amounts[] = { { "used", "Used" }, { "idle", "Idle" }, { "unusable", "Unusable" } };

    bh_show_fact(html, "Mode", bh_show_text_of(gpu, "mode"));
    for (size_t i = 0; i < BH_COUNT(amounts); i++) {
        const char *gpus = bh_show_text_of(bh_json_get(gpu, amounts[i].member), "gpus");

        if (strcmp(gpus, "0") != 0)
            bh_show_fact(html, amounts[i].name, gpus);
    }
    bh_show_fact_begin(html, "Sensors");
    bh_gpu_card_put_sensors(html, gpu, now);
    bh_show_fact_end(html);
    bh_show_fact_begin(html, "ECC errors, uncorrected");
    if (bh_json_get(gpu, "ecc_uncorrected"))
        bh_html_u64(html, bh_show_number_of(gpu, "ecc_uncorrected"));
    else
        bh_show_unavailable(html, bh_gpu_card_why_unknown(gpu));
    bh_show_fact_end(html);
}

void
bh_panel_gpu(struct bh_html *html, const struct bh_panel_call *call)
{
    const char *health = bh_show_text_of(call->data, "health");
    bool sound = strcmp(health, "ok") == 0 || strcmp(health, "watched") == 0;

    bh_html_open(html, "div");
    bh_html_attr(html, "class", "large");
    bh_gpu_card_put_board(html, call->data);
    bh_html_close(html, "div");
    gpu_put_partitions(html, call->data);
    bh_html_open(html, "dl");
    bh_html_attr(html, "class", "facts");
    gpu_put_health(html, call->data);
    gpu_put_cordon(html, call->data);
    gpu_put_place(html, call->data);
    gpu_put_amounts(html, call->data, call->now);
    bh_html_close(html, "dl");
    bh_hold_form_put(
        html, call,
        &(struct bh_hold_target){ .folder = "/gpus/",
                                  .target = bh_show_text_of(call->data, "uuid"),
                                  .cordoned = strcmp(bh_show_text_of(call->data, "cordon"), "no") != 0,
                                  .faulty = !sound });
}

/* ---- scrubs ---- */

/* "job 7 of acme/vision", as far as the caller may see it. */
static void
gpu_put_holder(struct bh_html *html, bh_json_value holder)
{
    const char *tenant = bh_show_text_of(holder, "tenant");

    if (bh_show_number_of(holder, "job")) {
        bh_html_text(html, "job ");
        bh_show_job(html, bh_show_number_of(holder, "job"));
        bh_html_text(html, " of ");
    }
    if (strchr(tenant, ' ') || strcmp(tenant, "unknown") == 0)
        bh_html_text(html, tenant);
    else
        bh_show_tenant(html, tenant);
}

static void
gpu_put_record_link(struct bh_html *html, uint64_t record)
{
    char number[24];

    snprintf(number, sizeof number, "%llu", (unsigned long long)record);
    bh_html_open(html, "td");
    bh_show_link(html, "/audit/", number, number);
    bh_html_close(html, "td");
}

static void
gpu_put_receipt(struct bh_html *html, bh_json_value receipt)
{
    bh_json_value from = bh_json_get(receipt, "from");

    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_time(html, bh_show_number_of(receipt, "ended_ns"));
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_text_of(receipt, "profile"));
    bh_html_open(html, "td");
    for (size_t i = 0; i < bh_json_count(from); i++) {
        if (i > 0)
            bh_html_text(html, ", ");
        gpu_put_holder(html, bh_json_at(from, i));
    }
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    gpu_put_holder(html, receipt);
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_state(html, bh_show_text_of(receipt, "result"));
    bh_html_text(html, " by ");
    bh_html_text(html, bh_show_text_of(receipt, "method"));
    bh_html_close(html, "td");
    gpu_put_record_link(html, bh_show_number_of(receipt, "record"));
    bh_html_close(html, "tr");
}

void
bh_panel_gpu_receipts(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const columns[] = { "When",   "Partition", "Held before by", "Passed to", "Scrub",
                                           "Record", NULL };
    bh_json_value list = bh_json_get(call->data, "items");

    if (bh_json_count(list) == 0) {
        bh_html_element(
            html, "p", NULL,
            "No partition of it has passed to another job yet. Each that does leaves a receipt here.");
        return;
    }
    bh_show_table(html, "Hand-overs", columns);
    for (size_t i = bh_json_count(list); i > 0; i--)
        gpu_put_receipt(html, bh_json_at(list, i - 1));
    bh_show_table_end(html);
}

/* ---- leases ---- */

/* The job's partitions on this GPU, of "GPU-3f2a1bd7 1g.10gb@2, GPU-77aa0000 whole". */
static void
gpu_put_leased(struct bh_html *html, const char *partitions, const char *uuid)
{
    enum { UUID_SHOWN = 12 }; /* as lists of jobs name GPUs */
    bool first = true;

    bh_html_open(html, "td");
    while (*partitions) {
        size_t length = strcspn(partitions, ",");
        const char *gpu = strstr(partitions, "GPU-");

        if (gpu && gpu < partitions + length && strncmp(gpu, uuid, UUID_SHOWN) == 0) {
            char text[TEXT_MAX];
            size_t named = (size_t)(gpu - partitions) + strcspn(gpu, " ,");

            snprintf(text, sizeof text, "%s%.*s", first ? "" : ", ", (int)(length - named - (named < length)),
                     partitions + named + (named < length));
            bh_html_text(html, text);
            first = false;
        }
        partitions += length + (partitions[length] == ',');
    }
    bh_html_close(html, "td");
}

static void
gpu_put_moment(struct bh_html *html, bh_json_value job, const char *member, const char *otherwise)
{
    bh_html_open(html, "td");
    if (bh_show_number_of(job, member))
        bh_show_time(html, bh_show_number_of(job, member));
    else
        bh_html_text(html, otherwise);
    bh_html_close(html, "td");
}

static void
gpu_put_lease(struct bh_html *html, bh_json_value job, const char *uuid)
{
    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_job(html, bh_show_number_of(job, "id"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_tenant(html, bh_show_text_of(job, "tenant"));
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_text_of(job, "user"));
    gpu_put_leased(html, bh_show_text_of(job, "partitions"), uuid);
    gpu_put_moment(html, job, "started_ns", "has not begun");
    gpu_put_moment(html, job, "ended_ns", "still does");
    bh_html_open(html, "td");
    bh_show_state(html, bh_show_text_of(job, "state"));
    bh_html_close(html, "td");
    bh_html_close(html, "tr");
}

static void
gpu_put_all_leases(struct bh_html *html, const char *uuid)
{
    BH_AUTO(bh_buf_fini) struct bh_buf address = { .max = 256 };

    bh_buf_puts(&address, "/jobs?order=newest&gpu=");
    bh_form_put_encoded(&address, uuid);
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_html_text(html, "A job is here by its last run; earlier ones are in its records. ");
    if (bh_buf_text(&address))
        bh_paging_put_link(html, bh_buf_text(&address), "All of them", false);
    bh_html_close(html, "p");
}

void
bh_panel_gpu_leases(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const columns[] = {
        "Job", "Tenant", "User", "Partition", "From", "To", "State", NULL
    };
    bh_json_value list = bh_json_get(call->data, "items");

    if (bh_json_count(list) == 0) {
        bh_html_element(html, "p", NULL,
                        "Of the last 1,000 jobs that you may see none has held a partition of it.");
        return;
    }
    bh_show_table(html, "Leases", columns);
    for (size_t i = 0; i < bh_json_count(list); i++)
        gpu_put_lease(html, bh_json_at(list, i), call->id);
    bh_show_table_end(html);
    gpu_put_all_leases(html, call->id);
}

/* ---- records ---- */

/* Cordon, uncordon and drain have one verb; which it was stands in the event, for those who see it. */
static const char *
gpu_deed_of(bh_json_value record)
{
    bh_json_value cordon = bh_json_get(bh_json_get(record, "event"), "cordon");
    const char *held = bh_show_text_of(cordon, "held");

    if (!cordon)
        return bh_show_text_of(record, "verb");
    if (!held[0])
        return "uncordoned";
    return strcmp(held, "cordon") == 0 ? "cordoned" : "drained";
}

static void
gpu_put_record(struct bh_html *html, bh_json_value record)
{
    const char *actor = bh_show_text_of(bh_json_get(record, "actor"), "name");

    bh_html_open(html, "tr");
    gpu_put_record_link(html, bh_show_number_of(record, "seq"));
    bh_html_open(html, "td");
    bh_show_time(html, bh_show_number_of(record, "ts_ns"));
    bh_html_close(html, "td");
    bh_show_cell(html, gpu_deed_of(record));
    bh_show_cell(html, actor[0] ? actor : "the system");
    bh_show_cell(html, bh_show_text_of(record, bh_show_text_of(record, "outcome")[0] ? "outcome" : "result"));
    bh_show_cell(html, bh_show_text_of(record, "note"));
    bh_html_close(html, "tr");
}

void
bh_panel_gpu_records(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const columns[] = { "Record", "When", "What", "By", "Result", "Why", NULL };
    bh_json_value list = bh_json_get(call->data, "items");

    if (bh_json_count(list) == 0) {
        bh_html_element(html, "p", NULL,
                        "No cordon, fault or other deed on it is recorded that you may see.");
        return;
    }
    bh_show_table(html, "Records", columns);
    for (size_t i = 0; i < bh_json_count(list); i++)
        gpu_put_record(html, bh_json_at(list, i));
    bh_show_table_end(html);
    if (bh_show_text_of(call->data, "next")[0])
        bh_html_element(html, "p", "note",
                        "There are earlier ones: bulkhead audit search --object gpu/UUID.");
}
