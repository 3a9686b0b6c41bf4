#include "cli/client/client.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "base/time.h"
#include "cli/command/cli.h"
#include "cli/doctor/doctor.h"
#include "cli/jobs/jobspec.h"

/* A server on a unix socket that gives one canned answer and keeps the request. */
struct server {
    char folder[64], path[96], request[65536];
    const char *answer; /* to the last request, */
    const char *first;  /* and to the one before it; NULL: there is one */
    size_t step;        /* bytes written at once */
    int listener;
    pthread_t thread;
};

static size_t
read_request(int fd, char *text, size_t size)
{
    size_t held = 0;
    ssize_t got;

    while (held < size - 1 && (got = read(fd, text + held, size - 1 - held)) > 0) {
        char *end;

        held += (size_t)got;
        text[held] = '\0';
        end = strstr(text, "\r\n\r\n");
        if (end && (!strstr(text, "Content-Length") || strlen(end + 4) > 0))
            break;
    }
    return held;
}

static void
client_test_send(struct server *server, const char *answer)
{
    int fd = accept(server->listener, NULL, NULL);
    size_t length = strlen(answer);
    struct bh_err unread;

    read_request(fd, server->request, sizeof server->request);
    for (size_t at = 0; at < length; at += server->step) {
        size_t piece = length - at < server->step ? length - at : server->step;

        if (bh_fd_write_all(fd, answer + at, piece, &unread) != BH_OK)
            break;
        if (server->step < 100)
            bh_time_sleep(BH_NS_PER_MS / 2); /* separate reads at the other end */
    }
    close(fd);
}

static void *
client_test_serve(void *self)
{
    struct server *server = self;

    if (server->first)
        client_test_send(server, server->first);
    client_test_send(server, server->answer);
    return NULL;
}

static void
start_two(struct server *server, const char *first, const char *answer, size_t step)
{
    struct bh_err err;

    *server = (struct server){
        .folder = "/tmp/bulkhead-cli-test.XXXXXX", .answer = answer, .first = first, .step = step
    };
    assert_non_null(mkdtemp(server->folder));
    snprintf(server->path, sizeof server->path, "%s/s", server->folder);
    assert_int_equal(bh_unix_listen(server->path, 0600, &server->listener, &err), BH_OK);
    assert_int_equal(pthread_create(&server->thread, NULL, client_test_serve, server), 0);
}

static void
client_test_start(struct server *server, const char *answer, size_t step)
{
    start_two(server, NULL, answer, step);
}

static void
client_test_stop(struct server *server)
{
    pthread_join(server->thread, NULL);
    close(server->listener);
    unlink(server->path);
    rmdir(server->folder);
}

#define JSON(status, length, body)                                                                           \
    "HTTP/1.1 " status "\r\nContent-Type: application/json\r\nContent-Length: " length "\r\n\r\n" body

static const struct {
    const char *name, *answer;
    bh_rc rc;
    const char *text; /* of "a", or the message */
    const char *hint;
} answers[] = {
    { "good", JSON("200 OK", "9", "{\"a\":\"b\"}"), BH_OK, "b", "" },
    { "chunked",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n5\r\n:\"b\"}\r\n0\r\n\r\n", BH_OK,
      "b", "" },
    { "denied",
      JSON("403 Forbidden", "69",
           "{\"error\":{\"code\":\"denied\",\"message\":\"no\",\"next\":\"ask an admin\"}}     "),
      BH_DENIED, "no", "ask an admin" },
    { "over quota", JSON("422 X", "52", "{\"error\":{\"code\":\"over_quota\",\"message\":\"too much\"}}"),
      BH_QUOTA, "too much", "" },
    { "unknown code", JSON("418 X", "42", "{\"error\":{\"code\":\"teapot\",\"message\":\"x\"}}  "), BH_BUG,
      "x", "" },
    { "an error that is no JSON", JSON("500 X", "4", "oops"), BH_UNAVAILABLE,
      "the server answered with HTTP status 500", "" },
    { "no HTTP", "hello\r\n", BH_IO, "the server's reply is not HTTP/1.1: bad status line", "" },
    { "closed at once", "", BH_UNCERTAIN, "the server closed the connection before the end of its reply",
      "check with bulkhead ps before you try again" },
    { "cut off", JSON("200 OK", "90", "{\"a\":\"b\"}"), BH_UNCERTAIN,
      "the server closed the connection before the end of its reply",
      "check with bulkhead ps before you try again" },
};

