#include "api/request/answer.h"

#include "base/test.h"

static const struct {
    const char *name;
    struct bh_command command;
    struct bh_answer answer;
    bool keep;
    uint32_t status;
    const char *body;
} cases[] = {
    { "submitted",
      { .op = BH_OP_JOB_SUBMIT },
      { .job = { 7 }, .state = BH_JOB_PENDING, .reason = { .code = BH_REASON_BEHIND } },
      false,
      201,
      "{\"id\":7,\"reason\":\"behind\",\"state\":\"pending\"}" },
    { "dry run",
      { .op = BH_OP_JOB_SUBMIT, .dry_run = true },
      { .state = BH_JOB_STARTING },
      false,
      200,
      "{\"dry_run\":true,\"reason\":\"none\",\"state\":\"starting\"}" },
    { "cancelled",
      { .op = BH_OP_JOB_CANCEL },
      { .job = { 7 }, .state = BH_JOB_CANCELLED },
      false,
      200,
      "{\"id\":7,\"reason\":\"none\",\"state\":\"cancelled\"}" },
    { "token, shown",
      { .op = BH_OP_TOKEN_CREATE },
      { .token_id = "abc", .secret = "bh_abc_secret" },
      false,
      201,
      "{\"id\":\"abc\",\"token\":\"bh_abc_secret\"}" },
    { "token, kept for repeats",
      { .op = BH_OP_TOKEN_CREATE },
      { .token_id = "abc", .secret = "bh_abc_secret" },
      true,
      201,
      "{\"id\":\"abc\"}" },
    { "revoked",
      { .op = BH_OP_TOKEN_REVOKE, .token_id = "abc" },
      { .secret = NULL },
      false,
      200,
      "{\"id\":\"abc\",\"revoked\":true}" },
    { "site",
      { .op = BH_OP_SITE_APPLY },
      { .changes = { "a\nb\n", 2, 2, { 0 } }, .removes = "c\n", .warnings = "d\n", .revision = 9 },
      false,
      200,
      "{\"change_count\":2,\"changes\":[\"a\",\"b\"],\"dry_run\":false,\"removes\":[\"c\"],"
      "\"revision\":9,\"warnings\":[\"d\"]}" },
    { "site, more than is listed",
      { .op = BH_OP_SITE_APPLY },
      { .changes = { "a\n", 2, 1, { 0xab } } },
      false,
      200,
      "{\"change_count\":2,\"changes\":[\"a\"],\"changes_sha256\":\"ab000000000000000000000000"
      "00000000000000000000000000000000000000\",\"dry_run\":false,\"removes\":[],\"revision\":0,\"warnings\":[]}" },
    { "site unchanged",
      { .op = BH_OP_SITE_APPLY, .dry_run = true },
      { .secret = NULL },
      false,
      200,
      "{\"change_count\":0,\"changes\":[],\"dry_run\":true,\"removes\":[],\"revision\":0,\"warnings\":[]}" },
};

static void
answers_are_written_from_what_the_owner_says(void **state)
{
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        char memory[256];
        struct bh_buf out;

        bh_buf_init_fixed(&out, memory, sizeof memory);
        bh_answer_encode(&out, &cases[i].command, &cases[i].answer, cases[i].keep);
        BH_CHECK_STR(cases[i].name, bh_buf_text(&out), cases[i].body);
        BH_CHECK_EQ(cases[i].name, bh_answer_status(&cases[i].command), cases[i].status);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(answers_are_written_from_what_the_owner_says),
};
BH_TEST_MAIN(tests)
