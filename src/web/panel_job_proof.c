/* What is proven of a job: its isolation, scrubs of its memory, its records. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "web/panel.h"
#include "web/show.h"

enum { DIGEST_SHOWN = 16 };

/* docs/isolation.md, in a sentence each. */
static const struct job_grade {
    const char *name, *title, *stops, *leaves;
} grades[] = {
    { "A", "dedicated node",
      "access to other GPUs and to memory that others left, and side channels between tenants",
      "what the previous tenant left in firmware, and the administrators of the machine" },
    { "B", "whole GPU", "access to other GPUs, to memory that others left on the GPU, and faults of others",
      "sharing of PCIe, NVLink, CPU caches and memory bandwidth with jobs on other GPUs, and a hole in the kernel or "
      "the driver" },
    { "C", "MIG instance",
      "access to others' memory, compute and L2 slices; a fault in one instance ends no other",
      "side channels through what instances share (the last-level TLB, PCIe, clocks and power), resets of the whole "
      "GPU, and a hole in the driver" },
    { "F", "capped by the CUDA shim", "ordinary programs from taking more memory or time than their share",
      "a process that bypasses the shim, faults of others, and side channels: never between tenants that do not trust "
      "each other" },
    { "G", "advisory", "nothing", "anything: nothing is enforced" },
};

static const struct job_grade *
proof_find_grade(const char *grade)
{
    for (size_t i = 0; i < BH_COUNT(grades); i++)
        if (grade[0] == grades[i].name[0] && (grade[1] == '\0' || grade[1] == ' '))
            return &grades[i];
    return NULL;
}

static void
proof_put_fact(struct bh_html *html, const char *name, const char *text)
{
    bh_show_fact_begin(html, name);
    bh_html_text(html, text);
    bh_show_fact_end(html);
}

/* A job runs only after its checks passed; "unverified" says that one did not since. */
static void
proof_put_checks(struct bh_html *html, bh_json_value job)
{
    bool unverified = strstr(bh_show_text_of(job, "grade"), "unverified") != NULL;

    bh_show_fact_begin(html, "Isolation checks");
    if (unverified)
        bh_show_state(html, "unverified");
    else if (bh_show_number_of(job, "started_ns"))
        bh_show_state(html, "passed");
    else
        bh_show_unavailable(html, "they are made when it starts, before its command begins");
    bh_show_fact_end(html);
}

void
bh_panel_isolation(struct bh_html *html, const struct bh_panel_call *call)
{
    const char *text = bh_show_text_of(call->data, "grade");
    const struct job_grade *grade = proof_find_grade(text);

    bh_html_open(html, "dl");
    bh_html_attr(html, "class", "facts");
    bh_show_fact_begin(html, "Grade");
    if (text[0])
        bh_html_text(html, text);
    else
        bh_show_unavailable(html, "it gets one when it is placed");
    if (grade) {
        bh_html_text(html, ", ");
        bh_html_text(html, grade->title);
    }
    bh_show_fact_end(html);
    proof_put_checks(html, call->data);
    if (grade) {
        proof_put_fact(html, "Stops", grade->stops);
        proof_put_fact(html, "Does not stop", grade->leaves);
    }
    bh_html_close(html, "dl");
    bh_html_element(html, "p", "note", "What each grade stops and does not: docs/isolation.md.");
}

/* ---- scrubs ---- */

static void
proof_put_from(struct bh_html *html, bh_json_value list)
{
    for (size_t i = 0; i < bh_json_count(list); i++) {
        bh_json_value from = bh_json_at(list, i);

        bh_html_text(html, i ? ", " : "");
        if (bh_show_number_of(from, "job"))
            bh_show_job(html, bh_show_number_of(from, "job"));
        else
            bh_html_text(html, bh_show_text_of(from, "tenant"));
    }
}

