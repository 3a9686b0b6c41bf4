#include "web/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "policy/operations.h"
#include "web/show.h"

enum { TEXT_MAX = 80 };

void
bh_record_put_actor(struct bh_html *html, bh_json_value record)
{
    bh_json_value actor = bh_json_get(record, "actor");
    const char *name = bh_show_text_of(actor, "name");
    uint64_t id = bh_show_number_of(actor, "id");

    if (!actor) {
        bh_html_text(html, "the system");
    } else if (name[0]) {
        bh_show_search(html, "actor", name, name);
    } else if (bh_json_get(actor, "uid")) {
        bh_html_text(html, id == 0 && bh_show_number_of(actor, "uid") == 0 ? "root, uid " : "unknown, uid ");
        bh_html_u64(html, bh_show_number_of(actor, "uid"));
    } else {
        bh_html_text(html, id ? "principal " : "the system");
        if (id)
            bh_html_u64(html, id);
    }
}

/* Objects that have a page, and whether it goes by the number or by the name. */
static const struct {
    const char *type, *folder;
    bool named;
} folders[] = {
    { "job", "/jobs/", false },
    { "gpu", "/gpus/", true },
    { "node", "/nodes/", true },
    { "tenant", "/tenants/", true },
};

void
bh_record_put_object(struct bh_html *html, bh_json_value record)
{
    bh_json_value object = bh_json_get(record, "object");
    const char *type = bh_show_text_of(object, "type"), *name = bh_show_text_of(record, "object_name");
    const char *word = strcmp(type, "piece") == 0 ? "partition" : type; /* records have the old word */
    uint64_t id = bh_show_number_of(object, "id");
    char number[24], text[TEXT_MAX], key[TEXT_MAX];

    if (!type[0])
        return;
    snprintf(number, sizeof number, "%" PRIu64, id);
    snprintf(text, sizeof text, "%.30s %.40s", word, name[0] ? name : id ? number : "");
    snprintf(key, sizeof key, "%.30s/%s", type, number);
    for (size_t i = 0; i < BH_COUNT(folders); i++) {
        const char *page = folders[i].named ? name : id ? number : ""; /* 0: what was refused has none */

        if (strcmp(folders[i].type, type) == 0 && page[0]) {
            bh_show_link(html, folders[i].folder, page, text);
            return;
        }
    }
    bh_show_search(html, "object", id ? key : type, text);
}

void
bh_record_put_result(struct bh_html *html, bh_json_value record)
{
    bh_json_value decision = bh_json_get(record, "decision");
    const char *result = bh_show_text_of(record, "result"), *outcome = bh_show_text_of(record, "outcome");
    bool refused = decision && !bh_show_truth_of(decision, "allow");

    if (refused)
        bh_show_state(html, "denied");
    else if (result[0])
        bh_show_state(html, result);
    if (outcome[0] && strcmp(outcome, result) != 0) {
        bh_html_text(html, result[0] || refused ? ": " : "");
        bh_html_text(html, outcome);
    }
    if (bh_json_get(record, "count")) {
        bh_html_text(html, " \xc3\x97");
        bh_html_u64(html, bh_show_number_of(record, "count"));
    }
}

const char *
bh_record_meaning(const char *verb)
{
    for (enum bh_operation op = 0; op < BH_OPERATIONS; op++) {
        const struct bh_operation_row *row = bh_operation_get(op);

        if (row->kind != BH_OPERATION_READ && strcmp(bh_operation_recorded_verb(op), verb) == 0)
            return row->summary;
    }
    return NULL;
}

void
bh_record_put_row(struct bh_html *html, bh_json_value record)
{
    const char *tenant = bh_show_text_of(record, "tenant");
    char number[24];

    snprintf(number, sizeof number, "%" PRIu64, bh_show_number_of(record, "seq"));
    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_link(html, "/audit/", number, number);
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_time(html, bh_show_number_of(record, "ts_ns"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_record_put_actor(html, record);
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_text_of(record, "verb"));
    bh_html_open(html, "td");
    bh_record_put_object(html, record);
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_tenant(html, tenant);
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_record_put_result(html, record);
    bh_html_close(html, "td");
    bh_html_close(html, "tr");
}
