#include "model/spec.h"

#include "base/json.h"
#include "base/test.h"
#include "base/time.h"

static bh_rc
spec_test_check(const char *json, struct bh_job_numbers *ret_numbers, struct bh_err *err)
{
    struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_job_spec spec;
    bh_rc rc = bh_json_decode(json, strlen(json), &bh_job_spec_fields, &spec, arena, err);

    if (rc == BH_OK)
        rc = bh_spec_check(&spec, ret_numbers, err);
    bh_arena_free(arena);
    return rc;
}

#define TEXT_60 "123456789012345678901234567890123456789012345678901234567890"
#define PART_102 "/" TEXT_60 "12345678901234567890123456789012345678901"
#define PATH_1020 PART_102 PART_102 PART_102 PART_102 PART_102 PART_102 PART_102 PART_102 PART_102 PART_102
#define JOB(more) "{\"args\":[\"sh\"],\"sku\":\"small\"" more "}"

static const struct {
    const char *name, *json;
    bh_rc rc;
    const char *says;
} specs[] = {
    { "least", JOB(""), BH_OK, NULL },
    { "all",
      JOB(",\"count\":16,\"cpu\":\"0.5\",\"cwd\":\"/work\",\"env\":[\"A=1\",\"B_2=\"],"
          "\"grace\":\"30s\",\"hold\":true,\"kind\":\"service\",\"memory\":\"8Gi\","
          "\"mounts\":[{\"source\":\"/data\",\"target\":\"/d\",\"write\":true}],"
          "\"name\":\"n\",\"on_preempt\":\"suspend\",\"pids\":100,"
          "\"priority\":\"high\","
          "\"tenant\":\"acme/vision\",\"time_limit\":\"1-00:00:00\""),
      BH_OK, NULL },
    { "deadline in", JOB(",\"deadline\":\"+2h\""), BH_OK, NULL },
    { "deadline at", JOB(",\"deadline\":\"2026-11-20T09:27:00Z\""), BH_OK, NULL },
    { "deadline junk", JOB(",\"deadline\":\"soon\""), BH_INVALID,
      "deadline: \"soon\" is not a moment like 2026-11-20T09:27:00Z" },
    { "checkpoint", JOB(",\"checkpoint_signal\":\"SIGUSR2\",\"on_preempt\":\"checkpoint\""), BH_OK, NULL },
    { "no such signal", JOB(",\"checkpoint_signal\":\"KILL\",\"on_preempt\":\"checkpoint\""), BH_INVALID,
      "checkpoint_signal: \"KILL\" is not known" },
    { "signal alone", JOB(",\"checkpoint_signal\":\"USR1\""), BH_INVALID,
      "checkpoint_signal: only with on_preempt: checkpoint" },
    { "no args", "{\"args\":[],\"sku\":\"small\"}", BH_INVALID, "args: no command" },
    { "empty program", "{\"args\":[\"\"],\"sku\":\"s\"}", BH_INVALID, "args: no command" },
    { "no sku", "{\"args\":[\"sh\"]}", BH_INVALID, "\"sku\" is missing" },
    { "odd sku", "{\"args\":[\"sh\"],\"sku\":\"Big One\"}", BH_INVALID,
      "sku: \"Big One\" is not a SKU's name" },
    { "odd tenant", JOB(",\"tenant\":\"../acme\""), BH_INVALID,
      "tenant: \"../acme\" is not a tenant's path" },
    { "line break in name", JOB(",\"name\":\"a\\nb\""), BH_INVALID,
      "name: has a control or another invisible character" },
    { "a name that turns", "{\"sku\":\"s\",\"args\":[\"a\"],\"name\":\"a\xe2\x80\xae\"}", BH_INVALID,
      "name: has a control or another invisible character" },
    { "a name like another", "{\"sku\":\"s\",\"args\":[\"a\"],\"name\":\"hon\xef\xb8\x8f-svc\"}", BH_INVALID,
      "name: has a control or another invisible character" },
    { "escape in name", JOB(",\"name\":\"a\\u001b[2J\""), BH_INVALID, "name: control character 0x1b" },
    { "the longest name", JOB(",\"name\":\"" TEXT_60 TEXT_60 "\""), BH_OK, NULL },
    { "a name too long", JOB(",\"name\":\"" TEXT_60 TEXT_60 "1\""), BH_RANGE, "name: longer than 120 bytes" },
    { "labels", JOB(",\"labels\":[\"a/b.c-d_e=f g=h\",\"A=\xc3\xbc\"]"), BH_OK, NULL },
    { "the longest label", JOB(",\"labels\":[\"" TEXT_60 "123=" TEXT_60 "123\"]"), BH_OK, NULL },
    { "a label's name too long", JOB(",\"labels\":[\"" TEXT_60 "1234=a\"]"), BH_INVALID,
      "labels[0]: \"" TEXT_60 "\" is not NAME=value" },
    { "a label's value too long", JOB(",\"labels\":[\"a=b\",\"a2=" TEXT_60 "1234\"]"), BH_INVALID,
      "labels[1]: \"a2=123456789012345678901234567890123456789012345678901234567\" is not NAME=value" },
    { "a label's value that turns", JOB(",\"labels\":[\"a=\xe2\x80\xae\"]"), BH_INVALID,
      "labels[0]: \"a=???\" is not NAME=value" },
    { "a label's name that turns", JOB(",\"labels\":[\"a\xe2\x81\xa6=b\"]"), BH_INVALID,
      "labels[0]: \"a?\?\?=b\" is not NAME=value" },
    { "a label of two lines", JOB(",\"labels\":[\"a=b\\nc\"]"), BH_INVALID, NULL },
    { "a label without a value", JOB(",\"labels\":[\"a=\"]"), BH_INVALID, NULL },
    { "a label twice", JOB(",\"labels\":[\"a=b\",\"a=c\"]"), BH_INVALID, "labels[1]: a is given twice" },
    { "env's name that turns", JOB(",\"env\":[\"A\xe2\x80\xae=1\"]"), BH_INVALID,
      "env[0]: \"A?\?\?=1\" is not NAME=value" },
    { "env without =", JOB(",\"env\":[\"A=1\",\"B\"]"), BH_INVALID, "env[1]: \"B\" is not NAME=value" },
    { "env without name", JOB(",\"env\":[\"=1\"]"), BH_INVALID, "env[0]: \"=1\" is not NAME=value" },
    { "relative mount", JOB(",\"mounts\":[{\"source\":\"data\"}]"), BH_INVALID,
      "mounts[0]: source: \"data\" is not absolute" },
    { "mount that escapes", JOB(",\"mounts\":[{\"source\":\"/work/../etc\"}]"), BH_INVALID,
      "mounts[0]: source: \"/work/../etc\" leads upward with \"..\"" },
    { "target that escapes", JOB(",\"mounts\":[{\"source\":\"/work\",\"target\":\"/..\"}]"), BH_INVALID,
      "mounts[0]: target: \"/..\" leads upward with \"..\"" },
    { "target that turns the order of writing",
      JOB(",\"mounts\":[{\"source\":\"/work\",\"target\":\"/a\xe2\x80\xae"
          "b\"}]"),
      BH_INVALID, "mounts[0]: target: \"/a???b\" has invisible characters" },
    { "source with a character that is not seen", JOB(",\"mounts\":[{\"source\":\"/a\xe2\x80\x8b\"}]"),
      BH_INVALID, "mounts[0]: source: \"/a???\" has invisible characters" },
    { "dataset", JOB(",\"mounts\":[{\"dataset\":\"imagenet\",\"write\":true}]"), BH_OK, NULL },
    { "dataset at", JOB(",\"mounts\":[{\"dataset\":\"imagenet\",\"target\":\"/d\"}]"), BH_OK, NULL },
    { "odd dataset", JOB(",\"mounts\":[{\"dataset\":\"../x\"}]"), BH_INVALID,
      "mounts[0]: dataset: \"../x\" is not a dataset's name" },
    { "a target too long", JOB(",\"mounts\":[{\"dataset\":\"a\",\"target\":\"" PATH_1020 "\"}]"), BH_INVALID,
      "mounts[0]: target: \"/" TEXT_60
      "1234567890123456789\" is longer than 1000 bytes, the limit for a path inside a job" },
    { "a source too long for a target", JOB(",\"mounts\":[{\"source\":\"" PATH_1020 "\"}]"), BH_INVALID,
      "mounts[0]: target: \"/" TEXT_60
      "1234567890123456789\" is longer than 1000 bytes, the limit for a path inside a job" },
    { "a long source elsewhere", JOB(",\"mounts\":[{\"source\":\"" PATH_1020 "\",\"target\":\"/d\"}]"), BH_OK,
      NULL },
    { "in the sandbox's folder", JOB(",\"mounts\":[{\"source\":\"/a\",\"target\":\"/usr/a\"}]"), BH_INVALID,
      "mounts[0]: target: \"/usr/a\" is below /usr, which belongs to the sandbox" },
    { "in one another", JOB(",\"mounts\":[{\"source\":\"/a\"},{\"source\":\"/b\",\"target\":\"/a/b\"}]"),
      BH_INVALID, "mounts[1]: \"/a/b\" and mounts[0] at \"/a\" overlap" },
    { "side by side", JOB(",\"mounts\":[{\"source\":\"/a\"},{\"source\":\"/b\",\"target\":\"/ab\"}]"), BH_OK,
      NULL },
    { "cwd in a mount of itself", JOB(",\"cwd\":\"/a/b\",\"mounts\":[{\"source\":\"/a\"}]"), BH_OK, NULL },
    { "cwd in a mount of another",
      JOB(",\"cwd\":\"/a/b\",\"mounts\":[{\"source\":\"/c\",\"target\":\"/a\"}]"), BH_INVALID,
      "cwd: \"/a/b\" and mounts[0] at \"/a\" overlap" },
    { "cwd in the sandbox's folder", JOB(",\"cwd\":\"/etc/ssl\""), BH_INVALID,
      "cwd: \"/etc/ssl\" is below /etc, which belongs to the sandbox" },
    { "empty mount", JOB(",\"mounts\":[{\"write\":true}]"), BH_INVALID,
      "mounts[0]: neither a source nor a dataset" },
    { "mount of both", JOB(",\"mounts\":[{\"dataset\":\"a\",\"source\":\"/a\"}]"), BH_INVALID,
      "mounts[0]: both a source and a dataset" },
    { "relative cwd", JOB(",\"cwd\":\"work\""), BH_INVALID, "cwd: \"work\" is not absolute" },
    { "scratch", JOB(",\"scratch\":\"20Gi\""), BH_OK, NULL },
    { "little scratch", JOB(",\"scratch\":\"1Mi\""), BH_RANGE,
      "scratch: \"1Mi\" is not within 16Mi and 16Ti" },
    { "unknown image", JOB(",\"image\":\"docker://x\""), BH_INVALID,
      "image: \"docker://x\" names no registry: write it in full, as docker.io/library/debian:12" },
    { "image of a registry", "{\"image\":\"docker://nvcr.io/a:1\",\"sku\":\"s\",\"tenant\":\"a\"}", BH_OK,
      NULL },
    { "image without a tag", JOB(",\"image\":\"oci:/x\""), BH_INVALID, "image: \"oci:/x\" has no tag" },
    { "image that escapes", JOB(",\"image\":\"dir:/a/../b\""), BH_INVALID,
      "image: \"dir:/a/../b\" leads upward with \"..\"" },
    { "network", JOB(",\"bandwidth\":\"100Mbit\",\"network\":\"tenant\""), BH_OK, NULL },
    { "unknown network", JOB(",\"network\":\"host\""), BH_INVALID, NULL },
    { "bandwidth alone", JOB(",\"bandwidth\":\"100Mbit\""), BH_INVALID, "bandwidth: the job has no network" },
    { "odd bandwidth", JOB(",\"bandwidth\":\"fast\",\"network\":\"egress\""), BH_INVALID,
      "bandwidth: \"fast\" is not a bandwidth" },
    { "count over", JOB(",\"count\":17"), BH_RANGE, "count: 17 is over 16 partitions" },
    { "count of none", JOB(",\"count\":0"), BH_RANGE, "count: must be at least 1" },
    { "gang of none", JOB(",\"gang\":0"), BH_RANGE, "gang: must be at least 1" },
    { "count negative", JOB(",\"count\":-1"), BH_RANGE, "count: must not be negative" },
    { "count a fraction", JOB(",\"count\":0.5"), BH_INVALID,
      "count: fractions are not "
      "accepted; expected an integer" },
    { "count a string", JOB(",\"count\":\"x\""), BH_INVALID, "count: expected an integer" },
    { "gang over", JOB(",\"gang\":65"), BH_RANGE, "gang: 65 is over 64 members" },
    { "gang of too many pieces", JOB(",\"count\":5,\"gang\":64"), BH_RANGE,
      "gang: 64 members of 5 partitions are over 256 partitions" },
    { "the largest gang", JOB(",\"count\":4,\"gang\":64"), BH_OK, NULL },
    { "cpu nothing", JOB(",\"cpu\":\"0\""), BH_RANGE, "cpu: 0 cores are too few to start a job" },
    { "cpu below what starts", JOB(",\"cpu\":\"0.001\""), BH_RANGE,
      "cpu: 0.001 cores are too few to start a job" },
    { "the least cpu", JOB(",\"cpu\":\"0.01\""), BH_OK, NULL },
    { "too many cores", JOB(",\"cpu\":\"1001\""), BH_RANGE, "cpu: 1001 cores are more than 1000" },
    { "cpu of Kubernetes", JOB(",\"cpu\":\"500m\""), BH_INVALID, NULL },
    { "memory below what starts", JOB(",\"memory\":\"4Ki\""), BH_RANGE,
      "memory: 4096 bytes are too few to start a job" },
    { "memory in MiB, as Slurm has it", JOB(",\"memory\":\"512\""), BH_RANGE,
      "memory: 512 bytes are too few to start a job" },
    { "the least memory", JOB(",\"memory\":\"8Mi\""), BH_OK, NULL },
    { "memory nothing", JOB(",\"memory\":\"0\""), BH_RANGE, "memory: 0 bytes are too few to start a job" },
    { "the most memory", JOB(",\"memory\":\"128Ti\""), BH_OK, NULL },
    { "memory that no machine has", JOB(",\"memory\":\"99999Ti\""), BH_RANGE,
      "memory: 99999Ti is more than 128Ti, the maximum" },
    { "memory overflow", JOB(",\"memory\":\"99999999999999999999\""), BH_RANGE, NULL },
    { "time nothing", JOB(",\"time_limit\":\"0s\""), BH_RANGE, "time_limit: must be more than nothing" },
    { "time too long", JOB(",\"time_limit\":\"367d\""), BH_RANGE,
      "time_limit: \"367d\" is longer than 366 days, the longest on any site" },
    { "grace too long", JOB(",\"grace\":\"2h\""), BH_RANGE,
      "grace: \"2h\" is longer than 1 hour, the longest on any site" },
    { "unknown key", JOB(",\"gpus\":1"), BH_INVALID, "unknown key \"gpus\" in job" },
    { "unknown priority", JOB(",\"priority\":\"max\""), BH_INVALID,
      "priority: \"max\" is not one of low, normal, high, urgent" },
};

