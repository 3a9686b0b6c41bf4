#include "api/jobs/stream.h"

#include "api/fixture_test.h"
#include "base/json.h"
#include "base/test.h"

static struct fixture *f;
static struct received got;

#define SEND(...) bh_fixture_send(f, &(struct sent){ __VA_ARGS__ }, &got)

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int
open_streams(void **state)
{
    f = bh_fixture_open();
    snprintf(f->logs, sizeof f->logs, "/tmp/bh-stream-test-XXXXXX");
    return mkdtemp(f->logs) ? 0 : -1;
}

static int
close_streams(void **state)
{
    char path[96];

    snprintf(path, sizeof path, "%s/1.log", f->logs);
    unlink(path);
    rmdir(f->logs);
    bh_fixture_close(f);
    return 0;
}

static void
write_log(const void *bytes, size_t length)
{
    char path[96];
    FILE *file;

    snprintf(path, sizeof path, "%s/1.log", f->logs);
    file = fopen(path, "a");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

#define WRITE(text) write_log(text, sizeof(text) - 1)

static void
a_log_is_read_whole(void **state)
{
    bh_fixture_put_job(f, 1, 2, 1, "completed");
    WRITE("hello\n\x00\xffworld\n");
    SEND(BH_GET, "/v1/jobs/1/logs", .uid = ALICE);
    BH_CHECK_STR("type", got.content_type, "text/plain; charset=utf-8");
    BH_CHECK("as it is", memcmp(got.text, "hello\n\x00\xffworld\n", 14) == 0);
    SEND(BH_GET, "/v1/jobs/1/logs", .query = "offset=8", .uid = ALICE);
    BH_CHECK_STR("from an offset", got.text, "world\n");
    SEND(BH_GET, "/v1/jobs/1/logs", .query = "offset=800", .uid = ALICE);
    BH_CHECK_STR("past the end", got.text, "");
    SEND(BH_GET, "/v1/jobs/1/logs", .query = "member=1", .uid = ALICE);
    BH_CHECK_EQ("of a member that is not there", got.status, 404);
    BH_CHECK("is said", strstr(got.text, "job 1 has no member 1"));
    BH_CHECK("and which there are", strstr(got.text, "it has one member, 0"));
    SEND(BH_GET, "/v1/jobs/1/logs", .query = "member=64", .uid = ALICE);
    BH_CHECK_EQ("of a member that cannot be", got.status, 400);
    BH_CHECK_DONE();
}

static void
following_ends_with_the_exit_status(void **state)
{
    bh_fixture_put_job(f, 1, 2, 1, "completed");
    WRITE("line \"1\"\n");
    SEND(BH_GET, "/v1/jobs/1/logs", .query = "follow=true", .uid = ALICE);
    BH_CHECK_STR("type", got.content_type, "text/event-stream");
    BH_CHECK_STR("framing", got.text,
                 "event: log\nid: 9\ndata: {\"offset\":0,\"text\":\"line \\\"1\\\"\\n\"}\n\n"
                 "event: end\ndata: {\"cause\":\"exited\",\"exit_status\":3,"
                 "\"state\":\"completed\"}\n\n");
    BH_CHECK_DONE();
}

static void
bytes_that_are_no_text_stay_what_they_are(void **state)
{
    bh_fixture_put_job(f, 1, 2, 1, "completed");
    WRITE("a\xff\xfe");
    SEND(BH_GET, "/v1/jobs/1/logs", .query = "follow=true", .uid = ALICE);
    BH_CHECK("text first", strstr(got.text, "{\"offset\":0,\"text\":\"a\"}"));
    BH_CHECK("then bytes", strstr(got.text, "{\"base64\":\"//4=\",\"offset\":1}"));
    BH_CHECK_DONE();
}

static void
a_running_job_is_waited_for(void **state)
{
    bh_fixture_put_job(f, 1, 2, 1, "running");
    WRITE("cut \xc3"); /* the first half of a character */
    SEND(BH_GET, "/v1/jobs/1/logs", .query = "follow=true&offset=0", .uid = ALICE);
    BH_CHECK("what is whole", strstr(got.text, "{\"offset\":0,\"text\":\"cut \"}"));
    BH_CHECK("nothing of the half", !strstr(got.text, "base64"));
    BH_CHECK("a sign of life", strstr(got.text, "\n\n:\n\n"));
    BH_CHECK("no end", !strstr(got.text, "event: end"));
    BH_CHECK_DONE();
}

static void
watching_shows_what_may_be_seen(void **state)
{
    f->changes[0] = (struct bh_change){ 1, 11, 2, 1, "running", "none", 5 };
    f->changes[1] = (struct bh_change){ 2, 12, 4, 2, "running", "none", 6 };
    f->changes[2] = (struct bh_change){ 3, 13, 2, 1, "pending", "quota_sku", 7 };
    f->change_count = 3;
    SEND(BH_GET, "/v1/watch", .uid = ALICE);
    BH_CHECK("first", strstr(got.text, "event: change\nid: 1\ndata: {\"at_ns\":\"5\",\"job\":11,"
                                       "\"number\":1,\"reason\":\"none\",\"state\":\"running\","
                                       "\"tenant\":\"acme/vision\"}\n\n"));
    BH_CHECK("third", strstr(got.text, "\"job\":13"));
    BH_CHECK("not bob's", !strstr(got.text, "\"job\":12") && !strstr(got.text, "other"));
    SEND(BH_GET, "/v1/watch", .query = "job=13", .uid = ALICE);
    BH_CHECK("only one job", strstr(got.text, "\"job\":13") && !strstr(got.text, "\"job\":11"));
    SEND(BH_GET, "/v1/watch", .query = "tenant=other", .uid = CAROL);
    BH_CHECK("only one tenant", strstr(got.text, "\"job\":12") && !strstr(got.text, "\"job\":11"));
    BH_CHECK_DONE();
}

/* Pages of lines, from the end backward: lines end at "\n", "\r\n" and a lone "\r". */
static void
lines_are_listed_from_the_end(void **state)
{
    static const struct {
        const char *name, *query, *answer;
    } cases[] = {
        { "all", "",
          "{\"items\":[{\"offset\":0,\"text\":\"one\"},{\"offset\":4,\"text\":\"10%\"},"
          "{\"offset\":8,\"text\":\"20%\"},{\"offset\":13,\"text\":\"\"},"
          "{\"offset\":14,\"text\":\"\\u001b[31mx\xef\xbf\xbd\xef\xbf\xbdy\"},{\"offset\":24,\"text\":\"op\"}],"
          "\"end\":26,\"gang\":1,\"job\":1,\"member\":0,\"open\":true,\"size\":26,\"state\":\"completed\"}" },
        { "the last", "limit=1",
          "{\"items\":[{\"offset\":24,\"text\":\"op\"}],\"earlier\":true,\"end\":26,\"gang\":1,\"job\":1,"
          "\"member\":0,\"open\":true,\"size\":26,\"state\":\"completed\"}" },
        { "those before", "limit=2&end=14",
          "{\"items\":[{\"offset\":8,\"text\":\"20%\"},{\"offset\":13,\"text\":\"\"}],\"earlier\":true,\"end\":14,"
          "\"gang\":1,\"job\":1,\"member\":0,\"size\":26,\"state\":\"completed\"}" },
        { "nothing before the first", "end=0",
          "{\"items\":[],\"end\":0,\"gang\":1,\"job\":1,\"member\":0,\"size\":26,\"state\":\"completed\"}" },
        { "beyond the end", "end=999&limit=1",
          "{\"items\":[{\"offset\":24,\"text\":\"op\"}],\"earlier\":true,\"end\":26,\"gang\":1,\"job\":1,"
          "\"member\":0,\"open\":true,\"size\":26,\"state\":\"completed\"}" },
    };

    bh_fixture_put_job(f, 1, 2, 1, "completed");
    WRITE("one\n10%\r20%\r\n\n\x1b[31mx\x00\xffy\nop");
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        SEND(BH_GET, "/v1/jobs/1/log", .query = cases[i].query, .uid = ALICE);
        BH_CHECK_EQ(cases[i].name, got.status, 200);
        BH_CHECK_STR(cases[i].name, got.text, cases[i].answer);
    }
    BH_CHECK_DONE();
}

