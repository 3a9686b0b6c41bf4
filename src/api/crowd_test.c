/* Other tenants use the same parts, divided differently: a developer's answers of every reading operation are
 * the same byte by byte, so that they name no other user, and count neither tenants nor jobs. alice develops
 * in acme/vision.  An operation that has no row here, and which she may call, fails the test. */

#include "api/fixture_test.h"

#include <string.h>

#include "base/test.h"
#include "policy/operations.h"

enum {
    VISION = 2,
    OTHER = 4,
    SMALL = 1,
    LARGE = 2,
    MEDIUM = 3,
    FOREIGN_JOB = 770000
}; /* a number that stands nowhere else */

/* Who holds two partitions of a GPU, and who waits. */
static const struct crowd {
    const char *name;
    uint32_t jobs, members, sku; /* of as many parts together */
    bool two_people;
    uint32_t pending; /* jobs */
} crowds[] = {
    { "two jobs", 2, 1, SMALL, false, 0 },          { "one job of two", 1, 2, SMALL, false, 0 },
    { "one of one piece", 1, 1, MEDIUM, false, 0 }, { "two people's", 2, 1, SMALL, true, 0 },
    { "and one waits", 2, 1, SMALL, false, 1 },     { "and three wait", 2, 1, SMALL, false, 3 },
};
enum { RECORDS = 8 }; /* how long the log is is public */

static const struct request {
    enum bh_operation op;
    const char *path, *query, *body;
    uint32_t status;    /* 0: 200 */
    bool tells_waiting; /* whether any job waits and which it affects: not how many */
} requests[] = {
    { BH_OP_JOB_LIST, "/v1/jobs", "start=true&why=true", NULL, 0 },
    { BH_OP_JOB_GET, "/v1/jobs/1", NULL, NULL, 0 },
    { BH_OP_JOB_WHY, "/v1/jobs/5/why", NULL, NULL, 0 },
    { BH_OP_JOB_WHY, "/v1/jobs/6/why", NULL, NULL, 0 },
    { BH_OP_JOB_LOGS, "/v1/jobs/1/logs", NULL, NULL, 0 },
    { BH_OP_JOB_LOG_LINES, "/v1/jobs/1/log", NULL, NULL, 0 },
    { BH_OP_JOB_WATCH, "/v1/watch", NULL, NULL, 0 },
    { BH_OP_STREAM_OPEN, "/v1/streams/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", NULL, NULL, 400 },
    { BH_OP_GPU_LIST, "/v1/gpus", NULL, NULL, 0 },
    { BH_OP_GPU_GET, "/v1/gpus/GPU-a", NULL, NULL, 0 },
    { BH_OP_NODE_GET, "/v1/nodes/n1", NULL, NULL, 0 },
    { BH_OP_NODE_LIST, "/v1/nodes", NULL, NULL, 0 },
    { BH_OP_TENANT_LIST, "/v1/tenants", NULL, NULL, 0 },
    { BH_OP_TENANT_GET, "/v1/tenants/acme/vision", NULL, NULL, 0 },
    { BH_OP_SKU_LIST, "/v1/skus", NULL, NULL, 0 },
    { BH_OP_DATASET_LIST, "/v1/datasets", NULL, NULL, 0 },
    { BH_OP_RECEIPT_LIST, "/v1/receipts", NULL, NULL, 0 },
    { BH_OP_USAGE, "/v1/usage", NULL, NULL, 0 },
    { BH_OP_SERIES, "/v1/series", "object=job/1&since=10m&points=3000", NULL, 0 },
    { BH_OP_SERIES, "/v1/series", "object=tenant/acme/vision&since=10m&points=3000", NULL, 0 },
    { BH_OP_FORECAST, "/v1/forecast", NULL, NULL, 0 },
    { BH_OP_TOKEN_LIST, "/v1/tokens", NULL, NULL, 0 },
    { BH_OP_RECORD_LIST, "/v1/records", NULL, NULL, 0 },
    { BH_OP_CHECKPOINT_LIST, "/v1/checkpoints", NULL, NULL, 0 }, /* public, as is the log's size */
    { BH_OP_RECORD_LIST, "/v1/records", "order=newest", NULL, 0 },
    { BH_OP_RECORD_GET, "/v1/records/0", NULL, NULL, 0 },
    { BH_OP_LOG_SHOW, "/v1/log", NULL, NULL, 0 },
    { BH_OP_RECORD_PROOF, "/v1/records/0/proof", NULL, NULL, 503 },
    { BH_OP_CONSISTENCY, "/v1/consistency", "old=1&new=1", NULL, 0 },
    { BH_OP_WHATIF, "/v1/whatif", NULL,
      "{\"submit\":{\"args\":[\"true\"],\"sku\":\"small\",\"tenant\":\"acme/vision\"}}", 0, true },
    { BH_OP_WHATIF, "/v1/whatif", NULL, "{\"cancel\":1}", 0, true },
    { BH_OP_LAYOUT_LIST, "/v1/layouts", NULL, NULL, 0 },
    { BH_OP_WHOAMI, "/v1/whoami", NULL, NULL, 0 },
    { BH_OP_STATUS, "/v1/status", NULL, NULL, 0 },
    { BH_OP_METRICS, "/metrics", NULL, NULL, 0 },
};

