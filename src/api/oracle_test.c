/* A filter by a name or a number gives the same answer, byte by byte, whether it is another tenant's or does
 * not exist. bob develops in other; job 1 and all else of acme/vision is alice's.  A parameter of an
 * operation that has no row here fails the test. */

#include "api/fixture_test.h"

#include <string.h>

#include "api/documents/receipt.h"
#include "base/json.h"
#include "base/test.h"
#include "policy/operations.h"

/* For each query parameter: another tenant's name, and one of the same length that does not exist. */
static const struct parameter {
    const char *name, *foreign, *absent;
    /* clang-format off */
} parameters[] = {
    { "actor", "alice", "alicf" },
    { "job", "1", "9" },
    { "object", "job/1", "job/9" },
    { "start", "1", "9" },
    { "tenant", "acme/vision", "acme/visiom" },
    { "text", "aaaa", "bbbb" },      /* a token's or a text's digest */
    /* these name nothing, or what every caller may see: GPUs and nodes */
    { "gpu", NULL, NULL },      { "node", NULL, NULL },
    { "active", NULL, NULL },   { "after", NULL, NULL },  { "decision", NULL, NULL },
    { "dry_run", NULL, NULL },  { "follow", NULL, NULL }, { "limit", NULL, NULL },
    { "member", NULL, NULL },   { "mine", NULL, NULL },   { "new", NULL, NULL },
    { "offset", NULL, NULL },   { "old", NULL, NULL },    { "port", NULL, NULL },
    { "now", NULL, NULL },      { "points", NULL, NULL }, { "quantity", NULL, NULL },
    { "span", NULL, NULL },
    { "from", NULL, NULL },     { "prune", NULL, NULL },  { "revision", NULL, NULL },
    { "size", NULL, NULL },     { "to", NULL, NULL },
    { "before", NULL, NULL },   { "order", NULL, NULL },
    { "last", NULL, NULL },
    { "raw", NULL, NULL },      { "since", NULL, NULL },  { "state", NULL, NULL },
    { "until", NULL, NULL },    { "verb", NULL, NULL },   { "why", NULL, NULL },
    { "end", NULL, NULL },      { "ended", NULL, NULL },
};
/* clang-format on */

/* The same for what stands in a path or a body. */
static const struct place {
    enum bh_operation op;
    const char *path, *query, *body; /* %s: the name */
    const char *foreign, *absent;
} places[] = {
    { BH_OP_JOB_GET, "/v1/jobs/%s", NULL, NULL, "1", "9" },
    { BH_OP_JOB_WHY, "/v1/jobs/%s/why", NULL, NULL, "1", "9" },
    { BH_OP_JOB_LOGS, "/v1/jobs/%s/logs", NULL, NULL, "1", "9" },
    { BH_OP_JOB_LOG_LINES, "/v1/jobs/%s/log", NULL, NULL, "1", "9" },
    { BH_OP_JOB_CANCEL, "/v1/jobs/%s/cancel", NULL, NULL, "1", "9" },
    { BH_OP_JOB_RELEASE, "/v1/jobs/%s/release", NULL, NULL, "1", "9" },
    { BH_OP_JOB_VERIFY, "/v1/jobs/%s/verify", NULL, NULL, "1", "9" },
    { BH_OP_JOB_EXEC, "/v1/jobs/%s/exec", NULL, "{\"args\":[\"true\"]}", "1", "9" },
    { BH_OP_JOB_ATTACH, "/v1/jobs/%s/attach", NULL, NULL, "1", "9" },
    { BH_OP_JOB_FORWARD, "/v1/jobs/%s/forward", NULL, NULL, "1", "9" },
    { BH_OP_TOKEN_REVOKE, "/v1/tokens/%s", NULL, NULL, "aaaaaaaaaaaa", "bbbbbbbbbbbb" },
    { BH_OP_RECORD_GET, "/v1/records/%s", NULL, NULL, "0", "9" },
    { BH_OP_RECORD_PROOF, "/v1/records/%s/proof", NULL, NULL, "0", "9" },
    { BH_OP_WHATIF, "/v1/whatif", NULL, "{\"cancel\":%s}", "1", "9" },
    { BH_OP_WHATIF, "/v1/whatif", NULL,
      "{\"submit\":{\"args\":[\"true\"],\"sku\":\"small\",\"tenant\":\"%s\"}}", "acme/vision",
      "acme/visiom" },
    { BH_OP_JOB_SUBMIT, "/v1/jobs", NULL, "{\"args\":[\"true\"],\"sku\":\"small\",\"tenant\":\"%s\"}",
      "acme/vision", "acme/visiom" },
    { BH_OP_TENANT_GET, "/v1/tenants/%s", NULL, NULL, "acme/vision", "acme/visiom" },
    { BH_OP_RECORD_LIST, "/v1/records", "object=dataset/%s", NULL, "imagenet", "imagenes" },
    { BH_OP_RECEIPT_LIST, "/v1/receipts", "job=%s&after=0", NULL, "1", "9" },
    { BH_OP_SERIES, "/v1/series", "object=job/%s", NULL, "1", "9" },
    { BH_OP_SERIES, "/v1/series", "object=tenant/%s", NULL, "acme/vision", "acme/visiom" },
    { BH_OP_SERIES, "/v1/series", "object=gpu/%s", NULL, "GPU-a", "GPU-c" },
    { BH_OP_SERIES, "/v1/series", "object=node/%s", NULL, "n1", "n2" },
};

