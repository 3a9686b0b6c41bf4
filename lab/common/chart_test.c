/* Charts: XML that closes what it opens, whatever the names and the values are. */
#include "lab/common/chart.h"

#include <math.h>
#include <stdlib.h>

#include "base/test.h"

enum { LINES_MAX = 40, MANY = 100000 };

static char *
chart_text(const struct bh_chart *chart)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    bh_chart_write(out, chart);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* The tag at `text` (behind '<') is pushed or popped; the place behind its '>'. */
static const char *
step_tag(const char *text, char stack[][16], int *depth)
{
    size_t name = strcspn(text + (*text == '/'), " />\n");
    const char *end = strchr(text, '>');

    if (!end || name == 0 || name > 15)
        return NULL;
    if (*text == '/')
        return --*depth >= 0 && strncmp(stack[*depth], text + 1, name) == 0 && stack[*depth][name] == '\0'
                   ? end + 1
                   : NULL;
    if (end[-1] == '/')
        return end + 1;
    if (*depth == 8)
        return NULL;
    memcpy(stack[*depth], text, name);
    stack[(*depth)++][name] = '\0';
    return end + 1;
}

static bool
is_entity(const char *text)
{
    return strncmp(text, "&amp;", 5) == 0 || strncmp(text, "&lt;", 4) == 0 || strncmp(text, "&gt;", 4) == 0;
}

/* Enough of XML for what a chart writes: tags nest, entities are known, no controls. */
static bool
is_well_formed(const char *text)
{
    char stack[8][16];
    int depth = 0;

    while (text && *text) {
        if (*text == '<')
            text = step_tag(text + 1, stack, &depth);
        else if ((*text == '&' && !is_entity(text)) || ((unsigned char)*text < ' ' && *text != '\n'))
            return false;
        else
            text++;
    }
    return text && depth == 0;
}

static size_t
occurrences(const char *text, const char *what)
{
    size_t count = 0;

    for (text = strstr(text, what); text; text = strstr(text + 1, what))
        count++;
    return count;
}

static double up[] = { 0, 1, 2, 3 }, down[] = { 30, 20, 12.5, 0.1 }, flat[] = { 7, 7, 7, 7 };
static double holes[] = { 1, 2, 3, 4 }, huge[] = { -1e300, 0, 1e299, 1e300 };
static double tiny[] = { 0, 1e-310, 2e-310, 0 }, below[] = { -4, -3, -2, -1 };
static double narrow[] = { 94, 95.5, 97, 98 };

/* What must stand in the text, or must not. */
static const struct {
    const char *name;
    const double *y;
    uint32_t count;
    const char *has, *lacks;
} shapes[] = {
    { "no points", up, 0, ">0.2<", "class=\"l c0 d0\" d=\"M76" },
    { "one point", down, 1, "h0\">", "L" },
    { "four points", down, 4, ">30<", "nan" },
    { "constant", flat, 4, ">7<", "nan" },
    { "constant zero", tiny, 1, ">-1<", "nan" },
    { "differences too small to draw", tiny, 4, ">-1<", "nan" },
    { "huge", huge, 4, ">1e+300<", "inf" },
    { "below zero", below, 4, ">-4<", ">1</text>\n<path class=\"g\"" },
    { "a narrow band keeps its scale", narrow, 4, ">94<", ">0</text>\n<path class=\"g\"" },
    { "values that are none", holes, 4, "h0M", "nan" },
};

static void
shapes_are_drawn(void **state)
{
    holes[1] = NAN;
    holes[2] = INFINITY;
    for (size_t i = 0; i < BH_COUNT(shapes); i++) {
        struct bh_chart_line line = { shapes[i].name, up, shapes[i].y, shapes[i].count };
        struct bh_chart chart = { "title", "x", "y", &line, 1 };
        char *text = chart_text(&chart);

        BH_CHECK(shapes[i].name, is_well_formed(text));
        BH_CHECK(shapes[i].name, strstr(text, shapes[i].has) != NULL);
        BH_CHECK(shapes[i].name, strstr(strstr(text, "</style>"), shapes[i].lacks) == NULL);
        free(text);
    }
    BH_CHECK_DONE();
}

