#ifndef BH_WEB_QR_H
#define BH_WEB_QR_H

#include "web/html.h"

/* Write a text as a picture that phones read: an <img> whose source is an SVG within the
 * page itself, so that no secret is in an address.  Nothing is written for a text that no
 * QR code can hold (above 1,800 bytes or so), or without memory; texts that matter are
 * beside it as text. */
void bh_qr_put(struct bh_html *html, const char *text, const char *description);

#endif