static void
put_receipt(struct fixture *f, const struct bh_msg_receipt *receipt)
{
    const struct bh_receipt_row row = { .record = 1, .receipt = *receipt };
    struct bh_document_row document = { .kind = BH_DOCUMENT_RECEIPT, .version = 1 };
    char key[BH_RECEIPT_KEY_SIZE];
    struct bh_buf json;
    struct bh_err err;

    bh_receipt_key(&row.receipt, key);
    bh_buf_init(&json, 1 << 16);
    bh_json_encode(&json, &bh_receipt_row_fields, &row);
    document.key = key;
    document.value = bh_buf_text(&json);
    assert_int_equal(f->store.ops->begin(f->store.self, &err), BH_OK);
    assert_int_equal(f->store.ops->put_document(f->store.self, &document, &err), BH_OK);
    assert_int_equal(f->store.ops->commit(f->store.self, &err), BH_OK);
    bh_buf_fini(&json);
}

static const struct bh_msg_receipt receipts[] = {
    /* a scrub of what carol's tenant had, for a job of alice's that never had it */
    { .order = 4000,
      .begun_ns = 1,
      .ended_ns = 2,
      .job = 1,
      .tenant = 2,
      .gpu = "GPU-c",
      .neighbors = 17,
      .from_count = 2,
      .from = { { .job = 8, .tenant = 3 }, { .job = 7, .tenant = 2 } } },
    /* bob's job 3 has memory that alice's job 1 had, */
    { .order = 4096,
      .begun_ns = 1,
      .ended_ns = 2,
      .job = 3,
      .tenant = 4,
      .gpu = "GPU-a",
      .from_count = 4,
      .from = { { .job = 1, .tenant = 2 },
                { .tenant = UINT32_MAX },
                { .job = 3, .tenant = 4 },
                { .job = 7, .tenant = 3 } } },
    /* and what that scrub left clean */
    { .order = 4100,
      .begun_ns = 3,
      .ended_ns = 3,
      .job = 3,
      .tenant = 4,
      .gpu = "GPU-c",
      .method = BH_SCRUB_EARLIER,
      .by_count = 1,
      .by = { { 4000 } } },
};

