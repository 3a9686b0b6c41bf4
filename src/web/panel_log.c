/* How far the audit log goes, and what it is verified with. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "web/panel.h"
#include "web/show.h"

enum { TEXT_MAX = 160 };

static void
log_put_count(struct bh_html *html, const char *name, uint64_t count)
{
    bh_show_fact_begin(html, name);
    bh_html_u64(html, count);
    bh_show_fact_end(html);
}

static void
log_put_checkpoint(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_ns at = bh_show_number_of(call->data, "signed_ns");
    uint64_t size = bh_show_number_of(call->data, "size");
    char text[TEXT_MAX];

    bh_show_fact_begin(html, "Newest checkpoint");
    if (size == 0) {
        bh_show_unavailable(html, "none was signed yet");
    } else {
        snprintf(text, sizeof text, "of %" PRIu64 " records", size);
        bh_show_link(html, "/v1/log/", "checkpoint", text);
    }
    bh_show_fact_end(html);
    bh_show_fact_begin(html, "Signed");
    if (at == 0) {
        bh_show_unavailable(html, "not since the daemon started");
    } else {
        bh_show_time(html, at);
        bh_html_text(html, ", ");
        bh_show_span(html, call->now > at ? call->now - at : 0);
        bh_html_text(html, " ago");
    }
    bh_show_fact_end(html);
}

/* A vkey a line: NAME+ID+KEY. */
static void
log_put_keys(struct bh_html *html, const char *keys)
{
    bh_show_fact_begin(html, "Verifier key");
    for (const char *at = keys; *at;) {
        size_t length = strcspn(at, "\n");
        char line[TEXT_MAX * 2];

        snprintf(line, sizeof line, "%.*s", (int)length, at);
        bh_html_element(html, "code", NULL, line);
        at += length + (at[length] == '\n');
        if (*at)
            bh_html_text(html, " and before it ");
    }
    bh_show_fact_end(html);
}

static void
log_put_minimum(struct bh_html *html, uint64_t minimum)
{
    char text[TEXT_MAX];

    if (minimum == 0) {
        bh_show_fact(html, "Pruned", "nothing: every record since the first is there");
        return;
    }
    snprintf(text, sizeof text,
             "records below %" PRIu64 ": their hashes are kept here, they are in the folder of the pruning",
             minimum);
    bh_show_fact(html, "Pruned", text);
}

void
bh_panel_log(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_html_open(html, "dl");
    bh_html_attr(html, "class", "facts");
    if (bh_json_get(call->data, "records"))
        log_put_count(html, "Records", bh_show_number_of(call->data, "records"));
    log_put_checkpoint(html, call);
    log_put_minimum(html, bh_show_number_of(call->data, "minimum"));
    log_put_keys(html, bh_show_text_of(call->data, "keys"));
    bh_html_close(html, "dl");
    bh_html_element(html, "p", "note",
                    "This server shows the key. A copy of audit.vkey from elsewhere shows whether the server "
                    "changed it, and a checkpoint kept elsewhere whether it cut the log.");
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "pages");
    bh_show_link(html, "/", "receipts", "Receipts of scrubs");
    if (bh_json_get(call->data, "records")) /* by the same right: on the whole site */
        bh_show_link(html, "/", "keys", "Keys of sealed texts");
    bh_html_close(html, "p");
}
