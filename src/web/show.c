#include "web/show.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/num.h"
#include "identity/form.h"

enum { TEXT_MAX = 64, UUID_SHOWN = 12, ADDRESS_MAX = 2048 };

const char *
bh_show_text_of(bh_json_value object, const char *name)
{
    return bh_json_text(bh_json_get(object, name), "");
}

uint64_t
bh_show_number_of(bh_json_value object, const char *name)
{
    return bh_json_number(bh_json_get(object, name), 0);
}

bool
bh_show_truth_of(bh_json_value object, const char *name)
{
    return bh_json_truth(bh_json_get(object, name));
}

void
bh_show_time(struct bh_html *html, bh_ns at)
{
    char text[TEXT_MAX];
    struct bh_buf utc;

    if (at == 0) {
        bh_html_text(html, "never");
        return;
    }
    bh_buf_init_fixed(&utc, text, sizeof text);
    bh_time_put_utc(&utc, at);
    bh_html_element(html, "time", NULL, bh_buf_text(&utc));
}

void
bh_show_age(struct bh_html *html, bh_ns at, bh_ns now)
{
    static const bh_ns report_lasts = 60 * BH_NS_PER_S; /* some intervals of sample_interval_ms */

    if (at == 0 || now < at + report_lasts)
        return;
    bh_html_text(html, ", as of ");
    bh_show_time(html, at);
}

void
bh_show_about(struct bh_html *html, bh_ns at)
{
    static const size_t seconds = sizeof "2026-11-28T16:06" - 1;
    char text[TEXT_MAX];
    struct bh_buf utc;

    bh_buf_init_fixed(&utc, text, sizeof text);
    bh_time_put_utc(&utc, at);
    snprintf(text + seconds, sizeof text - seconds, "Z");
    bh_html_element(html, "time", NULL, text);
}

void
bh_show_span(struct bh_html *html, bh_ns span)
{
    static const struct {
        uint64_t seconds;
        const char *name;
    } units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "m" }, { 1, "s" } };
    uint64_t left = span / BH_NS_PER_S;
    char text[TEXT_MAX] = "0s";
    size_t used = 0;
    uint32_t shown = 0;

    for (size_t i = 0; i < BH_COUNT(units) && shown < 2; i++) {
        uint64_t count = left / units[i].seconds;

        if (count == 0 && shown == 0)
            continue;
        shown++;
        left %= units[i].seconds;
        if (count > 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%llu%s", used ? " " : "",
                                     (unsigned long long)count, units[i].name);
    }
    bh_html_text(html, text);
}

void
bh_show_mib(struct bh_html *html, uint64_t mib)
{
    char text[TEXT_MAX];
    uint64_t tenths = mib * 10 / 1024;

    if (mib < 1024)
        snprintf(text, sizeof text, "%llu MiB", (unsigned long long)mib);
    else
        snprintf(text, sizeof text, "%llu.%llu GiB", (unsigned long long)(tenths / 10),
                 (unsigned long long)(tenths % 10));
    bh_html_text(html, text);
}

void
bh_show_parts(struct bh_html *html, uint64_t parts)
{
    uint64_t hundredths = (parts * 100 + 2100) / 4200;
    char text[TEXT_MAX];

    if (hundredths % 100 == 0)
        snprintf(text, sizeof text, "%llu", (unsigned long long)(hundredths / 100));
    else
        snprintf(text, sizeof text, "%llu.%02llu", (unsigned long long)(hundredths / 100),
                 (unsigned long long)(hundredths % 100));
    bh_html_text(html, text);
}

void
bh_show_unavailable(struct bh_html *html, const char *why)
{
    bh_html_open(html, "span");
    bh_html_attr(html, "class", "unavailable");
    bh_html_text(html, "unavailable: ");
    bh_html_text(html, why);
    bh_html_close(html, "span");
}

/* Names that a style sheet may select by: letters, digits, dashes. */
static bool
show_is_class(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";

    return text[0] && text[strspn(text, plain)] == '\0' && strlen(text) < TEXT_MAX / 2;
}

/* An odd backtick, without another behind it, is text. */
void
bh_show_sentence(struct bh_html *html, const char *text)
{
    const char *open = strchr(text, '`'), *close = open ? strchr(open + 1, '`') : NULL;

    for (; close; open = strchr(text, '`'), close = open ? strchr(open + 1, '`') : NULL) {
        bh_html_part(html, text, (size_t)(open - text));
        bh_html_open(html, "code");
        bh_html_part(html, open + 1, (size_t)(close - open - 1));
        bh_html_close(html, "code");
        text = close + 1;
    }
    bh_html_text(html, text);
}

void
bh_show_state(struct bh_html *html, const char *state)
{
    char class[TEXT_MAX] = "state";

    if (show_is_class(state))
        snprintf(class, sizeof class, "state %s", state);
    bh_html_element(html, "span", class, state);
}

void
bh_show_cordon(struct bh_html *html, const char *cordon, bool empty)
{
    bool drains = strncmp(cordon, "drain", 5) == 0;

    if (drains)
        bh_show_state(html, empty ? "drained" : "draining");
    else if (strcmp(cordon, "cordon") == 0)
        bh_show_state(html, "cordoned");
    if (strcmp(cordon, "drain_now") == 0 && !empty)
        bh_html_text(html, " at once");
}

