#include "web/qr.h"

#include <qrencode.h>

#include "base/attr.h"
#include "base/base64.h"

enum { QUIET = 4 /* ISO/IEC 18004: four modules of nothing around it */, BYTES_MAX = 1 << 18 };

BH_AUTO_DEFINE(QRcode *, QRcode_free)

/* Each run of dark modules of a row is one bar. */
static void
put_bars(struct bh_buf *svg, const QRcode *code)
{
    int width = code->width;

    for (int y = 0; y < width; y++)
        for (int x = 0, run; x < width; x += run) {
            run = 1;
            if (!(code->data[y * width + x] & 1))
                continue;
            while (x + run < width && code->data[y * width + x + run] & 1)
                run++;
            bh_buf_printf(svg, "M%d %dh%dv1H%dz", x + QUIET, y + QUIET, run, x + QUIET);
        }
}

static void
put_svg(struct bh_buf *svg, const QRcode *code)
{
    int side = code->width + 2 * QUIET;

    bh_buf_printf(svg,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                  "shape-rendering=\"crispEdges\"><path fill=\"#fff\" d=\"M0 0h%dv%dH0z\"/>"
                  "<path d=\"",
                  side, side, side, side);
    put_bars(svg, code);
    bh_buf_puts(svg, "\"/></svg>");
}

void
bh_qr_put(struct bh_html *html, const char *text, const char *description)
{
    BH_AUTO(bh_buf_fini) struct bh_buf svg = { .max = BYTES_MAX };
    BH_AUTO(bh_buf_fini) struct bh_buf source = { .max = BYTES_MAX };
    BH_AUTO(QRcode_free)
    QRcode *code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_M);

    if (!code)
        return;
    put_svg(&svg, code);
    bh_buf_puts(&source, "data:image/svg+xml;base64,");
    bh_base64_encode(&source, svg.bytes, svg.length);
    bh_html_open(html, "img");
    bh_html_attr(html, "class", "qr");
    bh_html_attr(html, "alt", description);
    bh_html_attr(html, "src", bh_buf_text(&source));
}
