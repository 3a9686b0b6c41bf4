#include "web/qr.h"

#include <stdlib.h>

#include <qrencode.h>

#include "base/base64.h"
#include "base/test.h"

enum { QUIET = 4, SIDE_MAX = 185 };

static uint8_t drawn[SIDE_MAX][SIDE_MAX];

/* Draw the bars of the SVG: "Mx yhNv1Hxz", N modules to the right. */
static void
qr_test_draw(const char *svg)
{
    const char *at = strstr(svg, "/><path d=\"");

    memset(drawn, 0, sizeof drawn);
    assert_non_null(at);
    for (at = strchr(at, 'M'); at && *at == 'M';) {
        int x, y, run, back, length = 0;

        assert_int_equal(sscanf(at, "M%d %dh%dv1H%dz%n", &x, &y, &run, &back, &length), 4);
        assert_true(length > 0 && x == back && x >= QUIET && y >= QUIET && y < SIDE_MAX);
        for (int i = 0; i < run && x + i < SIDE_MAX; i++)
            drawn[y][x + i] = 1;
        at += length;
    }
}

/* What is drawn is the code that libqrencode makes, with nothing around it. */
static void
same_as_the_code(void **state)
{
    static const char text[] = "otpauth://totp/Example:ada?secret=ABCDEFGH&issuer=Example";
    static char memory[1 << 17];
    QRcode *code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_M);
    struct bh_html html;
    struct bh_buf out, svg;
    const char *source;
    int wrong = 0;

    bh_buf_init(&out, 1 << 17);
    html = bh_html_begin(&out);
    bh_html_open(&html, "p");
    bh_qr_put(&html, text, "a \"code\"");
    bh_html_close(&html, "p");
    source = strstr(bh_buf_text(&out), "src=\"data:image/svg+xml;base64,");
    BH_CHECK("described", strstr(bh_buf_text(&out), "alt=\"a &quot;code&quot;\""));
    assert_non_null(source);
    source += strlen("src=\"data:image/svg+xml;base64,");
    bh_buf_init_fixed(&svg, memory, sizeof memory);
    BH_CHECK("base 64", bh_base64_decode(&svg, source, strcspn(source, "\"")));
    qr_test_draw(bh_buf_text(&svg));
    for (int y = 0; y < SIDE_MAX; y++)
        for (int x = 0; x < SIDE_MAX; x++) {
            int u = x - QUIET, v = y - QUIET;
            bool inside = u >= 0 && v >= 0 && u < code->width && v < code->width;

            wrong += drawn[y][x] != (inside ? code->data[v * code->width + u] & 1 : 0);
        }
    BH_CHECK_EQ("modules that differ", wrong, 0);
    QRcode_free(code);
    bh_buf_fini(&out);
    BH_CHECK_DONE();
}

/* A text that fits in no code leaves the page without a picture. */
static void
too_long(void **state)
{
    char *text = malloc(4001);
    struct bh_html html;
    struct bh_buf out;

    assert_non_null(text);
    memset(text, 'a', 4000);
    text[4000] = '\0';
    bh_buf_init(&out, 1 << 17);
    html = bh_html_begin(&out);
    bh_html_open(&html, "p");
    bh_qr_put(&html, text, "x");
    bh_html_close(&html, "p");
    BH_CHECK_STR("nothing", bh_buf_text(&out), "<!doctype html>\n<p></p>\n");
    bh_buf_fini(&out);
    free(text);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(same_as_the_code),
    cmocka_unit_test(too_long),
};

BH_TEST_MAIN(tests)
