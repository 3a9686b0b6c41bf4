#ifndef BH_WEB_PAGING_H
#define BH_WEB_PAGING_H

#include "web/panel.h"

/* Lists that come in pages: the API's reply has `next` where there is another, and `total`.  It is the
 * parameter `before` of the next page where the newest come first, else `after`. */
struct bh_paging {
    const char *path;           /* of the page */
    const char *const *filters; /* its parameters, which the next page keeps; up to NULL */
    const char *one, *many;     /* what is listed: "job", "jobs" */
    const char *order;          /* "by number" */
    bool newest;                /* come first, where the reader names no order */
};

/* The list's address with the reader's filters, from that `next` on ("": the first page). */
const char *bh_paging_address(const struct bh_paging *paging, const struct bh_page *page, const char *next);

/* The way to the first and the next page; and that with how many there are in all. */
void bh_paging_put_links(struct bh_html *html, const struct bh_panel_call *call,
                         const struct bh_paging *paging);
void bh_paging_put(struct bh_html *html, const struct bh_panel_call *call, const struct bh_paging *paging);

/* A link; `current`: it is where the reader is. */
void bh_paging_put_link(struct bh_html *html, const char *address, const char *text, bool current);

#endif
