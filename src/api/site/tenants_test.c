#include "api/site/tenants.h"

#include "api/fixture_test.h"
#include "base/json.h"
#include "base/test.h"

static struct fixture *f;
static struct received got;

#define SEND(...) bh_fixture_send(f, &(struct sent){ __VA_ARGS__ }, &got)

static int
open_site(void **state)
{
    f = bh_fixture_open();
    return 0;
}

static int
close_site(void **state)
{
    bh_fixture_close(f);
    return 0;
}

/* The names on all pages, with a bar between pages; "?" and the status where one is refused. */
static const char *
tenants_walk(uint32_t uid, const char *query, char names[256])
{
    char next[32] = "", full[128];
    struct bh_buf out;

    bh_buf_init_fixed(&out, names, 256);
    do {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        bh_json_value items;
        struct bh_err err;

        snprintf(full, sizeof full, "%s%s%s", query, next[0] ? "&after=" : "", next);
        SEND(BH_GET, "/v1/tenants", .query = full, .uid = uid);
        assert_int_equal(bh_json_parse(got.text, strlen(got.text), &json, &err), BH_OK);
        items = bh_json_get(bh_json_root(json), "items");
        if (got.status != 200)
            bh_buf_printf(&out, "?%u", got.status);
        if (next[0])
            bh_buf_puts(&out, "| ");
        for (size_t i = 0; i < bh_json_count(items); i++)
            bh_buf_printf(&out, "%s ", bh_json_text(bh_json_get(bh_json_at(items, i), "name"), ""));
        snprintf(next, sizeof next, "%s", bh_json_text(bh_json_get(bh_json_root(json), "next"), ""));
    } while (next[0]);
    return bh_buf_text(&out);
}

static void
pages_hold_each_once_by_path(void **state)
{
    static const struct {
        const char *name, *query, *expected;
        uint32_t uid;
    } cases[] = {
        { "all", "limit=100", "acme acme/speech acme/vision other ", CAROL },
        { "two by two", "limit=2", "acme acme/speech | acme/vision other ", CAROL },
        { "one by one", "limit=1", "acme | acme/speech | acme/vision | other ", CAROL },
        { "one and those below it", "tenant=acme&limit=2", "acme acme/speech | acme/vision ", CAROL },
        { "a developer's", "limit=1", "acme/vision ", ALICE },
        { "a viewer's, of a part", "limit=1&tenant=acme/speech", "acme/speech ", DAVE },
        { "another's is not there", "tenant=other", "?404", ALICE },
        { "nor what does not exist", "tenant=nobody", "?404", ALICE },
        { "behind one that the caller may not see", "limit=9&after=1", "acme/vision ", ALICE },
        { "behind the last", "limit=9&after=4", "", CAROL },
        { "no cursor", "limit=9&after=77", "?400", CAROL },
        { "a cursor beyond all numbers", "limit=9&after=4294967297", "?400", CAROL },
        { "no page", "limit=0", "?400", CAROL },
    };
    char names[256];

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_STR(cases[i].name, tenants_walk(cases[i].uid, cases[i].query, names), cases[i].expected);
    BH_CHECK_DONE();
}

static void
totals_count_all_pages(void **state)
{
    SEND(BH_GET, "/v1/tenants", .query = "limit=1", .uid = CAROL);
    BH_CHECK("the site's", strstr(got.text, "\"next\":\"1\",\"total\":4,\"whole_site\":true}"));
    SEND(BH_GET, "/v1/tenants", .query = "limit=1&tenant=acme", .uid = CAROL);
    BH_CHECK("of a part", strstr(got.text, "\"next\":\"1\",\"total\":3,\"whole_site\":true}"));
    SEND(BH_GET, "/v1/tenants", .query = "limit=1", .uid = ALICE);
    BH_CHECK("a developer's", strstr(got.text, "],\"total\":1}"));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(pages_hold_each_once_by_path, open_site, close_site),
    cmocka_unit_test_setup_teardown(totals_count_all_pages, open_site, close_site),
};
BH_TEST_MAIN(tests)
