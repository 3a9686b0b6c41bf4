/* One record of the audit log: what is signed in it, in words. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "web/panel.h"
#include "web/record.h"
#include "web/show.h"

enum { TEXT_MAX = 256, ORDERS_OF_RECORD = 4096 };

/* ---- in words ---- */

static void
record_put_text(struct bh_html *html, bh_json_value record, const char *name, const char *member)
{
    const char *text = bh_show_text_of(record, member);

    if (text[0])
        bh_show_fact(html, name, text);
}

static void
record_put_count(struct bh_html *html, bh_json_value record, const char *name, const char *member)
{
    if (!bh_json_get(record, member))
        return;
    bh_show_fact_begin(html, name);
    bh_html_u64(html, bh_show_number_of(record, member));
    bh_show_fact_end(html);
}

static void
record_put_who(struct bh_html *html, bh_json_value record)
{
    bh_json_value actor = bh_json_get(record, "actor");
    const char *via = bh_show_text_of(actor, "via"), *token = bh_show_text_of(actor, "token");

    bh_show_fact_begin(html, "Who");
    bh_record_put_actor(html, record);
    if (via[0]) {
        bh_html_text(html, ", by ");
        bh_html_text(html, via);
    }
    if (token[0]) {
        bh_html_text(html, " ");
        bh_show_search(html, "text", token, token);
    }
    bh_show_fact_end(html);
}

static void
record_put_what(struct bh_html *html, bh_json_value record)
{
    const char *verb = bh_show_text_of(record, "verb"), *meaning = bh_record_meaning(verb);

    bh_show_fact_begin(html, "What");
    bh_show_search(html, "verb", verb, verb);
    if (meaning) {
        bh_html_text(html, ": ");
        bh_html_text(html, meaning);
    }
    bh_show_fact_end(html);
}

static void
record_put_decision(struct bh_html *html, bh_json_value record)
{
    bh_json_value decision = bh_json_get(record, "decision");
    char text[TEXT_MAX];

    if (!decision)
        return;
    snprintf(text, sizeof text, "%s, by rule %" PRIu64,
             bh_show_truth_of(decision, "allow") ? "allowed" : "denied", bh_show_number_of(decision, "rule"));
    if (!bh_json_get(decision, "rule"))
        snprintf(text, sizeof text, "%s",
                 bh_show_truth_of(decision, "allow") ? "allowed" : "denied, as no rule allows it");
    bh_show_fact(html, "Decision", text);
}

/* An order has the number of the record that gave it, times 4096, and its position there. */
static void
record_put_order(struct bh_html *html, bh_json_value record)
{
    uint64_t order = bh_show_number_of(record, "order");
    char number[24], text[TEXT_MAX];

    if (order == 0)
        return;
    snprintf(number, sizeof number, "%" PRIu64, order / ORDERS_OF_RECORD);
    snprintf(text, sizeof text, "order %" PRIu64 " of record %s", order % ORDERS_OF_RECORD, number);
    bh_show_fact_begin(html, "Answers");
    bh_show_link(html, "/audit/", number, text);
    bh_show_fact_end(html);
}

static const char *
record_order_word(char letter)
{
    static const struct {
        char letter;
        const char *word;
    } words[] = { { 'c', "carve" },  { 'd', "destroy" }, { 's', "start" }, { 'p', "suspend" },
                  { 'r', "resume" }, { 't', "stop" },    { 'z', "reset" }, { 'q', "test" } };

    for (size_t i = 0; i < BH_COUNT(words); i++)
        if (words[i].letter == letter)
            return words[i].word;
    return "nothing";
}

static void
record_put_orders(struct bh_html *html, bh_json_value record)
{
    const char *orders = bh_show_text_of(record, "orders");
    bool first = true;

    if (!orders[0])
        return;
    bh_show_fact_begin(html, "Orders of nodes");
    for (; *orders; orders++) {
        if (*orders == '-')
            continue;
        bh_html_text(html, first ? "" : ", ");
        bh_html_text(html, record_order_word(*orders));
        first = false;
    }
    bh_show_fact_end(html);
}

/* A link to the records that have the same id. */
static void
record_put_id(struct bh_html *html, bh_json_value record, const char *name, const char *member)
{
    const char *text = bh_show_text_of(record, member);

    if (!text[0])
        return;
    bh_show_fact_begin(html, name);
    bh_show_search(html, "text", text, text);
    bh_show_fact_end(html);
}

static void
record_put_tenant(struct bh_html *html, bh_json_value record)
{
    const char *tenant = bh_show_text_of(record, "tenant");

    if (!tenant[0])
        return;
    bh_show_fact_begin(html, "Tenant");
    bh_show_tenant(html, tenant);
    bh_show_fact_end(html);
}

static void
record_put_object(struct bh_html *html, bh_json_value record)
{
    bh_json_value object = bh_json_get(record, "object");
    char key[TEXT_MAX];

    if (!object)
        return;
    snprintf(key, sizeof key, "%.40s/%" PRIu64, bh_show_text_of(object, "type"),
             bh_show_number_of(object, "id"));
    bh_show_fact_begin(html, "Object");
    bh_record_put_object(html, record);
    bh_html_text(html, ", ");
    bh_show_search(html, "object", key, "all records about it");
    bh_show_fact_end(html);
}