static struct fixture *
oracle_open_site(void)
{
    struct fixture *f = bh_fixture_open();
    struct bh_token_row token = {
        .id = "aaaaaaaaaaaa", .principal_id = 1, .scopes = "", .note = "vision's", .created_ns = 1
    };

    f->changes[f->change_count++] =
        (struct bh_change){ .number = 1, .job = 1, .tenant_id = 2, .principal_id = 1, .state = "running" };
    bh_fixture_submit(f, 1, 2, 1, 1);
    bh_fixture_put_job(f, 1, 2, 1, "running");
    bh_fixture_put_job(f, 3, 4, 2, "running");
    bh_fixture_put_token(f, &token);
    bh_fixture_put_record(f, 0,
                          "{\"actor\":{\"id\":1,\"token\":\"aaaaaaaaaaaa\",\"via\":\"token\"},"
                          "\"dec\":{\"allow\":true,\"rule\":6},\"obj\":{\"id\":1,\"type\":"
                          "\"job\"},\"phase\":\"intent\",\"tenant\":2,\"ts\":\"1000\","
                          "\"v\":1,\"verb\":\"job.submit\"}");
    bh_fixture_put_record(f, 1,
                          "{\"actor\":{\"id\":2,\"via\":\"peer\"},\"dec\":{\"allow\":true,"
                          "\"rule\":6},\"obj\":{\"id\":3,\"type\":\"job\"},\"phase\":\"intent\","
                          "\"tenant\":4,\"ts\":\"1001\",\"v\":1,\"verb\":\"job.submit\"}");
    for (size_t i = 0; i < BH_COUNT(receipts); i++)
        put_receipt(f, &receipts[i]);
    return f;
}

/* The answers, with the name as the client wrote it taken out. */
static struct received foreign, absent;

static void
take_out(char *text, const char *name)
{
    size_t length = strlen(name);

    for (char *at = strstr(text, name); at; at = strstr(at + length, name))
        memset(at, '*', length);
}

static void
oracle_send(struct fixture *f, const struct bh_operation_row *row, const struct place *place,
            const char *name, struct received *ret)
{
    char path[80], query[80], body[160];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(path, sizeof path, place->path, name);
    snprintf(query, sizeof query, place->query ? place->query : "", name);
    snprintf(body, sizeof body, place->body ? place->body : "", name);
#pragma GCC diagnostic pop
    bh_fixture_send(f,
                    &(struct sent){ .method = row->method,
                                    .path = path,
                                    .query = query[0] ? query : NULL,
                                    .body = body[0] ? body : NULL,
                                    .uid = BOB },
                    ret);
    /* an error quotes the name; a result does not do that for an absent one */
    if (ret->status >= 400)
        take_out(ret->text, name);
}

static void
oracle_compare(enum bh_operation op, const struct place *place)
{
    const struct bh_operation_row *row = bh_operation_get(op);
    struct fixture *f = oracle_open_site();

    oracle_send(f, row, place, place->foreign, &foreign);
    oracle_send(f, row, place, place->absent, &absent);
    BH_CHECK_EQ(row->name, foreign.status, absent.status);
    BH_CHECK_STR(row->name, foreign.text, absent.text);
    BH_CHECK_EQ(row->name, f->commanded, false);
    bh_fixture_close(f);
}

static const struct parameter *
find_parameter(const char *name)
{
    for (size_t i = 0; i < BH_COUNT(parameters); i++)
        if (strcmp(parameters[i].name, name) == 0)
            return &parameters[i];
    return NULL;
}

static void
compare_filter(const struct bh_operation_row *row, const char *name)
{
    const struct parameter *parameter = find_parameter(name);
    char query[80];

    BH_CHECK(name, parameter);
    if (!parameter || !parameter->foreign || strchr(row->path, '{'))
        return;
    snprintf(query, sizeof query, "%s=%%s", name);
    oracle_compare(row->id,
                   &(struct place){ row->id, row->path, query, NULL, parameter->foreign, parameter->absent });
}

static void
filters_do_not_show_what_exists(void **state)
{
    for (int op = 0; op < BH_OPERATIONS; op++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)op);
        char words[200], *rest = words, *name;

        snprintf(words, sizeof words, "%s", row->query);
        while ((name = strsep(&rest, " ")))
            if (name[0])
                compare_filter(row, name);
    }
    BH_CHECK_DONE();
}

static void
nor_do_paths_and_bodies(void **state)
{
    for (size_t i = 0; i < BH_COUNT(places); i++)
        oracle_compare(places[i].op, &places[i]);
    BH_CHECK_DONE();
}