static void
test_answers(void **state)
{
    static const size_t steps[] = { 1, 7, 65536 };

    for (size_t i = 0; i < BH_COUNT(answers); i++)
        for (size_t s = 0; s < BH_COUNT(steps); s++) {
            static struct server server;
            BH_AUTO(bh_json_free) struct bh_json *json = NULL;
            struct bh_http_request request = { .method = "GET", .path = "/v1/x" };
            struct bh_client client;
            struct bh_err err = { .rc = BH_OK };
            bh_rc rc;

            client_test_start(&server, answers[i].answer, steps[s]);
            client = (struct bh_client){ .socket = server.path };
            rc = bh_client_json(&client, &request, &json, &err);
            client_test_stop(&server);
            BH_CHECK_EQ(answers[i].name, rc, answers[i].rc);
            if (rc == BH_OK)
                BH_CHECK_STR(answers[i].name, bh_json_text(bh_json_get(bh_json_root(json), "a"), ""),
                             answers[i].text);
            else
                BH_CHECK_STR(answers[i].name, err.msg, answers[i].text);
            if (rc != BH_OK)
                BH_CHECK_STR(answers[i].name, err.hint, answers[i].hint);
        }
    BH_CHECK_DONE();
}

/* A client that gets 429 with Retry-After tries again at that time; without it, it does not. */
static void
test_patience(void **state)
{
    static const char later[] = "HTTP/1.1 429 X\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\nno";
    struct bh_http_request request = { .method = "POST", .path = "/v1/x" };
    static struct server server;
    struct bh_client client;
    struct bh_err err = { .rc = BH_OK };
    struct bh_json *json = NULL;
    bh_ns began = bh_time_monotonic();

    start_two(&server, later, JSON("200 OK", "9", "{\"a\":\"b\"}"), 65536);
    client = (struct bh_client){ .socket = server.path };
    BH_CHECK_EQ("again", bh_client_json(&client, &request, &json, &err), BH_OK);
    client_test_stop(&server);
    bh_json_free(json);
    BH_CHECK("not before its time", bh_time_monotonic() - began >= BH_NS_PER_S);
    client_test_start(&server, JSON("429 X", "37", "{\"error\":{\"code\":\"too_many\"}}        "), 65536);
    client = (struct bh_client){ .socket = server.path };
    BH_CHECK_EQ("not told when", bh_client_json(&client, &request, &json, &err), BH_TOO_MANY);
    client_test_stop(&server);
    bh_json_free(json);
    BH_CHECK_DONE();
}

static void
test_nobody(void **state)
{
    struct bh_http_request request = { .method = "GET", .path = "/" };
    struct bh_client client = { .socket = "/nonexistent/socket" };
    struct bh_json *json;
    struct bh_err err;

    assert_int_equal(bh_client_json(&client, &request, &json, &err), BH_UNAVAILABLE);
    assert_int_equal(bh_rc_exit(err.rc), 8);
    assert_non_null(strstr(err.msg, "/nonexistent/socket"));
}