/* ---- the site ---- */

static const char inventory[] =
    "{\"cpus\":8,\"driver\":\"580.159.03\",\"gpus\":[{\"fault\":5,"
    "\"fence_why\":\"job 770001: seccomp\",\"index\":0,\"memory_mib\":81559,"
    "\"power_mw\":70000,\"product\":\"NVIDIA H100 80GB HBM3\",\"temperature_c\":41,"
    "\"utilisation\":255,\"uuid\":\"GPU-a\"}],\"memory_mib\":64000,\"node\":\"n1\","
    "\"runtime\":\"crun 1.8\",\"walls\":{\"gpus\":1,\"state\":\"partly\",\"why\":\"job 770001\"}}";

static void
crowd_put_record(struct fixture *f, uint64_t seq, uint32_t tenant, uint32_t principal, uint64_t job)
{
    char leaf[300];

    snprintf(leaf, sizeof leaf,
             "{\"actor\":{\"id\":%u,\"via\":\"peer\"},\"dec\":{\"allow\":true,\"rule\":6},\"obj\":"
             "{\"id\":%llu,\"type\":\"job\"},\"phase\":\"intent\",\"tenant\":%u,\"ts\":\"1000\","
             "\"v\":1,\"verb\":\"job.submit\"}",
             principal, (unsigned long long)job, tenant);
    bh_fixture_put_record(f, seq, leaf);
}

static void
submit_foreign(struct fixture *f, uint32_t number, uint32_t principal, uint32_t sku, uint32_t members)
{
    struct bh_event event = { .kind = BH_EV_SUBMIT };
    uint64_t job = FOREIGN_JOB + number;

    event.u.submit = (struct bh_ev_submit){ .job = { job },
                                            .tenant = { OTHER },
                                            .principal = { principal },
                                            .sku = { sku },
                                            .count = members,
                                            .priority = BH_PRIORITY_NORMAL };
    bh_fixture_step(f, event);
    bh_fixture_put_job(f, job, OTHER, principal, sku == LARGE ? "pending" : "running");
    f->changes[f->change_count++] = (struct bh_change){
        .number = 1 + number, .job = job, .tenant_id = OTHER, .principal_id = principal, .state = "running"
    };
}

/* A size with as many parts as two small ones. */
static void
put_medium(struct fixture *f)
{
    struct bh_event event = { .kind = BH_EV_SKU };

    event.u.sku = (struct bh_ev_sku){ .sku = { MEDIUM }, .grade = BH_GRADE_C, .model_count = 1 };
    event.u.sku.models[0] =
        (struct bh_sku_model){ BH_GPU_H100_80GB, bh_profile_find(BH_GPU_H100_80GB, "2g.20gb")->id.v };
    bh_fixture_step(f, event);
}

static void
put_own(struct fixture *f)
{
    bh_fixture_submit(f, 1, VISION, 1, SMALL);
    bh_fixture_submit(f, 5, VISION, 1, SMALL);
    bh_fixture_put_job(f, 1, VISION, 1, "running");
    bh_fixture_put_job(f, 5, VISION, 1, "pending");
    crowd_put_record(f, 0, VISION, 1, 1);
    crowd_put_record(f, 1, VISION, 1, 5);
    f->changes[f->change_count++] = (struct bh_change){
        .number = 1, .job = 1, .tenant_id = VISION, .principal_id = 1, .state = "running"
    };
}

static struct fixture *
open_crowded(const struct crowd *crowd)
{
    struct fixture *f = bh_fixture_open();
    uint32_t number = 1;

    f->inventory = inventory;
    put_medium(f);
    put_own(f);
    for (uint32_t i = 0; i < crowd->jobs; i++)
        submit_foreign(f, number++, crowd->two_people && i ? 3 : 2, crowd->sku, crowd->members);
    bh_fixture_answer_orders(f);
    bh_fixture_submit(f, 6, VISION, 1, LARGE); /* others hold what it waits for */
    bh_fixture_put_job(f, 6, VISION, 1, "pending");
    for (uint32_t i = 0; i < crowd->pending; i++)
        submit_foreign(f, number++, 2, LARGE, 2); /* whole GPUs: there are none */
    for (uint64_t seq = 2; seq < RECORDS; seq++)
        crowd_put_record(f, seq, OTHER, 2, FOREIGN_JOB + 1 + seq % (crowd->jobs + crowd->pending));
    return f;
}