/* The filter does find what bob may see: the answers above are not all empty for another
 * reason. */
static void
what_is_ones_own_is_found(void **state)
{
    static const char *const queries[] = { "job=3", "gpu=GPU-a" };
    struct fixture *f = oracle_open_site();

    for (size_t i = 0; i < BH_COUNT(queries); i++) {
        bh_fixture_send(
            f, &(struct sent){ .method = BH_GET, .path = "/v1/receipts", .query = queries[i], .uid = BOB },
            &foreign);
        BH_CHECK(queries[i], strstr(foreign.text, "\"job\":3"));
        BH_CHECK(queries[i], strstr(foreign.text, "other tenants"));
    }
    bh_fixture_send(f,
                    &(struct sent){ .method = BH_GET, .path = "/v1/receipts", .query = "job=3", .uid = BOB },
                    &foreign);
    BH_CHECK("its own", strstr(foreign.text, "\"by\":[{\"id\":4000}]"));
    BH_CHECK("the one that it refers to", strstr(foreign.text, "\"id\":4000,\"memory_bytes\""));
    BH_CHECK("whose job that was", !strstr(foreign.text, "\"job\":1,") && !strstr(foreign.text, "\"job\":8"));
    BH_CHECK("and tenant", !strstr(foreign.text, "vision"));
    BH_CHECK("not how many, nor in which order",
             strstr(foreign.text, "\"from\":[{\"tenant\":\"unknown\"},{\"job\":3,\"tenant\":\"other\"},"
                                  "{\"tenant\":\"other tenants\"}]"));
    BH_CHECK("nor how many ran beside it", !strstr(foreign.text, "neighbors"));
    bh_fixture_send(f, &(struct sent){ .method = BH_GET, .path = "/v1/receipts", .uid = BOB }, &foreign);
    BH_CHECK("not by itself", !strstr(foreign.text, "\"id\":4000,\"memory_bytes\""));
    bh_fixture_send(
        f, &(struct sent){ .method = BH_GET, .path = "/v1/receipts", .query = "job=1", .uid = CAROL },
        &foreign);
    BH_CHECK("an administrator", strstr(foreign.text, "\"job\":1"));
    BH_CHECK("sees them all", strstr(foreign.text, "\"neighbors\":17"));
    bh_fixture_close(f);
    BH_CHECK_DONE();
}

/* The retry of a failed scrub belongs to no tenant: it is shown with the job whose scrub it repeats. */
static void
test_retry(void **state)
{
    struct fixture *f = oracle_open_site();

    put_receipt(f, &(struct bh_msg_receipt){ .order = 5000,
                                             .begun_ns = 1,
                                             .ended_ns = 2,
                                             .job = 3,
                                             .tenant = 4,
                                             .gpu = "GPU-a",
                                             .partition = 7,
                                             .result = BH_SCRUB_INTERRUPTED });
    put_receipt(f, &(struct bh_msg_receipt){ .order = 6000,
                                             .begun_ns = 3,
                                             .ended_ns = 4,
                                             .gpu = "GPU-a",
                                             .partition = 7,
                                             .result = BH_SCRUB_CLEAN });
    put_receipt(f, &(struct bh_msg_receipt){ .order = 7000,
                                             .begun_ns = 3,
                                             .ended_ns = 4,
                                             .gpu = "GPU-a",
                                             .partition = 7,
                                             .result = BH_SCRUB_CLEAN });
    bh_fixture_send(f, &(struct sent){ .method = BH_GET, .path = "/v1/jobs/3", .uid = BOB }, &foreign);
    BH_CHECK("the first", strstr(foreign.text, "\"id\":5000"));
    BH_CHECK("its retry", strstr(foreign.text, "\"id\":6000"));
    BH_CHECK("nothing after it", !strstr(foreign.text, "\"id\":7000"));
    bh_fixture_close(f);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(filters_do_not_show_what_exists),
    cmocka_unit_test(nor_do_paths_and_bodies),
    cmocka_unit_test(what_is_ones_own_is_found),
    cmocka_unit_test(test_retry),
};
BH_TEST_MAIN(tests)