void
bh_node_put_cordon(struct bh_html *html, bh_json_value node)
{
    bool known = bh_json_get(node, "used_cpu_milli");

    bh_show_cordon(
        html, bh_show_text_of(node, "cordon"),
        known && bh_show_number_of(node, "used_cpu_milli") + bh_show_number_of(node, "used_memory_mib") == 0);
}

void
bh_show_link(struct bh_html *html, const char *folder, const char *name, const char *text)
{
    BH_AUTO(bh_buf_fini) struct bh_buf address = { .max = ADDRESS_MAX };

    bh_buf_puts(&address, folder);
    bh_form_put_path(&address, name);
    if (!name[0] || !bh_buf_text(&address)) {
        bh_html_text(html, text);
        return;
    }
    bh_html_open(html, "a");
    bh_html_attr(html, "href", bh_buf_text(&address));
    bh_html_text(html, text);
    bh_html_close(html, "a");
}

/* The UUID of the job's GPU whose beginning the text is; NULL: the API does not name it. */
static const char *
show_find_gpu(bh_json_value job, const char *beginning, size_t length)
{
    bh_json_value gpus = bh_json_get(job, "gpus");

    for (size_t i = 0; i < bh_json_count(gpus); i++)
        if (strncmp(bh_json_text(bh_json_at(gpus, i), ""), beginning, length) == 0)
            return bh_json_text(bh_json_at(gpus, i), "");
    return NULL;
}

static void
show_put_piece(struct bh_html *html, const char *text, size_t length)
{
    char piece[512];

    snprintf(piece, sizeof piece, "%.*s", (int)length, text);
    bh_html_text(html, piece);
}

void
bh_show_partitions(struct bh_html *html, bh_json_value job)
{
    const char *text = bh_show_text_of(job, "partitions"), *at;

    for (; (at = strstr(text, "GPU-")); text = at + strcspn(at, " ,")) {
        size_t length = strcspn(at, " ,");
        const char *uuid = show_find_gpu(job, at, length);

        show_put_piece(html, text, (size_t)(at - text));
        if (uuid)
            bh_show_gpu(html, uuid);
        else
            show_put_piece(html, at, length);
    }
    bh_html_text(html, text);
}

void
bh_show_search(struct bh_html *html, const char *parameter, const char *value, const char *text)
{
    BH_AUTO(bh_buf_fini) struct bh_buf address = { .max = ADDRESS_MAX };

    bh_buf_puts(&address, "/audit");
    bh_form_put(&address, parameter, value);
    if (!bh_buf_text(&address)) {
        bh_html_text(html, text);
        return;
    }
    bh_html_open(html, "a");
    bh_html_attr(html, "href", bh_buf_text(&address));
    bh_html_text(html, text);
    bh_html_close(html, "a");
}

uint64_t
bh_show_number_in(const char *text)
{
    struct bh_err unused;
    uint64_t number;

    return bh_parse_u64(text, &number, &unused) == BH_OK ? number : 0;
}

void
bh_show_job(struct bh_html *html, uint64_t job)
{
    char number[TEXT_MAX];

    snprintf(number, sizeof number, "%llu", (unsigned long long)job);
    bh_show_link(html, "/jobs/", number, number);
}

void
bh_show_record(struct bh_html *html, uint64_t record)
{
    char number[TEXT_MAX];

    snprintf(number, sizeof number, "%llu", (unsigned long long)record);
    bh_show_link(html, "/audit/", number, number);
}

void
bh_show_tenant(struct bh_html *html, const char *path)
{
    bh_show_link(html, "/tenants/", path, path);
}

void
bh_show_gpu(struct bh_html *html, const char *uuid)
{
    char text[TEXT_MAX];

    snprintf(text, sizeof text, "%.*s", UUID_SHOWN, uuid);
    bh_show_link(html, "/gpus/", uuid, text);
}

void
bh_show_fact_begin(struct bh_html *html, const char *name)
{
    bh_html_open(html, "div");
    bh_html_element(html, "dt", NULL, name);
    bh_html_open(html, "dd");
}

void
bh_show_fact_end(struct bh_html *html)
{
    bh_html_close(html, "dd");
    bh_html_close(html, "div");
}

void
bh_show_fact(struct bh_html *html, const char *name, const char *text)
{
    bh_show_fact_begin(html, name);
    bh_html_text(html, text);
    bh_show_fact_end(html);
}

void
bh_show_table(struct bh_html *html, const char *caption, const char *const *columns)
{
    bh_html_open(html, "div");
    bh_html_attr(html, "class", "wide");
    bh_html_attr(html, "role", "region");
    bh_html_attr(html, "aria-label", caption);
    bh_html_attr(html, "tabindex", "0");
    bh_html_open(html, "table");
    bh_html_open(html, "thead");
    bh_html_open(html, "tr");
    for (; *columns; columns++) {
        bh_html_open(html, "th");
        bh_html_attr(html, "scope", "col");
        bh_html_text(html, *columns);
        bh_html_close(html, "th");
    }
    bh_html_close(html, "tr");
    bh_html_close(html, "thead");
    bh_html_open(html, "tbody");
}

void
bh_show_table_end(struct bh_html *html)
{
    bh_html_close(html, "tbody");
    bh_html_close(html, "table");
    bh_html_close(html, "div");
}

void
bh_show_cell(struct bh_html *html, const char *text)
{
    bh_html_element(html, "td", NULL, text);
}
