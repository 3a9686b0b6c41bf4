#ifndef BH_WEB_PANEL_H
#define BH_WEB_PANEL_H

#include "base/time.h"
#include "web/page.h"

/* Panels, as tables/panels.tbl says: one question to the API and a function that renders its reply. */

/* The version of a section that is not there: of no bytes. */
#define BH_PANEL_ABSENT UINT64_C(0xcbf29ce484222325)

/* The version of these bytes: of equal ones the same (FNV-1a, 64 bits), and never 0. */
uint64_t bh_panel_version(const char *bytes, size_t length);

/* The pages that are made of them. */
enum bh_site_view {
#define BH_VIEW(view, path, section, title, command, extra) BH_SITE_VIEW_##view,
#define BH_PANEL(view, id, title, question, live, function)
#include "tables/panels.tbl"
#undef BH_VIEW
#undef BH_PANEL
    BH_SITE_VIEWS
};

/* What makes a panel worth asking for again; bits. */
enum bh_panel_live { BH_LIVE_NEVER = 0, BH_LIVE_JOBS = 1, BH_LIVE_SENSORS = 2, BH_LIVE_JOBS_SENSORS = 3 };

struct bh_panel_call {
    struct bh_page *page;
    const struct bh_page_frame *frame; /* for its forms */
    bh_json_value data;                /* the API's reply */
    const char *id;                    /* the page's variable part; "" */
    bh_ns now;
};

/* Writes what stands within the panel's section, below its heading; where it writes nothing, the panel is
 * left out. */
typedef void (*bh_panel_fn)(struct bh_html *html, const struct bh_panel_call *call);

#define BH_VIEW(view, path, section, title, command, extra)
#define BH_PANEL(view, id, title, question, live, function)                                                  \
    void function(struct bh_html *html, const struct bh_panel_call *call);
#include "tables/panels.tbl"
#undef BH_VIEW
#undef BH_PANEL

struct bh_panel_row {
    enum bh_site_view view;
    const char *id, *title, *question;
    enum bh_panel_live live;
    bh_panel_fn function;
};

/* The rows, up to one whose id is NULL. */
const struct bh_panel_row *bh_panel_rows(void);

/* The row of that page and id, or NULL. */
const struct bh_panel_row *bh_panel_find(enum bh_site_view view, const char *id);

/* What the API says to it on this visit; status 400: the question is too long. */
struct bh_api_response bh_panel_ask(struct bh_page *page, const struct bh_panel_row *panel);

/* Whether the caller sees the panel at all: what it may not ask for, or is not there, is left out.  Where the
 * reader asked for it by a parameter, that it is not there is said. */
bool bh_panel_is_seen(const struct bh_panel_row *panel, const struct bh_api_response *response);

/* Ask and write the section into `out`; nothing where the caller does not see it, and then BH_PANEL_ABSENT is
 * its version.  The API's status: 401 where the session has ended. */
uint32_t bh_panel_render(struct bh_page *page, const struct bh_panel_row *panel, struct bh_buf *out,
                         uint64_t *ret_version);

/* Write the panel's section; where the API did not answer, what it said.  Its version is
 * its last element. */
uint64_t bh_panel_put(struct bh_html *html, const struct bh_panel_call *call,
                      const struct bh_panel_row *panel, const struct bh_api_response *response);

#endif