static void
no_lines_give_empty_axes(void **state)
{
    struct bh_chart chart = { "nothing", "x", "y", NULL, 0 };
    char *text = chart_text(&chart);

    assert_true(is_well_formed(text));
    assert_non_null(strstr(text, ">1</text>"));
    assert_null(strstr(text, "class=\"l "));
    free(text);
}

static const struct {
    const char *name, *has;
} names[] = {
    { "a<b>&\"c\"", ">a&lt;b&gt;&amp;\"c\"</text>" },
    { "</text><script>", "&lt;/text&gt;&lt;script&gt;" },
    { "bell\a and \xff", ">bell? and ?</text>" },
    { "Zürich", ">Zürich</text>" },
    { "no character \xef\xbf\xbf", ">no character ?</text>" },
    { "exactly twenty-four char", ">exactly twenty-four char</text>" },
    { "one more than twenty-four", ">one more than twenty-fo…</text>" },
    { "", "></text>" },
    { NULL, "></text>" },
};

static void
names_are_escaped(void **state)
{
    for (size_t i = 0; i < BH_COUNT(names); i++) {
        struct bh_chart_line line = { names[i].name, up, up, 4 };
        struct bh_chart chart = { names[i].name, names[i].name, names[i].name, &line, 1 };
        char *text = chart_text(&chart);

        BH_CHECK(names[i].has, is_well_formed(text));
        BH_CHECK(names[i].has, strstr(text, names[i].has) != NULL);
        BH_CHECK(names[i].has, strstr(text, "<script") == NULL);
        free(text);
    }
    BH_CHECK_DONE();
}

static void
many_lines_differ_and_have_room(void **state)
{
    struct bh_chart_line lines[LINES_MAX];
    struct bh_chart chart = { "many", "x", "y", lines, LINES_MAX };
    char *text;

    for (int i = 0; i < LINES_MAX; i++)
        lines[i] = (struct bh_chart_line){ "a line", up, down, 4 };
    text = chart_text(&chart);
    assert_true(is_well_formed(text));
    assert_int_equal(occurrences(text, "class=\"l c0 d0\""), 4); /* lines 0 and 32 */
    assert_int_equal(occurrences(text, "class=\"l c3 d2\""), 2);
    assert_non_null(strstr(text, "viewBox=\"0 0 960 882\""));
    free(text);
}

static void
long_lines_are_thinned_with_their_ends(void **state)
{
    double *x = calloc(MANY, sizeof *x);
    struct bh_chart_line line = { "long", x, x, MANY };
    struct bh_chart chart = { "long", "x", "y", &line, 1 };
    char *text, *again;

    assert_non_null(x);
    for (int i = 0; i < MANY; i++)
        x[i] = i;
    text = chart_text(&chart);
    again = chart_text(&chart);
    assert_true(is_well_formed(text));
    assert_true(strlen(text) < 60000);
    assert_int_equal(occurrences(text, "L"), 1999);
    assert_non_null(strstr(text, "L724.0 52.0\""));
    assert_string_equal(text, again);
    free(again);
    free(text);
    free(x);
}

/* The checker must find faults, or the tests above say nothing. */
static void
the_checker_finds_faults(void **state)
{
    assert_true(is_well_formed("<a><b c=\"1\"/>x &amp; y</a>"));
    assert_false(is_well_formed("<a><b></a></b>"));
    assert_false(is_well_formed("<a>x & y</a>"));
    assert_false(is_well_formed("<a>"));
    assert_false(is_well_formed("</a>"));
    assert_false(is_well_formed("<a>\a</a>"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(shapes_are_drawn),
    cmocka_unit_test(no_lines_give_empty_axes),
    cmocka_unit_test(names_are_escaped),
    cmocka_unit_test(many_lines_differ_and_have_room),
    cmocka_unit_test(long_lines_are_thinned_with_their_ends),
    cmocka_unit_test(the_checker_finds_faults),
};

BH_TEST_MAIN(tests)
