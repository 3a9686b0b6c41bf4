#include "audit/job_status.h"

#include <string.h>

#include "base/test.h"
#include "ports/crypto.h"

static struct bh_slice
slice_of(const char *text)
{
    return (struct bh_slice){ text, strlen(text) };
}

static void
reads_what_it_writes(void **state)
{
    static const struct {
        struct bh_job_status state;
        const char *text;
    } rows[] = {
        { { .job = 7, .state = "starting" }, "[{\"job\":7,\"state\":\"starting\"}]" },
        { { .job = 7, .started_ns = 5, .state = "running" },
          "[{\"job\":7,\"started\":\"5\",\"state\":\"running\"}]" },
        { { .job = 7, .row = { 0x5e, [31] = 1 }, .state = "starting" },
          "[{\"job\":7,\"row\":\"5e00000000000000000000000000000000000000000000000000000000000001\","
          "\"state\":\"starting\"}]" },
        { { .job = UINT64_MAX, .ended_ns = 9, .exit_status = 3, .state = "failed", .cause = "exited" },
          "[{\"cause\":\"exited\",\"ended\":\"9\",\"job\":\"18446744073709551615\",\"state\":\"failed\","
          "\"status\":3}]" },
        { { .job = 8, .ended_ns = 9, .exit_status = -2, .state = "failed", .cause = "none" },
          "[{\"cause\":\"none\",\"ended\":\"9\",\"job\":8,\"state\":\"failed\",\"status\":-2}]" },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_job_status read;
        char memory[BH_JOB_STATUS_ITEM_MAX];
        struct bh_buf list;
        size_t cursor = 0;

        bh_buf_init_fixed(&list, memory, sizeof memory);
        bh_buf_putc(&list, '[');
        bh_job_status_put(&list, &rows[i].state);
        bh_buf_putc(&list, ']');
        BH_CHECK_STR("written", bh_buf_text(&list), rows[i].text);
        BH_CHECK("read", bh_job_status_next(slice_of(rows[i].text), &cursor, &read));
        BH_CHECK_EQ("job", read.job, rows[i].state.job);
        BH_CHECK_EQ("started", read.started_ns, rows[i].state.started_ns);
        BH_CHECK_EQ("ended", read.ended_ns, rows[i].state.ended_ns);
        BH_CHECK_EQ("status", read.exit_status, rows[i].state.exit_status);
        BH_CHECK_STR("state", read.state, rows[i].state.state);
        BH_CHECK_STR("cause", read.cause, rows[i].state.cause);
        BH_CHECK("row", memcmp(read.row, rows[i].state.row, sizeof read.row) == 0);
        BH_CHECK_EQ("has a row", bh_job_status_has_row(slice_of(rows[i].text)), rows[i].state.row[0] != 0);
    }
    BH_CHECK_DONE();
}

static void
job_status_refuses(void **state)
{
    static const struct {
        const char *what, *text;
        bool good;
    } rows[] = {
        { "two", "[{\"job\":7,\"state\":\"a\"},{\"job\":8,\"state\":\"b\"}]", true },
        { "none", "[]", false },
        { "no state", "[{\"job\":7}]", false },
        { "no job", "[{\"state\":\"a\"}]", false },
        { "a status of 0", "[{\"job\":7,\"state\":\"a\",\"status\":0}]", false },
        { "a cause without an end", "[{\"cause\":\"exited\",\"job\":7,\"state\":\"a\"}]", false },
        { "an end without a cause", "[{\"cause\":\"\",\"ended\":\"9\",\"job\":7,\"state\":\"a\"}]", false },
        { "an end that says when it started",
          "[{\"cause\":\"x\",\"ended\":\"9\",\"job\":7,\"started\":\"5\",\"state\":\"a\"}]", false },
        { "too long a state", "[{\"job\":7,\"state\":\"aaaaaaaaaaaaaaaaaaaaaaaa\"}]", false },
        { "a row that is no digest", "[{\"job\":7,\"row\":\"5e\",\"state\":\"a\"}]", false },
        { "no word", "[{\"job\":7,\"state\":\"a b\"}]", false },
        { "another order", "[{\"state\":\"a\",\"job\":7}]", false },
        { "too large a status", "[{\"job\":7,\"state\":\"a\",\"status\":2147483648}]", false },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        BH_CHECK_EQ(rows[i].what, bh_job_status_is_list(slice_of(rows[i].text)), rows[i].good);
    BH_CHECK_DONE();
}

/* Computed with Python's hashlib and json, from the header's words. */
static void
digests_as_others_do(void **state)
{
    static const struct {
        struct bh_job_placement place;
        const char *digest;
    } rows[] = {
        { { 0, 0, "", NULL, "" }, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" },
        { { 7, 1, "vm", "GPU-3f2a 1g.10gb@6", "C" },
          "6df99ca96604da6d171834dd9b0713919c233a31e7a62d6d805e456d45325ab5" },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        uint8_t digest[32];
        char digits[65];
        struct bh_buf text;

        bh_job_placement_digest(&bh_crypto_openssl, &rows[i].place, digest);
        bh_buf_init_fixed(&text, digits, sizeof digits);
        bh_buf_put_hex(&text, digest, sizeof digest);
        BH_CHECK_STR(rows[i].digest, bh_buf_text(&text), rows[i].digest);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(reads_what_it_writes),
    cmocka_unit_test(job_status_refuses),
    cmocka_unit_test(digests_as_others_do),
};
BH_TEST_MAIN(tests)
