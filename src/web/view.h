#ifndef BH_WEB_VIEW_H
#define BH_WEB_VIEW_H

#include "web/panel.h"

/* Pages that are made of panels (tables/panels.tbl): all of them that the caller may see. */

/* Which page has this path; BH_SITE_VIEWS: none.  `ret_id` is its variable part, "" where it has none, in
 * the arena. */
enum bh_site_view bh_site_view_find(const char *path, struct bh_arena *arena, const char **ret_id);

/* Answer for the page, whose variable part is page->id: whole; with ?json=ID what the API says to that panel,
 * as it is; with ?panel=ID that panel's section alone. */
void bh_site_view_serve(struct bh_page *page, enum bh_site_view view);

#endif