static void
specifications_are_checked(void **state)
{
    for (size_t i = 0; i < BH_COUNT(specs); i++) {
        struct bh_job_numbers numbers = { .count = 99 };
        struct bh_err err = { 0 };
        bh_rc rc = spec_test_check(specs[i].json, &numbers, &err);

        BH_CHECK_EQ(specs[i].name, rc, specs[i].rc);
        if (specs[i].says)
            BH_CHECK_STR(specs[i].name, err.msg, specs[i].says);
        if (rc != BH_OK)
            BH_CHECK_EQ(specs[i].name, numbers.count, 99); /* untouched */
    }
    BH_CHECK_DONE();
}

/* What no command line could hand on is refused before a node tries. */
static void
texts_have_a_longest(void **state)
{
    static const struct {
        const char *name, *before;
        int bytes;
        const char *after, *says; /* NULL: it is good */
    } rows[] = {
        { "env", "{\"sku\":\"a\",\"args\":[\"a\"],\"env\":[\"A=", 65534, "\"]}", NULL },
        { "env too long", "{\"sku\":\"a\",\"args\":[\"a\"],\"env\":[\"A=", 65535, "\"]}",
          "env[0]: longer than 65536 bytes" },
        { "an argument", "{\"sku\":\"a\",\"args\":[\"a\",\"", 65536, "\"]}", NULL },
        { "an argument too long", "{\"sku\":\"a\",\"args\":[\"a\",\"", 65537, "\"]}",
          "args[1]: longer than 65536 bytes" },
        { "a label too long", "{\"sku\":\"a\",\"args\":[\"a\"],\"labels\":[\"a=", 65535, "\"]}",
          "labels[0]: longer than 65536 bytes" },
    };
    static char json[70000];

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_job_numbers numbers;
        struct bh_err err = { 0 };
        bh_rc rc;

        snprintf(json, sizeof json, "%s%0*d%s", rows[i].before, rows[i].bytes, 0, rows[i].after);
        rc = spec_test_check(json, &numbers, &err);
        BH_CHECK_EQ(rows[i].name, rc, rows[i].says ? BH_RANGE : BH_OK);
        if (rows[i].says)
            BH_CHECK_STR(rows[i].name, err.msg, rows[i].says);
    }
    BH_CHECK_DONE();
}

