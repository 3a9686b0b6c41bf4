/* What failed an assert is refused, as narrowly as it can be, and not for ever. */

#include "daemon/state/quarantine.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/test.h"
#include "base/time.h"
#include "crypto/openssl.h"

#define NOW (1000 * HOUR)
#define HOUR (3600 * BH_NS_PER_S)
#define MINUTE (60 * BH_NS_PER_S)

static char folder[64];

static void
no_parameters(const struct bh_request *request, void (*sink)(void *self, const char *name, const char *value),
              void *self)
{
}

static const struct bh_request request_a = {
    .method = BH_POST, .path = "/v1/jobs", .body = "a", .body_length = 1, .each_query = no_parameters
};
static const struct bh_request request_b = {
    .method = BH_POST, .path = "/v1/jobs", .body = "b", .body_length = 1, .each_query = no_parameters
};

static const struct bh_request request_c = {
    .method = BH_POST, .path = "/v1/jobs", .body = "c", .body_length = 1, .each_query = no_parameters
};

static struct bh_work
work_of(const struct bh_request *request, uint32_t principal, uint32_t tenant)
{
    return (struct bh_work){ .kind = BH_WORK_REQUEST,
                             .request = request,
                             .operation = "job.submit",
                             .principal = principal,
                             .tenant = tenant };
}

static void
path_of(uint32_t number, const char *kind, char ret_path[128])
{
    snprintf(ret_path, 128, "%s/assert-%02u.%s", folder, number, kind);
}

/* As the daemon leaves it. */
static void
leave(uint32_t number, const struct bh_crash *crash)
{
    struct bh_buf json;
    struct bh_err err;
    char path[128];

    path_of(number, "json", path);
    bh_buf_init(&json, BH_CRASH_JSON_MAX);
    bh_json_encode(&json, &bh_crash_fields, crash);
    assert_int_equal(bh_file_replace(path, json.bytes, json.length, 0600, &err), BH_OK);
    bh_buf_fini(&json);
    path_of(number, "block", path);
    assert_int_equal(bh_file_replace(path, "x", 1, 0600, &err), BH_OK);
}

static void
leave_request(uint32_t number, uint64_t at_ns, struct bh_work work)
{
    struct bh_crash crash = { .at_ns = at_ns,
                              .kind = BH_WORK_REQUEST,
                              .keys = bh_work_keys_of(&work, &bh_crypto_openssl),
                              .version = "1" };

    leave(number, &crash);
}

static struct bh_quarantine
load(const char *version, uint64_t now_ns)
{
    struct bh_quarantine quarantine;

    bh_quarantine_load(&quarantine, folder, version, &bh_crypto_openssl, now_ns);
    return quarantine;
}

static bh_rc
check(const char *version, uint64_t now_ns, struct bh_work work)
{
    struct bh_quarantine quarantine = load(version, now_ns);
    struct bh_err err;
    bh_rc rc = bh_quarantine_check(&quarantine, &work, now_ns, &err);

    bh_quarantine_fini(&quarantine);
    return rc;
}

