#include "policy/operations.h"

#include "base/attr.h"
#include "base/test.h"
#include "policy/authz.h"

static void
every_operation_is_whole(void **state)
{
    for (int op = 0; op < BH_OPERATIONS; op++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)op);

        BH_CHECK_EQ(row->name, row->id, op);
        BH_CHECK(row->name, row->path[0] == '/');
        BH_CHECK(row->name, row->summary[0]);
        /* none can lack a permission but those that say so */
        if (row->scope != BH_SCOPE_NOBODY && row->scope != BH_SCOPE_OWN && op != BH_OP_WHOAMI)
            BH_CHECK(row->name, strcmp(bh_authz_role_for(row->verb), "root") != 0);
        BH_CHECK(row->name, row->scope != BH_SCOPE_OWN || row->verb[0]);
        BH_CHECK(row->name, row->scope != BH_SCOPE_OWN || bh_operation_of_accounts(row->id));
        /* what has a body but changes nothing is POSTed too */
        BH_CHECK_EQ(row->name, row->kind == BH_OPERATION_MUTATE,
                    row->method != BH_GET && op != BH_OP_WHATIF && op != BH_OP_POLICY_TEST
                        && op != BH_OP_LAYOUT_DIFF);
        BH_CHECK_EQ(row->name, strstr(row->path, "{id}") != NULL && row->scope == BH_SCOPE_JOB,
                    row->scope == BH_SCOPE_JOB);
        for (int other = 0; other < op; other++) {
            const struct bh_operation_row *before = bh_operation_get((enum bh_operation)other);

            BH_CHECK(row->name, before->method != row->method || strcmp(before->path, row->path) != 0);
        }
    }
    BH_CHECK("submit has a body", bh_operation_get(BH_OP_JOB_SUBMIT)->has_body);
    BH_CHECK("cancel has none", !bh_operation_get(BH_OP_JOB_CANCEL)->has_body);
    BH_CHECK_DONE();
}

static void
paths_match(void **state)
{
    static const struct {
        const char *pattern, *path, *id;
        bool matches;
    } cases[] = {
        { "/v1/jobs", "/v1/jobs", NULL, true },
        { "/v1/jobs", "/v1/jobs/", NULL, false },
        { "/v1/jobs", "/v1/job", NULL, false },
        { "/v1/jobs/{id}", "/v1/jobs/12", "12", true },
        { "/v1/jobs/{id}", "/v1/jobs/", NULL, false },
        { "/v1/jobs/{id}", "/v1/jobs/12/why", NULL, false },
        { "/v1/jobs/{id}/why", "/v1/jobs/12/why", "12", true },
        { "/v1/jobs/{id}/why", "/v1/jobs/12/whyy", NULL, false },
        { "/v1/jobs/{id}/why", "/v1/jobs/12", NULL, false },
        { "/v1/jobs/{id}", "/v1/jobs/..", "..", true },
        { "/v1/tile/{rest}", "/v1/tile/0/x001/067", "0/x001/067", true },
        { "/v1/tile/{rest}", "/v1/tile/", NULL, false },
        { "/v1/tile/{rest}", "/v1/tiles", NULL, false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_path_match match = { 0 };
        char id[32] = "";

        BH_CHECK_EQ(cases[i].path, bh_path_matches(cases[i].pattern, cases[i].path, &match),
                    cases[i].matches);
        if (match.id)
            snprintf(id, sizeof id, "%.*s", (int)match.id_length, match.id);
        BH_CHECK_STR(cases[i].path, id, cases[i].id ? cases[i].id : "");
    }
    BH_CHECK_DONE();
}

static void
words_are_whole(void **state)
{
    static const struct {
        const char *words, *word;
        bool found;
        /* clang-format off */
    } cases[] = {
        { "a bc d", "bc", true }, { "a bc d", "b", false },  { "a bc d", "c", false },
        { "a bc d", "a", true },  { "a bc d", "d", true },   { "a bc d", "", false },
        { "", "a", false },       { "a  b", "b", true },     { "a bc", "a bc", false },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].word, bh_words_contain(cases[i].words, cases[i].word), cases[i].found);
    BH_CHECK("tenant", bh_operation_has_parameter(bh_operation_get(BH_OP_JOB_LIST), "tenant"));
    BH_CHECK("no other", !bh_operation_has_parameter(bh_operation_get(BH_OP_JOB_GET), "tenant"));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_operation_is_whole),
    cmocka_unit_test(paths_match),
    cmocka_unit_test(words_are_whole),
};
BH_TEST_MAIN(tests)
