#include "web/html.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

static char text[4096];

static const char *
paragraph(const char *content)
{
    struct bh_buf out;
    struct bh_html html;

    bh_buf_init_fixed(&out, text, sizeof text);
    html = bh_html_begin(&out);
    bh_html_open(&html, "p");
    bh_html_attr(&html, "title", content);
    bh_html_text(&html, content);
    bh_html_close(&html, "p");
    bh_html_end(&html);
    return bh_buf_text(&out);
}

/* What is text stays text, in an attribute and between tags. */
static void
escaped(void **state)
{
    static const struct {
        const char *text, *escaped;
    } rows[] = {
        { "plain", "plain" },
        { "", "" },
        { "<script>", "&lt;script&gt;" },
        { "a\" onclick=\"b", "a&quot; onclick=&quot;b" },
        { "a' b", "a&#39; b" },
        { "&lt;", "&amp;lt;" },
        { "--> ]]>", "--&gt; ]]&gt;" },
        { "Gr\xc3\xbc\xc3\x9f", "Gr\xc3\xbc\xc3\x9f" },
        { "a\x01z", "a\xef\xbf\xbdz" },
        { "a\x7fz", "a\xef\xbf\xbdz" },
        { "a\xffz", "a\xef\xbf\xbdz" },
        { "cut \xc3", "cut \xef\xbf\xbd" },
        { "overlong \xc0\xbc", "overlong \xef\xbf\xbd\xef\xbf\xbd" },
        { "hon\xef\xb8\x8f-svc \xe2\x80\xae", "hon\xef\xbf\xbd-svc \xef\xbf\xbd" },
        { "two\nlines\tand a tab", "two\nlines\tand a tab" },
    };
    char want[512];

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        snprintf(want, sizeof want, "<!doctype html>\n<p title=\"%s\">%s</p>\n", rows[i].escaped,
                 rows[i].escaped);
        BH_CHECK_STR(rows[i].text, paragraph(rows[i].text), want);
    }
    BH_CHECK_DONE();
}

static void
nested(void **state)
{
    struct bh_buf out;
    struct bh_html html;

    bh_buf_init_fixed(&out, text, sizeof text);
    html = bh_html_begin(&out);
    bh_html_open(&html, "form");
    bh_html_attr(&html, "action", "/signin");
    bh_html_open(&html, "input");
    bh_html_attr(&html, "name", "code");
    bh_html_flag(&html, "required");
    bh_html_open(&html, "p");
    bh_html_text(&html, "n ");
    bh_html_u64(&html, 17);
    bh_html_element(&html, "b", "x", "bold");
    bh_html_close(&html, "p");
    bh_html_close(&html, "form");
    bh_html_end(&html);
    BH_CHECK_STR("nested", bh_buf_text(&out),
                 "<!doctype html>\n<form action=\"/signin\">\n<input name=\"code\" required>"
                 "\n<p>n 17<b class=\"x\">bold</b></p>\n</form>\n");
    BH_CHECK_DONE();
}

static void
away(void **state)
{
    static const struct {
        const char *url, *html;
    } rows[] = {
        { "https://op.example/?a=1&b=\"2\"",
          "<!doctype html>\n<p><a rel=\"noreferrer\" href=\"https://op.example/?a=1&amp;b="
          "&quot;2&quot;\">out</a></p>\n" },
        { "http://op.example/", "<!doctype html>\n<p>out</p>\n" },
        { "javascript:alert(1)", "<!doctype html>\n<p>out</p>\n" },
        { "", "<!doctype html>\n<p>out</p>\n" },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_buf out;
        struct bh_html html;

        bh_buf_init_fixed(&out, text, sizeof text);
        html = bh_html_begin(&out);
        bh_html_open(&html, "p");
        bh_html_link_away(&html, rows[i].url, "out");
        bh_html_close(&html, "p");
        BH_CHECK_STR(rows[i].url, bh_buf_text(&out), rows[i].html);
    }
    BH_CHECK_DONE();
}

/* Does writing this, in a child, fail an assertion? */
static bool
aborts(const char *element, const char *name, const char *value)
{
    struct bh_buf out;
    struct bh_html html;
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        bh_buf_init_fixed(&out, text, sizeof text);
        html = bh_html_begin(&out);
        bh_html_open(&html, element);
        if (name)
            bh_html_attr(&html, name, value);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* Our own mistakes end the program before they reach a browser. */
static void
asserted(void **state)
{
    static const struct {
        const char *element, *name, *value;
    } rows[] = {
        { "P", NULL, NULL },
        { "p onclick", NULL, NULL },
        { "", NULL, NULL },
        { "p", "onclick", "x" },
        { "p", "style", "color: red" },
        { "p", "Title", "x" },
        { "p", "a=b", "x" },
        { "a", "href", "https://evil.example" },
        { "a", "href", "//evil.example" },
        { "a", "href", "/\\evil.example" },
        { "a", "href", "javascript:alert(1)" },
        { "a", "href", "data:image/svg+xml;base64,AA" },
        { "img", "src", "data:text/html;base64,AA" },
        { "form", "action", "signin" },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        if (!aborts(rows[i].element, rows[i].name, rows[i].value))
            BH_CHECK_STR("passes", rows[i].value ? rows[i].value : rows[i].element, "");
    BH_CHECK("what is right passes", !aborts("a", "href", "/account?x=1"));
    BH_CHECK("pictures, too", !aborts("img", "src", "data:image/svg+xml;base64,AA"));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(escaped),
    cmocka_unit_test(nested),
    cmocka_unit_test(away),
    cmocka_unit_test(asserted),
};

BH_TEST_MAIN(tests)
