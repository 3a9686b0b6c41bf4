#include "identity/form.h"

#include "base/test.h"

static void
parsing(void **state)
{
    static const struct {
        const char *name, *text;
        enum bh_identity_fault fault;
        const char *a, *b; /* values of the parameters a and b */
    } rows[] = {
        { "two", "a=1&b=2", 0, "1", "2" },
        { "encoded", "%61=%20x+y&b=%C3%A9", 0, " x y", "\xc3\xa9" },
        { "no value", "a&b=", 0, "", "" },
        { "equals inside", "a=x=y", 0, "x=y", NULL },
        { "empty", "", 0, NULL, NULL },
        { "ampersand at the end", "a=1&", 0, "1", NULL },
        { "ampersand alone", "&", BH_FAULT_FORM, NULL, NULL },
        { "no name", "=1", BH_FAULT_FORM, NULL, NULL },
        { "twice", "a=1&a=2", BH_FAULT_FORM_DUPLICATE, NULL, NULL },
        { "twice the same", "a=1&b=2&a=1", BH_FAULT_FORM_DUPLICATE, NULL, NULL },
        { "twice, once encoded", "a=1&%61=2", BH_FAULT_FORM_DUPLICATE, NULL, NULL },
        { "unknown twice", "x=1&a=1&x=1", BH_FAULT_FORM_DUPLICATE, NULL, NULL },
        { "cut percent", "a=%4", BH_FAULT_FORM, NULL, NULL },
        { "percent at the end", "a=%", BH_FAULT_FORM, NULL, NULL },
        { "percent across", "a=%4&1=b", BH_FAULT_FORM, NULL, NULL },
        { "no hex", "a=%zz", BH_FAULT_FORM, NULL, NULL },
        { "NUL", "a=%00", BH_FAULT_FORM, NULL, NULL },
        { "line break", "a=%0d%0aSet-Cookie:x", BH_FAULT_FORM, NULL, NULL },
        { "no UTF-8", "a=%ff", BH_FAULT_FORM, NULL, NULL },
        { "overlong", "a=%c0%80", BH_FAULT_FORM, NULL, NULL },
    };
    struct bh_form form;

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        BH_CHECK_EQ(rows[i].name, bh_form_parse(rows[i].text, strlen(rows[i].text), &form), rows[i].fault);
        if (rows[i].fault)
            continue;
        BH_CHECK_EQ(rows[i].name, !bh_form_get(&form, "a"), !rows[i].a);
        BH_CHECK_EQ(rows[i].name, !bh_form_get(&form, "b"), !rows[i].b);
        if (rows[i].a)
            BH_CHECK_STR(rows[i].name, bh_form_get(&form, "a"), rows[i].a);
        if (rows[i].b)
            BH_CHECK_STR(rows[i].name, bh_form_get(&form, "b"), rows[i].b);
    }
    BH_CHECK_DONE();
}

static void
form_test_limits(void **state)
{
    char text[BH_FORM_BYTES_MAX + 1];
    struct bh_form form;
    struct bh_buf out;

    memset(text, 'a', sizeof text);
    BH_CHECK_EQ("longest", bh_form_parse(text, BH_FORM_BYTES_MAX - 1, &form), 0);
    BH_CHECK_EQ("longer", bh_form_parse(text, BH_FORM_BYTES_MAX, &form), BH_FAULT_FORM);
    bh_buf_init_fixed(&out, text, sizeof text);
    for (char c = 'A'; c < 'A' + BH_FORM_PAIRS_MAX; c++)
        bh_buf_printf(&out, "%%%02x&", (unsigned)c);
    BH_CHECK_EQ("most", bh_form_parse(text, out.length, &form), 0);
    BH_CHECK_EQ("most", form.count, BH_FORM_PAIRS_MAX);
    bh_buf_puts(&out, "zz=1");
    BH_CHECK_EQ("one more", bh_form_parse(text, out.length, &form), BH_FAULT_FORM);
    BH_CHECK_DONE();
}

static void
writing(void **state)
{
    char text[200];
    struct bh_buf out;

    bh_buf_init_fixed(&out, text, sizeof text);
    bh_form_put(&out, "a b", "1&2=3");
    bh_form_put(&out, "c", "\xc3\xa9~-._");
    BH_CHECK_STR("body", bh_buf_text(&out), "a%20b=1%262%3D3&c=%C3%A9~-._");
    bh_buf_clear(&out);
    bh_buf_puts(&out, "https://op.example/auth");
    bh_form_put(&out, "a", "1");
    bh_form_put(&out, "b", "2");
    BH_CHECK_STR("address", bh_buf_text(&out), "https://op.example/auth?a=1&b=2");
    bh_buf_clear(&out);
    bh_buf_puts(&out, "https://op.example/auth?x=y");
    bh_form_put(&out, "a", "1");
    BH_CHECK_STR("with a query", bh_buf_text(&out), "https://op.example/auth?x=y&a=1");
    BH_CHECK_DONE();
}

/* Values of several lines, for those who ask for them; names never are. */
static void
lines(void **state)
{
    static const struct {
        const char *name, *text, *value; /* NULL: refused */
    } rows[] = {
        { "as browsers end lines", "a=1%0D%0A2", "1\n2" },
        { "as others do", "a=1%0A2%09", "1\n2\t" },
        { "a lone return", "a=1%0D2", "12" },
        { "another control", "a=1%0B2", NULL },
        { "NUL", "a=1%002", NULL },
        { "in a name", "a%0A=1", NULL },
    };
    struct bh_form form;

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        enum bh_identity_fault fault = bh_form_parse_lines(rows[i].text, strlen(rows[i].text), &form);

        BH_CHECK_EQ(rows[i].name, fault, rows[i].value ? BH_FAULT_NONE : BH_FAULT_FORM);
        if (rows[i].value)
            BH_CHECK_STR(rows[i].name, bh_form_get(&form, "a"), rows[i].value);
        BH_CHECK_EQ(rows[i].name, bh_form_parse(rows[i].text, strlen(rows[i].text), &form), BH_FAULT_FORM);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(parsing),
    cmocka_unit_test(lines),
    cmocka_unit_test(form_test_limits),
    cmocka_unit_test(writing),
};

BH_TEST_MAIN(tests)