static void
numbers_are_read(void **state)
{
    struct bh_job_numbers numbers;
    struct bh_err err;

    assert_int_equal(spec_test_check(JOB(""), &numbers, &err), BH_OK);
    BH_CHECK_EQ("count", numbers.count, 1);
    BH_CHECK_EQ("grace", numbers.grace_ns, 10 * BH_NS_PER_S);
    BH_CHECK_EQ("no limit", numbers.time_limit_ns, 0);
    assert_int_equal(spec_test_check(JOB(",\"cpu\":\"0.5\",\"memory\":\"8Gi\",\"time_limit\":\"2h\","
                                         "\"grace\":\"0s\",\"count\":3,\"pids\":9"),
                                     &numbers, &err),
                     BH_OK);
    BH_CHECK_EQ("cpu", numbers.cpu_milli, 500);
    BH_CHECK_EQ("memory", numbers.memory_bytes, 8LL << 30);
    BH_CHECK_EQ("time", numbers.time_limit_ns, 7200 * BH_NS_PER_S);
    BH_CHECK_EQ("no grace", numbers.grace_ns, 0);
    BH_CHECK_EQ("count said", numbers.count, 3);
    BH_CHECK_EQ("pids", numbers.pids, 9);
    BH_CHECK_DONE();
}

static void
a_mount_has_its_place(void **state)
{
    static const struct {
        const char *name;
        struct bh_mount_spec mount;
        const char *target;
    } cases[] = {
        { "said", { .source = "/a", .target = "/b" }, "/b" },
        { "where it is", { .source = "/a" }, "/a" },
        { "empty", { .source = "/a", .target = "" }, "/a" },
        { "a dataset's", { .dataset = "imagenet" }, "/datasets/imagenet" },
        { "a dataset's, said", { .dataset = "imagenet", .target = "/d" }, "/d" },
        { "the longest",
          { .dataset = "a23456789012345678901234567890123456789012345678901234567890123" },
          "/datasets/a23456789012345678901234567890123456789012345678901234567890123" },
    };
    char memory[BH_MOUNT_TARGET_MAX];

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_STR(cases[i].name, bh_mount_target(&cases[i].mount, memory), cases[i].target);
    BH_CHECK_DONE();
}

