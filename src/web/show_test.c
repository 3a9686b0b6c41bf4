#include "web/show.h"

#include "base/test.h"

static char text[4096];

static const char *
sentence(const char *content)
{
    struct bh_buf out;
    struct bh_html html;

    bh_buf_init_fixed(&out, text, sizeof text);
    html = bh_html_begin(&out);
    bh_html_open(&html, "p");
    bh_show_sentence(&html, content);
    bh_html_close(&html, "p");
    bh_html_end(&html);
    return bh_buf_text(&out);
}

static void
what_stands_between_backticks_is_code(void **state)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {
        { "", "" },
        { "plain", "plain" },
        { "`bulkhead ps` lists them", "<code>bulkhead ps</code> lists them" },
        { "see `a` and `b`", "see <code>a</code> and <code>b</code>" },
        { "an odd ` stays", "an odd ` stays" },
        { "`a` and an odd `", "<code>a</code> and an odd `" },
        { "``", "<code></code>" },
        { "`<b>&` <i>", "<code>&lt;b&gt;&amp;</code> &lt;i&gt;" },
        { "`Gr\xc3\xbc\xc3\x9f`\xc3", "<code>Gr\xc3\xbc\xc3\x9f</code>\xef\xbf\xbd" },
        { "`cut \xc3`\xbc", "<code>cut \xef\xbf\xbd</code>\xef\xbf\xbd" },
    };
    char want[512];

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        snprintf(want, sizeof want, "<!doctype html>\n<p>%s</p>\n", rows[i].shown);
        BH_CHECK_STR(rows[i].text, sentence(rows[i].text), want);
    }
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_stands_between_backticks_is_code) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
