#ifndef BH_WEB_HEADERS_H
#define BH_WEB_HEADERS_H

#include "ports/http.h"
#include "web/assets.h"

/* The headers of what browsers show, and replies that are no page. */

/* Make `reply` an HTML page: strict content policy, no frames, no referrer for others,
 * no other window's hold on it; and https for ever where it came so. */
void bh_page_headers(struct bh_reply *reply, uint32_t status, bool https);

/* The same for a page whose form may be sent on to a program on the browser's own machine,
 * at that port of 127.0.0.1; the text lives in the arena. */
void bh_page_headers_loopback(struct bh_reply *reply, struct bh_arena *arena, uint16_t port);

/* Add what a reply of the API needs that a browser shows by itself: it is for no other site, and runs
 * nothing. */
void bh_data_headers(struct bh_reply *reply);

/* Send the browser on to a path of this site, with GET; or elsewhere, where that is meant.
 */
void bh_redirect(struct bh_reply *reply, const char *path);

/* Answer with an asset, which browsers may keep. */
void bh_asset_reply(struct bh_reply *reply, const struct bh_asset *asset);

#endif
