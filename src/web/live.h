#ifndef BH_WEB_LIVE_H
#define BH_WEB_LIVE_H

#include "api/request/owner.h"
#include "web/panel.h"

/* Pages that stay up to date: GET /live?page=ADDRESS&have=VERSIONS (of the page's sections, as
 * "ID:VERSION,ID:VERSION"), server-sent events.
 *
 *   event "live"     {}: the page is kept up to date; at the beginning, and where nothing was sent for 15 s,
 *                    so that a page notices a service that has stopped
 *   event "panel"    {"html","id"}: the section as it is now; "" where the reader no longer sees it
 *   event "over"     the session has ended
 *   event "crowded"  {"text"}: why this page is not kept up to date
 *
 * The pages of one person take turns where they take long to render: others do not wait for them.
 * The last two are no statuses, which a script that reads events cannot see.  That a session has
 * ended by itself, or has other roles, is noticed at the next tick of the sensors, whatever the page shows.
 *
 * One thread renders, each panel of a page and session once for all that look at it, when something
 * changed that it shows; what came out as before is sent to none, so that a page tells of nothing that it
 * does not show.  Readers have no queue: each has the version of each panel that it was last sent, and is
 * sent the newest, however slow it is.  The thread rests four times as long as it rendered. */
struct bh_live;

struct bh_live_limits {
    uint32_t readers, readers_each; /* in all, of one person; 0: 4000 and 1200 */
    uint32_t pages_each;            /* different ones of one person, all of which are rendered; 0: 100 */
    bh_ns sensors;                  /* how often those are asked; 0: 5 s */
    bh_ns silence;                  /* after which a reader is sent "live" again; 0: 15 s */
};

/* `web` outlives it. */
BH_MUST_USE struct bh_live *bh_live_new(const struct bh_web *web, const struct bh_owner *owner,
                                        const struct bh_live_limits *limits);
/* End all streams, also those that come later. */
void bh_live_stop(struct bh_live *live);

/* All readers have gone. */
void bh_live_free(struct bh_live *live);

/* Answer with "over", or with "crowded" and this text, and end. */
void bh_live_refuse_over(struct bh_page *page);
void bh_live_refuse_crowded(struct bh_page *page, const char *text);

/* The page /live is bh_show_live (tables/pages.tbl): 404 where no such page is. */

#endif
