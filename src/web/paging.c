#include "web/paging.h"

#include <string.h>

#include "web/show.h"

static void
paging_put_parameter(struct bh_buf *address, const char *name, const char *value)
{
    if (value[0])
        bh_form_put(address, name, value);
}

static const char *
paging_cursor_of(const struct bh_paging *paging, const struct bh_page *page)
{
    const char *order = bh_page_field(page, "order");
    bool newest = order[0] ? strcmp(order, "newest") == 0 : paging->newest;

    return newest ? "before" : "after";
}

const char *
bh_paging_address(const struct bh_paging *paging, const struct bh_page *page, const char *next)
{
    BH_AUTO(bh_buf_fini) struct bh_buf address = { .max = BH_FORM_BYTES_MAX };
    const char *text = NULL;

    bh_buf_puts(&address, paging->path);
    for (const char *const *name = paging->filters; *name; name++)
        paging_put_parameter(&address, *name, bh_page_field(page, *name));
    paging_put_parameter(&address, paging_cursor_of(paging, page), next);
    if (bh_buf_text(&address))
        text = bh_arena_strdup(page->request->arena, bh_buf_text(&address));
    return text ? text : paging->path;
}

void
bh_paging_put_link(struct bh_html *html, const char *address, const char *text, bool current)
{
    bh_html_open(html, "a");
    bh_html_attr(html, "href", address);
    if (current)
        bh_html_attr(html, "aria-current", "true");
    bh_html_text(html, text);
    bh_html_close(html, "a");
}

void
bh_paging_put_links(struct bh_html *html, const struct bh_panel_call *call, const struct bh_paging *paging)
{
    const char *next = bh_show_text_of(call->data, "next");

    if (bh_page_field(call->page, paging_cursor_of(paging, call->page))[0])
        bh_paging_put_link(html, bh_paging_address(paging, call->page, ""), "First page", false);
    if (next[0])
        bh_paging_put_link(html, bh_paging_address(paging, call->page, next), "Next page", false);
}

void
bh_paging_put(struct bh_html *html, const struct bh_panel_call *call, const struct bh_paging *paging)
{
    uint64_t total = bh_show_number_of(call->data, "total");

    bh_html_open(html, "p");
    bh_html_attr(html, "class", "shortcuts");
    bh_html_open(html, "span");
    bh_html_u64(html, total);
    bh_html_text(html, " ");
    bh_html_text(html, total == 1 ? paging->one : paging->many);
    bh_html_text(html, " in all, ");
    bh_html_text(html, paging->order);
    bh_html_close(html, "span");
    bh_paging_put_links(html, call, paging);
    bh_html_close(html, "p");
}