/* ---- what a record holds besides, line by line: "cordon.held: drained" ---- */

struct record_path {
    char text[TEXT_MAX];
};

static void
record_put_value(struct bh_html *html, const char *path, bh_json_value value)
{
    char number[24];

    bh_html_open(html, "li");
    bh_html_element(html, "code", NULL, path);
    bh_html_text(html, " ");
    if (bh_json_kind(value) == BH_JSON_INTEGER) {
        snprintf(number, sizeof number, "%" PRId64, bh_json_integer(value, 0));
        bh_html_text(html, number);
    } else if (bh_json_kind(value) == BH_JSON_BOOL) {
        bh_html_text(html, bh_json_truth(value) ? "yes" : "no");
    } else {
        bh_html_text(html, bh_json_text(value, "nothing"));
    }
    bh_html_close(html, "li");
}

static void
record_put_tree(struct bh_html *html, const struct record_path *at, bh_json_value value, uint32_t depth)
{
    enum bh_json_kind kind = bh_json_kind(value);
    struct record_path below;
    bh_json_value member;
    void *cursor = NULL;
    const char *key;

    if (depth == BH_JSON_DEPTH_MAX || (kind != BH_JSON_OBJECT && kind != BH_JSON_ARRAY)) {
        record_put_value(html, at->text, value);
        return;
    }
    for (size_t i = 0; i < bh_json_count(value); i++) {
        snprintf(below.text, sizeof below.text, "%.200s[%zu]", at->text, i);
        record_put_tree(html, &below, bh_json_at(value, i), depth + 1);
    }
    while (kind == BH_JSON_OBJECT && bh_json_next(value, &cursor, &key, &member)) {
        snprintf(below.text, sizeof below.text, "%.180s%s%.60s", at->text, at->text[0] ? "." : "", key);
        record_put_tree(html, &below, member, depth + 1);
    }
}

static void
record_put_part(struct bh_html *html, bh_json_value record, const char *title, const char *member)
{
    bh_json_value value = bh_json_get(record, member);

    if (!value)
        return;
    bh_html_element(html, "h3", NULL, title);
    bh_html_open(html, "ul");
    bh_html_attr(html, "class", "members");
    record_put_tree(html, &(const struct record_path){ "" }, value, 0);
    bh_html_close(html, "ul");
}

/* The jobs that it changed, as links. */
static void
record_put_jobs(struct bh_html *html, bh_json_value record)
{
    bh_json_value jobs = bh_json_get(record, "jobs");

    if (bh_json_count(jobs) == 0)
        return;
    bh_show_fact_begin(html, "Jobs that it changed");
    for (size_t i = 0; i < bh_json_count(jobs); i++) {
        bh_html_text(html, i ? ", " : "");
        bh_show_job(html, bh_show_number_of(bh_json_at(jobs, i), "job"));
    }
    bh_show_fact_end(html);
}

static void
record_put_changes(struct bh_html *html, bh_json_value record)
{
    bh_json_value changes = bh_json_get(record, "changes");

    if (bh_json_count(changes) == 0)
        return;
    bh_html_element(html, "h3", NULL, "Changes of the site file");
    bh_html_open(html, "ul");
    bh_html_attr(html, "class", "members");
    for (size_t i = 0; i < bh_json_count(changes); i++)
        bh_html_element(html, "li", NULL, bh_json_text(bh_json_at(changes, i), ""));
    bh_html_close(html, "ul");
}

static void
record_put_parts(struct bh_html *html, bh_json_value record)
{
    static const struct {
        const char *title, *member;
    } parts[] = {
        { "Event", "event" },
        { "What became of jobs", "jobs" },
        { "What the engine decided", "decided" },
        { "Ids that it gave, with the commitments to their names", "names" },
    };

    record_put_changes(html, record);
    for (size_t i = 0; i < BH_COUNT(parts); i++)
        record_put_part(html, record, parts[i].title, parts[i].member);
}

void
bh_panel_record(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value record = call->data;

    bh_html_open(html, "dl");
    bh_html_attr(html, "class", "facts");
    bh_show_fact_begin(html, "When");
    bh_show_time(html, bh_show_number_of(record, "ts_ns"));
    bh_show_fact_end(html);
    record_put_who(html, record);
    record_put_what(html, record);
    record_put_object(html, record);
    record_put_tenant(html, record);
    record_put_decision(html, record);
    bh_show_fact_begin(html, "Result");
    bh_record_put_result(html, record);
    bh_show_fact_end(html);
    record_put_text(html, record, "Reason", "note");
    record_put_jobs(html, record);
    record_put_order(html, record);
    record_put_orders(html, record);
    record_put_count(html, record, "Times", "count");
    record_put_text(html, record, "Phase", "phase");
    record_put_id(html, record, "Request", "request");
    record_put_id(html, record, "Digest of the text", "text");
    record_put_count(html, record, "Start of the daemon", "boot");
    record_put_count(html, record, "Form of the record", "version");
    record_put_text(html, record, "Salt", "salt");
    bh_html_close(html, "dl");
    record_put_parts(html, record);
}