/* A job that was taken when more was let through starts still. */
static void
numbers_of_what_was_taken(void **state)
{
    const struct bh_job_spec spec = { .sku = "small", .name = "hon\xef\xb8\x8f-svc", .count = 3 };
    struct bh_job_numbers numbers = { 0 };
    struct bh_err err = { 0 };

    BH_CHECK_EQ("not taken", bh_spec_check(&spec, &numbers, &err), BH_INVALID);
    BH_CHECK_EQ("read", bh_spec_numbers(&spec, &numbers, &err), BH_OK);
    BH_CHECK_EQ("count", numbers.count, 3);
    BH_CHECK_DONE();
}

/* A job cannot set what every job has. */
static void
a_working_directory_of_its_own(void **state)
{
    BH_CHECK("none", !bh_spec_cwd_folder(&(struct bh_job_spec){ .cwd = NULL }));
    BH_CHECK("empty", !bh_spec_cwd_folder(&(struct bh_job_spec){ .cwd = "" }));
    BH_CHECK("/tmp", !bh_spec_cwd_folder(&(struct bh_job_spec){ .cwd = "/tmp" }));
    BH_CHECK("/", !bh_spec_cwd_folder(&(struct bh_job_spec){ .cwd = "/" }));
    BH_CHECK("the node's", bh_spec_cwd_folder(&(struct bh_job_spec){ .cwd = "/tmp/x" }));
    BH_CHECK_DONE();
}

static void
descriptions_are_in_order(void **state)
{
    assert_true(bh_fields_ordered(&bh_job_spec_fields));
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(specifications_are_checked),
                                           cmocka_unit_test(texts_have_a_longest),
                                           cmocka_unit_test(numbers_are_read),
                                           cmocka_unit_test(numbers_of_what_was_taken),
                                           cmocka_unit_test(a_working_directory_of_its_own),
                                           cmocka_unit_test(a_mount_has_its_place),
                                           cmocka_unit_test(descriptions_are_in_order) };
BH_TEST_MAIN(tests)