static int
begin(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/bh-quarantine-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int
end(void **state)
{
    char path[128];

    for (uint32_t number = 0; number < BH_CRASHES_MAX; number++) {
        path_of(number, "json", path);
        unlink(path);
        path_of(number, "block", path);
        unlink(path);
    }
    return rmdir(folder);
}

static void
test_the_same_request_alone(void **state)
{
    leave_request(0, NOW, work_of(&request_a, 7, 3));
    BH_CHECK_EQ("the same", check("1", NOW, work_of(&request_a, 7, 3)), BH_BUG);
    BH_CHECK_EQ("before its tenant is known", check("1", NOW, work_of(&request_a, 7, 0)), BH_BUG);
    BH_CHECK_EQ("of a different caller", check("1", NOW, work_of(&request_a, 8, 3)), BH_OK);
    BH_CHECK_EQ("a different one", check("1", NOW, work_of(&request_b, 7, 3)), BH_OK);
    BH_CHECK_EQ("a different version", check("2", NOW, work_of(&request_a, 7, 3)), BH_OK);
    BH_CHECK_EQ("a day later", check("1", NOW + 24 * HOUR, work_of(&request_a, 7, 3)), BH_OK);
    BH_CHECK_EQ("when the clock went back", check("1", NOW - HOUR, work_of(&request_a, 7, 3)), BH_BUG);
    BH_CHECK_DONE();
}

static void
test_a_caller_who_varies_it(void **state)
{
    struct bh_work cancel = work_of(&request_b, 7, 3);

    cancel.operation = "job.cancel";
    leave_request(0, NOW - MINUTE, work_of(&request_a, 7, 3));
    leave_request(1, NOW, work_of(&request_a, 7, 0));
    BH_CHECK_EQ("what is like it", check("1", NOW, work_of(&request_b, 7, 3)), BH_BUG);
    BH_CHECK_EQ("a different operation", check("1", NOW, cancel), BH_OK);
    BH_CHECK_EQ("after an hour", check("1", NOW + HOUR, work_of(&request_b, 7, 3)), BH_OK);
    leave_request(2, NOW + HOUR, work_of(&request_b, 7, 3));
    BH_CHECK_EQ("twice as long", check("1", NOW + 3 * HOUR - 1, work_of(&request_c, 7, 3)), BH_BUG);
    BH_CHECK_EQ("and no longer", check("1", NOW + 3 * HOUR, work_of(&request_c, 7, 3)), BH_OK);
    BH_CHECK_DONE();
}

static void
test_callers_of_one_tenant(void **state)
{
    for (uint32_t n = 0; n < 3; n++)
        leave_request(n, NOW, work_of(&request_a, 10 + n, 3));
    BH_CHECK_EQ("three", check("1", NOW, work_of(&request_b, 20, 3)), BH_OK);
    leave_request(3, NOW, work_of(&request_a, 13, 3));
    BH_CHECK_EQ("four", check("1", NOW, work_of(&request_b, 20, 3)), BH_BUG);
    BH_CHECK_EQ("a different tenant", check("1", NOW, work_of(&request_b, 20, 4)), BH_OK);
    BH_CHECK_DONE();
}

static void
test_nodes_and_own_work(void **state)
{
    struct bh_quarantine quarantine;

    for (uint32_t n = 0; n < 2; n++)
        leave(n,
              &(struct bh_crash){ .at_ns = NOW, .kind = BH_WORK_NODE, .socket = "/run/a", .version = "1" });
    for (uint32_t n = 2; n < 4; n++)
        leave(n, &(struct bh_crash){ .at_ns = NOW, .kind = BH_WORK_OWN, .version = "1" });
    quarantine = load("1", NOW);
    BH_CHECK_EQ("a node", bh_quarantine_node_ns(&quarantine, "/run/a", NOW), 2 * MINUTE);
    BH_CHECK_EQ("the other", bh_quarantine_node_ns(&quarantine, "/run/b", NOW), 0);
    BH_CHECK_EQ("own, twice", bh_quarantine_own_ns(&quarantine, NOW), 0);
    bh_quarantine_fini(&quarantine);
    for (uint32_t n = 4; n < 20; n++)
        leave(n, &(struct bh_crash){ .at_ns = NOW, .kind = BH_WORK_OWN, .version = "1" });
    quarantine = load("1", NOW);
    BH_CHECK_EQ("own, often", bh_quarantine_own_ns(&quarantine, NOW + MINUTE), HOUR - MINUTE);
    bh_quarantine_fini(&quarantine);
    BH_CHECK_DONE();
}

static void
test_replay(void **state)
{
    struct bh_quarantine quarantine;
    struct bh_err err;

    leave(0, &(struct bh_crash){ .at_ns = NOW, .kind = BH_WORK_REPLAY, .record = 5, .version = "1" });
    quarantine = load("1", NOW);
    BH_CHECK_EQ("once", bh_quarantine_check_replay(&quarantine, &err), BH_OK);
    bh_quarantine_fini(&quarantine);
    leave(1, &(struct bh_crash){ .at_ns = NOW, .kind = BH_WORK_REPLAY, .record = 5, .version = "1" });
    quarantine = load("1", NOW);
    BH_CHECK_EQ("twice", bh_quarantine_check_replay(&quarantine, &err), BH_BUG);
    BH_CHECK("names the record", strstr(err.msg, "record 5 ") != NULL);
    BH_CHECK("has the way back", strstr(err.hint, "remove the folder crash") != NULL);
    bh_quarantine_fini(&quarantine);
    BH_CHECK_DONE();
}

/* The folder stays small: the oldest file is written over, few blocks stay. */
static void
test_bounds(void **state)
{
    struct bh_quarantine quarantine;
    uint32_t blocks = 0;
    struct bh_err err;
    char path[128];

    quarantine = load("1", NOW);
    BH_CHECK_EQ("an empty folder", quarantine.next, 0);
    bh_quarantine_fini(&quarantine);
    for (uint32_t n = 0; n < BH_CRASHES_MAX; n++)
        leave(n, &(struct bh_crash){ .at_ns = NOW - (n + 60) % BH_CRASHES_MAX, .version = "1" });
    path_of(9, "json", path);
    assert_int_equal(bh_file_replace(path, "{", 1, 0600, &err), BH_OK);
    quarantine = load("1", NOW);
    BH_CHECK_EQ("a damaged file goes first", quarantine.next, 9);
    BH_CHECK_EQ("all others count", quarantine.count, BH_CRASHES_MAX - 1);
    bh_quarantine_fini(&quarantine);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    quarantine = load("1", NOW);
    BH_CHECK_EQ("a FIFO is not waited for", quarantine.count, BH_CRASHES_MAX - 1);
    bh_quarantine_fini(&quarantine);
    assert_int_equal(unlink(path), 0);
    leave(9, &(struct bh_crash){ .at_ns = NOW - 9, .version = "1" });
    quarantine = load("1", NOW);
    BH_CHECK_EQ("then the oldest", quarantine.next, 3);
    bh_quarantine_fini(&quarantine);
    for (uint32_t n = 0; n < BH_CRASHES_MAX; n++) {
        path_of(n, "block", path);
        blocks += access(path, F_OK) == 0;
    }
    BH_CHECK_EQ("blocks", blocks, BH_CRASH_BLOCKS_MAX - 1);
    BH_CHECK_DONE();
}

static void
test_the_description_is_in_order(void **state)
{
    BH_CHECK("keys", bh_fields_ordered(&bh_crash_fields));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_the_description_is_in_order),
    cmocka_unit_test_setup_teardown(test_the_same_request_alone, begin, end),
    cmocka_unit_test_setup_teardown(test_a_caller_who_varies_it, begin, end),
    cmocka_unit_test_setup_teardown(test_callers_of_one_tenant, begin, end),
    cmocka_unit_test_setup_teardown(test_nodes_and_own_work, begin, end),
    cmocka_unit_test_setup_teardown(test_replay, begin, end),
    cmocka_unit_test_setup_teardown(test_bounds, begin, end),
};
BH_TEST_MAIN(tests)