static void
proof_put_receipt(struct bh_html *html, const struct bh_panel_call *call, bh_json_value receipt)
{
    uint64_t job = bh_show_number_of(receipt, "job");
    char digest[DIGEST_SHOWN + 4];

    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_time(html, bh_show_number_of(receipt, "ended_ns"));
    bh_html_close(html, "td");
    bh_show_cell(html, job == bh_show_number_of(call->data, "id") ? "before it began" : "of what it left");
    bh_html_open(html, "td");
    bh_html_text(html, bh_show_text_of(receipt, "profile"));
    bh_html_text(html, " of ");
    bh_show_gpu(html, bh_show_text_of(receipt, "gpu"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    proof_put_from(html, bh_json_get(receipt, "from"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_state(html, bh_show_text_of(receipt, "result"));
    if (bh_show_text_of(receipt, "why")[0])
        bh_html_element(html, "p", "note", bh_show_text_of(receipt, "why"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_record(html, bh_show_number_of(receipt, "record"));
    bh_html_close(html, "td");
    snprintf(digest, sizeof digest, "%.*s\xe2\x80\xa6", DIGEST_SHOWN, bh_show_text_of(receipt, "digest"));
    bh_html_open(html, "td");
    bh_html_open(html, "code");
    bh_html_attr(html, "title", bh_show_text_of(receipt, "digest"));
    bh_html_text(html, digest);
    bh_html_close(html, "code");
    bh_html_close(html, "td");
    bh_html_close(html, "tr");
}

void
bh_panel_job_receipts(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const columns[] = { "When",   "What",   "Partition", "Memory of",
                                           "Result", "Record", "Digest",    NULL };
    bh_json_value list = bh_json_get(call->data, "receipts");

    if (bh_json_count(list) == 0) {
        bh_html_element(
            html, "p", NULL,
            "No scrub yet: memory is scrubbed when a partition passes from one tenant to another.");
        return;
    }
    bh_show_table(html, "Receipts of scrubs", columns);
    for (size_t i = 0; i < bh_json_count(list); i++)
        proof_put_receipt(html, call, bh_json_at(list, i));
    bh_show_table_end(html);
}

/* ---- records ---- */

/* What became of this job by the record: a state, or "". */
static const char *
proof_state_in(bh_json_value record, const char *id)
{
    bh_json_value jobs = bh_json_get(record, "jobs");

    for (size_t i = 0; i < bh_json_count(jobs); i++) {
        char number[24];

        snprintf(number, sizeof number, "%llu",
                 (unsigned long long)bh_show_number_of(bh_json_at(jobs, i), "job"));
        if (strcmp(number, id) == 0)
            return bh_show_text_of(bh_json_at(jobs, i), "state");
    }
    return "";
}

static void
proof_put_record(struct bh_html *html, const struct bh_panel_call *call, bh_json_value record)
{
    const char *state = proof_state_in(record, call->id);
    const char *actor = bh_show_text_of(bh_json_get(record, "actor"), "name");
    const char *outcome = bh_show_text_of(record, "outcome");

    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_time(html, bh_show_number_of(record, "ts_ns"));
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_text_of(record, "verb"));
    bh_html_open(html, "td");
    if (state[0])
        bh_show_state(html, state);
    bh_html_close(html, "td");
    bh_show_cell(html, actor[0] ? actor : "the system");
    bh_show_cell(html, outcome[0] ? outcome : bh_show_text_of(record, "result"));
    bh_html_open(html, "td");
    bh_show_record(html, bh_show_number_of(record, "seq"));
    bh_html_close(html, "td");
    bh_html_close(html, "tr");
}

void
bh_panel_job_records(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const columns[] = { "When", "What", "Job is then", "By", "Outcome", "Record", NULL };
    bh_json_value list = bh_json_get(call->data, "items");

    if (bh_json_count(list) == 0) {
        bh_html_element(html, "p", NULL,
                        "There is no record of it that you may see, or none is kept any more.");
        return;
    }
    bh_html_open(html, "p");
    bh_html_text(html, "Of job ");
    bh_show_link(html, "/jobs/", call->id, call->id);
    bh_html_text(html, ", oldest first.");
    bh_html_close(html, "p");
    bh_show_table(html, "Records of the job", columns);
    for (size_t i = 0; i < bh_json_count(list); i++)
        proof_put_record(html, call, bh_json_at(list, i));
    bh_show_table_end(html);
    if (bh_show_text_of(call->data, "next")[0])
        bh_html_element(html, "p", "note", "These are the first 100; the command above lists all.");
}