/* A window of 64 KiB is read: whole lines of it, and of a longer line its end. */
static void
lines_are_listed_of_a_window(void **state)
{
    static char line[100], lines[2000 * 100], endless[100000];

    bh_fixture_put_job(f, 1, 2, 1, "completed");
    memset(line, 'a', 99);
    line[99] = '\n';
    for (size_t i = 0; i < 2000; i++)
        memcpy(lines + i * 100, line, 100);
    write_log(lines, sizeof lines);
    SEND(BH_GET, "/v1/jobs/1/log", .query = "limit=10000", .uid = ALICE);
    BH_CHECK("begins with a line", strstr(got.text, "{\"items\":[{\"offset\":134500,") == got.text);
    BH_CHECK("and says that there is more", strstr(got.text, "\"earlier\":true,\"end\":200000"));
    memset(endless, 'b', sizeof endless);
    write_log(endless, sizeof endless);
    SEND(BH_GET, "/v1/jobs/1/log", .uid = ALICE);
    BH_CHECK("the end of a long line",
             strstr(got.text, "{\"items\":[{\"offset\":234464,\"text\":\"bbb") == got.text);
    BH_CHECK_DONE();
}

static void
lines_are_refused_as_the_output_is(void **state)
{
    bh_fixture_put_job(f, 1, 2, 1, "completed");
    SEND(BH_GET, "/v1/jobs/1/log", .uid = BOB);
    BH_CHECK_EQ("another tenant's", got.status, 404);
    SEND(BH_GET, "/v1/jobs/1/log", .uid = DAVE);
    BH_CHECK_EQ("for a viewer", got.status, 403);
    SEND(BH_GET, "/v1/jobs/1/log", .query = "member=1", .uid = ALICE);
    BH_CHECK_EQ("of a member that is not there", got.status, 404);
    SEND(BH_GET, "/v1/jobs/1/log", .uid = ALICE);
    BH_CHECK("none yet", got.status == 200 && strstr(got.text, "{\"items\":[],\"end\":0"));
    BH_CHECK_DONE();
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_streams, close_streams)
    const struct CMUnitTest tests[] = {
        TEST(a_log_is_read_whole),
        TEST(following_ends_with_the_exit_status),
        TEST(bytes_that_are_no_text_stay_what_they_are),
        TEST(a_running_job_is_waited_for),
        TEST(watching_shows_what_may_be_seen),
        TEST(lines_are_listed_from_the_end),
        TEST(lines_are_listed_of_a_window),
        TEST(lines_are_refused_as_the_output_is),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
