/* Receipts of scrubs: how memory was cleaned before it passed on. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "identity/form.h"
#include "web/paging.h"
#include "web/show.h"

static void
receipts_put_input(struct bh_html *html, const struct bh_panel_call *call, const char *label,
                   const char *name)
{
    bh_html_open(html, "div");
    bh_frame_input(html, &(struct bh_input){ .id = name,
                                             .label = label,
                                             .name = name,
                                             .autocomplete = "off",
                                             .value = bh_page_field(call->page, name),
                                             .length_max = 60,
                                             .optional = true });
    bh_html_close(html, "div");
}

void
bh_panel_find_receipts(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_frame_search(html, "/receipts");
    receipts_put_input(html, call, "Job, by its number", "job");
    receipts_put_input(html, call, "GPU, by its UUID", "gpu");
    bh_html_open(html, "div");
    bh_frame_button(html, NULL, "Search");
    bh_html_close(html, "div");
    bh_html_close(html, "form");
}

/* A tenant and, where it is known, its job.  What stands for tenants that the reader may not know has a
 * blank, or is "unknown". */
static void
receipts_put_holder(struct bh_html *html, const char *tenant, uint64_t job)
{
    if (strchr(tenant, ' ') || strcmp(tenant, "unknown") == 0)
        bh_html_text(html, tenant);
    else
        bh_show_tenant(html, tenant);
    if (job == 0)
        return;
    bh_html_text(html, " job ");
    bh_show_job(html, job);
}

/* Whose memory it was since it was last clean. */
static void
receipts_put_from(struct bh_html *html, bh_json_value receipt)
{
    bh_json_value list = bh_json_get(receipt, "from");

    if (bh_json_count(list) == 0)
        bh_html_text(html, "no tenant");
    for (size_t i = 0; i < bh_json_count(list); i++) {
        bh_json_value from = bh_json_at(list, i);
        const char *tenant = bh_show_text_of(from, "tenant");

        bh_html_text(html, i ? ", " : "");
        receipts_put_holder(html, tenant, bh_show_number_of(from, "job"));
    }
}

/* What was done, and what was found where it was read back. */
static void
receipts_put_scrub(struct bh_html *html, bh_json_value receipt)
{
    uint64_t bytes = bh_show_number_of(receipt, "bytes"), samples = bh_show_number_of(receipt, "samples");
    char text[96];

    bh_html_text(html, bh_show_text_of(receipt, "method"));
    if (bytes > 0) {
        bh_html_text(html, " of ");
        bh_show_mib(html, bytes >> 20);
    }
    bh_html_text(html, "; ");
    if (samples == 0) {
        bh_show_unavailable(html, "nothing was read back");
        return;
    }
    snprintf(text, sizeof text,
             "%" PRIu64 " samples: %" PRIu64 " held something before, %" PRIu64 " not as filled", samples,
             bh_show_number_of(receipt, "residue"), bh_show_number_of(receipt, "unfilled"));
    bh_html_text(html, text);
}

static void
receipts_put_row(struct bh_html *html, bh_json_value receipt)
{
    char number[24];

    snprintf(number, sizeof number, "%" PRIu64, bh_show_number_of(receipt, "record"));
    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_link(html, "/audit/", number, number);
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_time(html, bh_show_number_of(receipt, "ended_ns"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_gpu(html, bh_show_text_of(receipt, "gpu"));
    bh_html_text(html, " ");
    bh_html_text(html, bh_show_text_of(receipt, "profile"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    receipts_put_from(html, receipt);
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    receipts_put_holder(html, bh_show_text_of(receipt, "tenant"), bh_show_number_of(receipt, "job"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_state(html, bh_show_text_of(receipt, "result"));
    bh_html_text(html, bh_show_text_of(receipt, "why")[0] ? ": " : "");
    bh_html_text(html, bh_show_text_of(receipt, "why"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    receipts_put_scrub(html, receipt);
    bh_html_close(html, "td");
    bh_html_close(html, "tr");
}

static void
receipts_put_next(struct bh_html *html, const struct bh_panel_call *call)
{
    BH_AUTO(bh_buf_fini) struct bh_buf address = { .max = BH_FORM_BYTES_MAX };
    const char *next = bh_show_text_of(call->data, "next");

    bh_buf_puts(&address, "/receipts");
    bh_form_put(&address, "after", next);
    if (bh_page_field(call->page, "job")[0])
        bh_form_put(&address, "job", bh_page_field(call->page, "job"));
    if (bh_page_field(call->page, "gpu")[0])
        bh_form_put(&address, "gpu", bh_page_field(call->page, "gpu"));
    if (!next[0] || !bh_buf_text(&address))
        return;
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "pages");
    bh_paging_put_link(html, bh_buf_text(&address), "Newer", false);
    bh_html_close(html, "p");
}

void
bh_panel_receipts(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const columns[] = { "Record", "When",   "Partition", "Memory of",
                                           "For",    "Result", "Scrub",     NULL };
    bh_json_value list = bh_json_get(call->data, "items");

    if (bh_json_count(list) == 0) {
        bh_html_element(html, "p", NULL,
                        "No receipt that you may see. One is written each time that memory passes to another "
                        "tenant.");
        return;
    }
    bh_html_element(html, "p", "note",
                    "Oldest first. The record has the digest of the receipt: it proves it.");
    bh_show_table(html, "Receipts", columns);
    for (size_t i = 0; i < bh_json_count(list); i++)
        receipts_put_row(html, bh_json_at(list, i));
    bh_show_table_end(html);
    receipts_put_next(html, call);
}