/* Parse a command line into a bh_cli. */
static void
make_cli(char *line, struct bh_args *args, struct bh_cli *cli)
{
    char *words[16] = { NULL }, *rest;
    int count = 0;
    struct bh_err err;

    for (char *word = strtok_r(line, " ", &rest); word && count < 15; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    if (bh_args_parse(count, words, args, &err) != BH_OK)
        fail_msg("%s", err.msg);
    *cli = (struct bh_cli){ .args = args, .arena = bh_arena_new(1 << 20) };
}

static const struct {
    const char *name, *line, *file;
    bh_rc rc;
    const char *body;   /* NULL: the file as it is */
    const char *tenant; /* BULKHEAD_TENANT */
} jobs[] = {
    { "a program", "bulkhead run -t acme -s small -n 2 -- ls -l", NULL, BH_OK,
      "{\"args\":[\"ls\",\"-l\"],\"tenant\":\"acme\",\"sku\":\"small\",\"count\":2}" },
    { "datasets", "bulkhead run -s small --mount dataset=imagenet --mount dataset=out:/o:rw true", NULL,
      BH_OK,
      "{\"args\":[\"true\"],\"sku\":\"small\",\"mounts\":[{\"dataset\":\"imagenet\"},"
      "{\"dataset\":\"out\",\"target\":\"/o\",\"write\":true}]}" },
    { "lists and flags", "bulkhead run -s small -e A=1 -e B=2 --hold --mount /data:/d:rw --mount /x true",
      NULL, BH_OK,
      "{\"args\":[\"true\"],\"sku\":\"small\",\"env\":[\"A=1\",\"B=2\"],"
      "\"mounts\":[{\"source\":\"/data\",\"target\":\"/d\",\"write\":true},{\"source\":\"/x\"}],\"hold\":true}" },
    { "a mount's mode", "bulkhead run -s small --mount /x:/y:rx true", NULL, BH_INVALID, NULL },
    { "a variable that is not set", "bulkhead run -s small -e BH_TEST_UNSET true", NULL, BH_INVALID, NULL },
    { "a file alone", "bulkhead submit FILE", "sku: small\nfoo: bar\n", BH_OK, NULL },
    { "options over YAML", "bulkhead submit FILE -s large --priority low",
      "sku: small\nargs: [a, \"b c\"]\ncount: 2\n", BH_OK,
      "{\"sku\":\"large\",\"priority\":\"low\",\"args\":[\"a\",\"b c\"],\"count\":2}" },
    { "options over JSON", "bulkhead submit FILE -s large", "{\"args\": [\"a\"], \"sku\": \"x\"}", BH_OK,
      "{\"sku\":\"large\",\"args\":[\"a\"]}" },
    { "a program over a file", "bulkhead submit FILE -s large -- sh -c x",
      "sku: small\nargs: [a, b]\ncount: 2\n", BH_OK,
      "{\"args\":[\"sh\",\"-c\",\"x\"],\"sku\":\"large\",\"count\":2}" },
    { "a program is all that replaces", "bulkhead submit FILE -- true", "{\"sku\": \"small\"}", BH_OK,
      "{\"args\":[\"true\"],\"sku\":\"small\"}" },
    { "a tenant of the environment", "bulkhead run -s small true", NULL, BH_OK,
      "{\"args\":[\"true\"],\"tenant\":\"acme/vision\",\"sku\":\"small\"}", "acme/vision" },
    { "an option over the environment", "bulkhead run -t acme -s small true", NULL, BH_OK,
      "{\"args\":[\"true\"],\"tenant\":\"acme\",\"sku\":\"small\"}", "acme/vision" },
    { "a file over the environment", "bulkhead submit FILE", "tenant: acme\nargs: [a]\n", BH_OK,
      "{\"tenant\":\"acme\",\"args\":[\"a\"]}", "acme/vision" },
    { "the environment beside a file", "bulkhead submit FILE", "args: [a]\n", BH_OK,
      "{\"args\":[\"a\"],\"tenant\":\"acme/vision\"}", "acme/vision" },
    { "options over a list", "bulkhead submit FILE -s large", "- a\n", BH_INVALID, NULL },
    { "a script", "bulkhead submit FILE", "#!/bin/sh\necho hi\n", BH_INVALID, NULL },
    { "an empty file", "bulkhead submit FILE", " \n", BH_INVALID, NULL },
    { "options over broken YAML", "bulkhead submit FILE -s large", "a: [\n", BH_INVALID, NULL },
    { "options over an alias", "bulkhead submit FILE -s large", "a: &x 1\nb: *x\n", BH_INVALID, NULL },
};

static void
check_job(size_t i, const char *path)
{
    char line[256];
    struct bh_args args;
    struct bh_cli cli;
    struct bh_document body;
    struct bh_err err = { .rc = BH_OK };
    bh_rc rc;

    snprintf(line, sizeof line, "%s", jobs[i].line);
    make_cli(line, &args, &cli);
    if (jobs[i].tenant)
        setenv("BULKHEAD_TENANT", jobs[i].tenant, 1);
    else
        unsetenv("BULKHEAD_TENANT");
    rc = bh_jobspec_build(&args, jobs[i].file ? path : NULL, cli.arena, &body, &err);
    BH_CHECK_EQ(jobs[i].name, rc, jobs[i].rc);
    if (rc == BH_OK)
        BH_CHECK_STR(jobs[i].name, bh_buf_text(&body.text), jobs[i].body ? jobs[i].body : jobs[i].file);
    if (rc == BH_OK && jobs[i].file && !jobs[i].body)
        BH_CHECK(jobs[i].name, body.yaml);
    bh_buf_fini(&body.text);
    bh_arena_free(cli.arena);
    bh_args_fini(&args);
}

static void
test_jobs(void **state)
{
    char folder[] = "/tmp/bulkhead-cli-test.XXXXXX", path[96];
    struct bh_err err;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/job", folder);
    for (size_t i = 0; i < BH_COUNT(jobs); i++) {
        if (jobs[i].file)
            assert_int_equal(bh_file_replace(path, jobs[i].file, strlen(jobs[i].file), 0600, &err), BH_OK);
        check_job(i, path);
    }
    unlink(path);
    rmdir(folder);
    BH_CHECK_DONE();
}

/* A word before "--" is a job file, never the program. */
static const struct {
    const char *name, *line, *file; /* NULL: the program alone */
    bh_rc rc;
} job_files[] = {
    { "a file", "bulkhead submit job.yaml", "job.yaml", BH_OK },
    { "standard input", "bulkhead submit -", "-", BH_OK },
    { "a program", "bulkhead submit -s small -- echo hi", NULL, BH_OK },
    { "both", "bulkhead submit job.yaml -t acme -- echo hi", "job.yaml", BH_OK },
    { "both, as a question", "bulkhead whatif submit job.yaml -- echo hi", "job.yaml", BH_OK },
    { "no -- before a program", "bulkhead submit echo hi", NULL, BH_INVALID },
    { "two words before --", "bulkhead submit job.yaml zzz -- sh", NULL, BH_INVALID },
    { "nothing behind --", "bulkhead submit job.yaml --", NULL, BH_INVALID },
};

static void
test_job_files(void **state)
{
    for (size_t i = 0; i < BH_COUNT(job_files); i++) {
        const char *file = "unset";
        char line[256];
        struct bh_args args;
        struct bh_cli cli;
        struct bh_err err = { .rc = BH_OK };

        snprintf(line, sizeof line, "%s", job_files[i].line);
        make_cli(line, &args, &cli);
        BH_CHECK_EQ(job_files[i].name, bh_jobspec_file(&args, &file, &err), job_files[i].rc);
        if (job_files[i].rc == BH_OK)
            BH_CHECK_STR(job_files[i].name, file ? file : "none",
                         job_files[i].file ? job_files[i].file : "none");
        bh_arena_free(cli.arena);
        bh_args_fini(&args);
    }
    BH_CHECK_DONE();
}

/* A change carries an idempotency key, the same when it is repeated. */
static void
test_change_has_key(void **state)
{
    static struct server server;
    char line[] = "bulkhead submit --idempotency-key mine x.yaml";
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_args args;
    struct bh_cli cli;
    struct bh_err err;

    make_cli(line, &args, &cli);
    client_test_start(&server, JSON("200 OK", "2", "{}"), 65536);
    cli.client = (struct bh_client){ .socket = server.path };
    assert_int_equal(bh_cli_change(&cli, "POST /v1/jobs", NULL, &json, &err), BH_OK);
    client_test_stop(&server);
    assert_non_null(strstr(server.request, "POST /v1/jobs HTTP/1.1\r\n"));
    assert_non_null(strstr(server.request, "Idempotency-Key: mine\r\n"));
    assert_null(strstr(server.request, "Authorization"));
    bh_arena_free(cli.arena);
    bh_args_fini(&args);
}

static const struct {
    const char *name;
    uint32_t major, minor, patch;
    const char *holes; /* part of the text; NULL: none */
} cruns[] = {
    { "Debian 12", 1, 8, 1, "CVE-2026-47766" },
    { "Debian 13", 1, 21, 0, "CVE-2026-30892" },
    { "1.28", 1, 28, 0, "CVE-2026-88264" },
    { "just before", 1, 29, 9, "CVE-2026-88264" },
    { "fixed", 1, 30, 0, NULL },
    { "newer", 2, 0, 0, NULL },
    { "ancient", 0, 21, 0, "CVE-2022-27650" },
};

static void
test_crun_holes(void **state)
{
    for (size_t i = 0; i < BH_COUNT(cruns); i++) {
        const char *holes = bh_doctor_crun_holes(cruns[i].major, cruns[i].minor, cruns[i].patch);

        BH_CHECK(cruns[i].name, cruns[i].holes ? holes && strstr(holes, cruns[i].holes) : !holes);
    }
    BH_CHECK_DONE();
}

/* Exit statuses, which scripts rely on. */
static const struct {
    bh_rc rc;
    int status;
    /* clang-format off */
} statuses[] = {
    { BH_OK, 0 },       { BH_INVALID, 3 }, { BH_RANGE, 3 },   { BH_CONFLICT, 3 },
    { BH_DENIED, 4 },   { BH_UNAUTHENTICATED, 4 },            { BH_NOT_FOUND, 5 },
    { BH_QUOTA, 6 },    { BH_TOO_MANY, 8 }, { BH_TIMEOUT, 7 }, { BH_UNAVAILABLE, 8 }, { BH_UNCERTAIN, 8 },
    { BH_FULL, 8 },     { BH_IO, 8 },      { BH_BUG, 8 },
};
/* clang-format on */

static void
test_exit_statuses(void **state)
{
    for (size_t i = 0; i < BH_COUNT(statuses); i++)
        BH_CHECK_EQ(bh_rc_name(statuses[i].rc), bh_rc_exit(statuses[i].rc), statuses[i].status);
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),    cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_patience),   cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_job_files),  cmocka_unit_test(test_change_has_key),
        cmocka_unit_test(test_crun_holes), cmocka_unit_test(test_exit_statuses),
    };

    signal(SIGPIPE, SIG_IGN); /* the client closes when it has seen enough */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
