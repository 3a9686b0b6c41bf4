#ifndef BH_WEB_LIVE_TEXT_H
#define BH_WEB_LIVE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* An event as it is sent, shared by all that it is sent to; the caller's lock guards `uses`. */
struct bh_live_text {
    uint32_t uses;
    size_t length;
    char bytes[];
};

/* Event "panel" with the section of that id, used once.  NULL: it is too long. */
struct bh_live_text *bh_live_text_of_panel(const char *id, const char *html);

/* One use less; the last one frees it.  NULL is fine. */
void bh_live_text_put_back(struct bh_live_text *text);

#endif