/* ---- the answers ---- */

static struct received first, got;

/* What is left, and in which shape, is capacity: every caller sees it, whichever tenant uses the rest. */
static void
take_out_capacity(char *text)
{
    static const char *const words[] = { "\"idle\":{", "\"unusable\":{" };

    for (size_t i = 0; i < BH_COUNT(words); i++)
        for (char *at = text; (at = strstr(at, words[i]));) {
            at += strlen(words[i]);
            memmove(at, at + strcspn(at, "}"), strlen(at + strcspn(at, "}")) + 1);
        }
}

static void
crowd_ask(struct fixture *f, const struct request *request, uint32_t uid, struct received *ret)
{
    const struct bh_operation_row *row = bh_operation_get(request->op);

    bh_fixture_send(f,
                    &(struct sent){ .method = row->method,
                                    .path = request->path,
                                    .query = request->query,
                                    .body = request->body,
                                    .uid = uid },
                    ret);
    take_out_capacity(ret->text);
}

static void
names_no_user(const char *name, const char *text)
{
    static const char *const foreign[] = { "\"other\"", "speech", "bob", "carol", "77000", "\"dave\"" };

    for (size_t i = 0; i < BH_COUNT(foreign); i++)
        BH_CHECK(name, !strstr(text, foreign[i]));
}

static void
a_developer_cannot_tell_crowds_apart(void **state)
{
    for (size_t i = 0; i < BH_COUNT(requests); i++) {
        const char *name = bh_operation_get(requests[i].op)->name;

        for (size_t k = 0; k < BH_COUNT(crowds); k++) {
            struct fixture *f = open_crowded(&crowds[k]);
            bool begins = k == 0 || (requests[i].tells_waiting && crowds[k].pending == 1);

            crowd_ask(f, &requests[i], ALICE, begins ? &first : &got);
            if (!begins)
                BH_CHECK_STR(name, got.text, first.text);
            bh_fixture_close(f);
        }
        BH_CHECK_EQ(name, first.status, requests[i].status ? requests[i].status : 200);
        names_no_user(name, first.text);
    }
    BH_CHECK_DONE();
}

/* Who sees the whole site sees the crowd: the answers above are not alike for another reason. */
static void
an_admin_can(void **state)
{
    static const enum bh_operation telling[] = { BH_OP_JOB_LIST, BH_OP_GPU_LIST, BH_OP_LAYOUT_LIST,
                                                 BH_OP_STATUS };

    for (size_t i = 0; i < BH_COUNT(requests); i++) {
        bool tells = false;

        for (size_t k = 0; k < BH_COUNT(telling); k++)
            tells |= telling[k] == requests[i].op;
        if (!tells)
            continue;
        for (size_t k = 0; k < 2; k++) {
            struct fixture *f = open_crowded(&crowds[k]);

            crowd_ask(f, &requests[i], CAROL, k ? &got : &first);
            bh_fixture_close(f);
        }
        BH_CHECK(requests[i].path, strcmp(first.text, got.text) != 0);
    }
    BH_CHECK_DONE();
}

static bool
has_row(enum bh_operation op)
{
    for (size_t i = 0; i < BH_COUNT(requests); i++)
        if (requests[i].op == op)
            return true;
    return false;
}

/* alice may not read the whole site; all else that she may read has a row. */
static void
every_reading_operation_is_looked_at(void **state)
{
    struct fixture *f = open_crowded(&crowds[0]);

    for (int op = 0; op < BH_OPERATIONS; op++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)op);
        bool reads = row->kind != BH_OPERATION_MUTATE;

        if (!reads || row->scope == BH_SCOPE_NOBODY || row->scope == BH_SCOPE_OWN)
            continue;
        if (row->scope != BH_SCOPE_SITE) {
            BH_CHECK(row->name, has_row(row->id));
            continue;
        }
        bh_fixture_send(f, &(struct sent){ .method = row->method, .path = row->path, .uid = ALICE }, &got);
        BH_CHECK_EQ(row->name, got.status, 403);
    }
    bh_fixture_close(f);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_developer_cannot_tell_crowds_apart),
    cmocka_unit_test(an_admin_can),
    cmocka_unit_test(every_reading_operation_is_looked_at),
};
BH_TEST_MAIN(tests)
