#ifndef BH_WEB_HTML_H
#define BH_WEB_HTML_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* HTML, written so that nothing can leave its place.
 *
 * Elements are opened and closed by name, attributes follow their element at once, and
 * every text and value is escaped; there is no way to write markup from a text.  Names are
 * Bulkhead's own and are asserted: no event attributes, no style, nothing inside <script> or <style>.
 * Bytes that are no UTF-8, and control characters, become U+FFFD. */

enum { BH_HTML_DEPTH_MAX = 24 };

struct bh_html {
    struct bh_buf *out;
    const char *open[BH_HTML_DEPTH_MAX];
    uint32_t depth;
    bool in_tag; /* "<p" was written, its '>' not yet */
};

/* A writer onto `out`, with the document type. */
struct bh_html bh_html_begin(struct bh_buf *out);

/* Open an element: a name in small letters and digits.  Void ones (input, img, link, meta)
 * are never closed. */
void bh_html_open(struct bh_html *html, const char *element);

/* Give the element just opened an attribute; names are small letters and dashes.  href, src
 * and action take paths of this site ("/a"), src also pictures ("data:image/svg+xml;..."):
 * anything else is our bug. */
void bh_html_attr(struct bh_html *html, const char *name, const char *value);

/* The same without a value: required, hidden, checked. */
void bh_html_flag(struct bh_html *html, const char *name);

/* Write text into the innermost element. */
void bh_html_text(struct bh_html *html, const char *text);
void bh_html_part(struct bh_html *html, const char *text, size_t length); /* the first so many bytes */
void bh_html_u64(struct bh_html *html, uint64_t number);

/* Close the innermost element, which must be of this name. */
void bh_html_close(struct bh_html *html, const char *element);

/* An element with nothing but text; `class` may be NULL. */
void bh_html_element(struct bh_html *html, const char *element, const char *class, const char *text);

/* A link to another site, which learns nothing of this one; what is no https address becomes
 * text alone. */
void bh_html_link_away(struct bh_html *html, const char *url, const char *text);

/* All elements are closed. */
void bh_html_end(struct bh_html *html);

#endif
