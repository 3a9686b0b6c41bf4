#include "model/policy.h"

#include "base/num.h"
#include "model/decode_test.h"
#include "model/geometry.h"
#include "model/job.h"

static struct bh_arena *arena;

static int
open_arena(void **state)
{
    arena = bh_arena_new(4 << 20);
    return 0;
}

static int
close_arena(void **state)
{
    bh_arena_free(arena);
    return 0;
}

/* A policy as an administrator writes it. */
static struct bh_site_policy *
policy_of(const char *yaml)
{
    struct bh_site_policy *policy = bh_arena_alloc(arena, sizeof *policy);
    struct bh_err err;

    assert_int_equal(bh_test_decode(yaml, &bh_site_policy_fields, policy, arena, &err), BH_OK);
    return policy;
}

static void
policies_are_read(void **state)
{
    static const struct {
        const char *name, *yaml;
        bh_rc rc;
        const char *says;
    } cases[] = {
        { "all entries",
          "contracts: [requeue]\nhours: [mon-fri 08:00-18:00 +01:00]\nkinds: [batch]\n"
          "labels: [team, env=dev|prod]\nmax_count: 2\nmax_cpu: 0.5\nmax_gang: 4\nmax_jobs: 5\n"
          "max_memory: 64Gi\nmax_pending: 0\nmax_partitions: 8\nmax_sku_partitions: [{sku: small, partitions: 4}]\n"
          "max_time_limit: 24h\nmodels: [H100-80GB]\nmounts: [/data, \"rw:/scratch\"]\n"
          "priorities: [low, normal]\nrequire_time_limit: true\nimages: [host, \"dir:/srv/roots\"]\n"
          "skus: [small]\n",
          BH_OK, "" },
        { "keys of before", "max_pieces: 8\nmax_sku_pieces: [{sku: small, pieces: 4}]\n", BH_OK, "" },
        { "an empty list", "skus: []", BH_INVALID, "skus: an empty list" },
        { "a network", "networks: [host]", BH_INVALID, "networks[0]: \"host\" is not known" },
        { "egress by name", "egress: [example.org tcp 443]", BH_INVALID,
          "egress[0]: \"example.org tcp 443\" is not understood" },
        { "no prefix", "egress_deny: [172.16.0.1/12]", BH_INVALID,
          "egress_deny[0]: \"172.16.0.1/12\" is not understood" },
        { "a resolver out of reach", "{egress: [10.0.0.0/8 tcp], resolvers: [10.0.0.53]}", BH_INVALID,
          "resolvers[0]: egress does not allow 10.0.0.53" },
        { "a resolver alone", "resolvers: [10.0.0.53]", BH_INVALID,
          "resolvers[0]: egress does not allow 10.0.0.53" },
        { "a network of resolvers", "{egress: [10.0.0.0/8], resolvers: [10.0.0.0/8]}", BH_INVALID,
          "resolvers[0]: \"10.0.0.0/8\" is not understood" },
        { "a kind that is none", "kinds: [party]", BH_INVALID, "kinds[0]: \"party\" is not known" },
        { "a model that is none", "models: [H100-80GB, X9]", BH_INVALID, "models[1]: \"X9\" is not known" },
        { "no amount", "max_cpu: many", BH_INVALID, "max_cpu: \"many\"" },
        { "a mount that leads upward", "mounts: [/data/../etc]", BH_INVALID, "mounts[0]" },
        { "a mount that is no path", "mounts: [data]", BH_INVALID, "mounts[0]" },
        { "an image that is none", "images: [docker]", BH_INVALID, "images[0]" },
        { "a label without a name", "labels: [=x]", BH_INVALID, "labels[0]" },
        { "a label without a value", "labels: [x=]", BH_INVALID, "labels[0]" },
        { "a SKU twice", "max_sku_partitions: [{sku: s, partitions: 1}, {sku: s, partitions: 2}]", BH_INVALID,
          "max_sku_partitions: s is named twice" },
        { "no time", "max_time_limit: soon", BH_INVALID, "max_time_limit" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_policy_rules rules;
        struct bh_err err = { 0 };
        bh_rc rc = bh_site_policy_read(policy_of(cases[i].yaml), &rules, &err);

        BH_CHECK_EQ(cases[i].name, rc, cases[i].rc);
        if (rc != BH_OK && !strstr(err.msg, cases[i].says))
            BH_CHECK_STR(cases[i].name, err.msg, cases[i].says);
    }
    BH_CHECK("fields are in order", bh_fields_ordered(&bh_site_policy_fields));
    BH_CHECK("nothing", bh_site_policy_empty(policy_of("{}")));
    BH_CHECK("something", !bh_site_policy_empty(policy_of("max_jobs: 0")));
    BH_CHECK("an empty list is something", !bh_site_policy_empty(policy_of("skus: []")));
    BH_CHECK_DONE();
}

static void
numbers_are_read(void **state)
{
    struct bh_policy_rules rules;
    struct bh_err err;

    assert_int_equal(bh_site_policy_read(policy_of("max_cpu: 1.5\nmax_memory: 2Gi\nmax_jobs: 0\n"
                                                   "kinds: [batch, interactive]\n"
                                                   "models: [H100-80GB]\nmax_time_limit: 1h\n"),
                                         &rules, &err),
                     BH_OK);
    BH_CHECK_EQ("cores", rules.cpu_milli, 1500);
    BH_CHECK_EQ("memory", rules.memory_bytes, UINT64_C(2) << 30);
    BH_CHECK_EQ("none at all", rules.jobs, 0);
    BH_CHECK_EQ("no bound", rules.pending, UINT64_MAX);
    BH_CHECK_EQ("kinds", rules.kinds, (1 << BH_JOB_BATCH) | (1 << BH_JOB_INTERACTIVE));
    BH_CHECK_EQ("models", rules.models, UINT64_C(1) << BH_GPU_H100_80GB);
    BH_CHECK_EQ("any contract", rules.contracts, 0);
    BH_CHECK_EQ("a span", rules.time_limit_ns, UINT64_C(3600) * 1000000000);
    BH_CHECK_DONE();
}

/* 2026-11-20 is a Friday. */
static void
hours_are_those_of_their_zone(void **state)
{
    static const struct {
        const char *name, *hours, *moment;
        bool open;
    } cases[] = {
        { "within", "mon-fri 08:00-18:00", "2026-11-20T09:27:00Z", true },
        { "the first minute", "mon-fri 08:00-18:00", "2026-11-20T08:00:00Z", true },
        { "a second before", "mon-fri 08:00-18:00", "2026-11-20T07:59:59Z", false },
        { "the last minute", "mon-fri 08:00-18:00", "2026-11-20T17:59:59Z", true },
        { "the end", "mon-fri 08:00-18:00", "2026-11-20T18:00:00Z", false },
        { "Saturday", "mon-fri 08:00-18:00", "2026-11-21T09:00:00Z", false },
        { "Monday", "mon-fri 08:00-18:00", "2026-11-23T09:00:00Z", true },
        { "east of Greenwich", "mon-fri 08:00-18:00 +01:00", "2026-11-20T07:00:00Z", true },
        { "and its end", "mon-fri 08:00-18:00 +01:00", "2026-11-20T17:00:00Z", false },
        { "west", "mon-fri 08:00-18:00 -05:00", "2026-11-20T22:59:00Z", true },
        { "west, Friday evening is Saturday in UTC", "fri 18:00-24:00 -05:30", "2026-11-21T05:00:00Z", true },
        { "east, Monday begins on Sunday", "mon 00:00-06:00 +09:00", "2026-11-22T15:00:00Z", true },
        { "over the weekend", "sat-mon 00:00-24:00", "2026-11-22T12:00:00Z", true },
        { "single days", "tue,fri 00:00-24:00", "2026-11-20T00:00:00Z", true },
        { "and not between", "tue,thu 00:00-24:00", "2026-11-20T00:00:00Z", false },
        { "UTC by name", "fri 09:00-10:00 UTC", "2026-11-20T09:30:00Z", true },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        const char *items[] = { cases[i].hours };
        struct bh_site_policy policy = { .hours = { items, 1 } };
        struct bh_policy_rules rules;
        struct bh_err err;
        uint64_t at_ns;

        assert_int_equal(bh_site_policy_read(&policy, &rules, &err), BH_OK);
        assert_int_equal(bh_parse_utc(cases[i].moment, &at_ns, &err), BH_OK);
        BH_CHECK_EQ(cases[i].name, bh_policy_open(&rules, at_ns / 60000000000), cases[i].open);
    }
    BH_CHECK_DONE();
}

static void
hours_that_are_none_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "mon",
        "mon 08:00",
        "mon 08:00-",
        "mon 18:00-08:00",
        "mon 08:00-08:00",
        "mon 8:00-9:00",
        "mon 08:60-09:00",
        "mon 08:00-24:01",
        "mon 25:00-26:00",
        "noday 08:00-09:00",
        "mon- 08:00-09:00",
        "mon, 08:00-09:00",
        "mon 08:00-09:00 CET",
        "mon 08:00-09:00 +15:00",
        "mon 08:00-09:00 +1",
        "mon 08:00-09:00 ",
        "mon 08:00-09:00x",
        "mon  08:00-09:00",
    };

    for (size_t i = 0; i < BH_COUNT(wrong); i++) {
        const char *items[] = { wrong[i] };
        struct bh_site_policy policy = { .hours = { items, 1 } };
        struct bh_policy_rules rules;
        struct bh_err err;

        BH_CHECK_EQ(wrong[i], bh_site_policy_read(&policy, &rules, &err), BH_INVALID);
    }
    BH_CHECK_DONE();
}

static void
entries_allow_what_they_say(void **state)
{
    const struct {
        const char *name;
        bool got, wanted;
    } cases[] = {
        { "a mount", bh_policy_mount_allows("/data", "/data", false), true },
        { "below", bh_policy_mount_allows("/data", "/data/a", false), true },
        { "not beside", bh_policy_mount_allows("/data", "/database", false), false },
        { "not above", bh_policy_mount_allows("/data/a", "/data", false), false },
        { "not for writing", bh_policy_mount_allows("/data", "/data", true), false },
        { "for writing", bh_policy_mount_allows("rw:/data", "/data/a", true), true },
        { "and for reading", bh_policy_mount_allows("rw:/data", "/data/a", false), true },
        { "none", bh_policy_mount_allows("none", "/data", false), false },
        { "host", bh_policy_image_allows("host", "host"), true },
        { "not a folder", bh_policy_image_allows("host", "dir:/srv"), false },
        { "a folder", bh_policy_image_allows("dir:/srv", "dir:/srv/a"), true },
        { "not one beside", bh_policy_image_allows("dir:/srv", "dir:/srv2"), false },
        { "not host", bh_policy_image_allows("dir:/", "host"), false },
        { "a label", bh_policy_label_meets("team", "team=a"), true },
        { "another", bh_policy_label_meets("team", "teams=a"), false },
        { "a value", bh_policy_label_meets("env=dev|prod", "env=prod"), true },
        { "not a part of one", bh_policy_label_meets("env=dev|prod", "env=pro"), false },
        { "not both", bh_policy_label_meets("env=dev|prod", "env=dev|prod"), false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name, cases[i].got, cases[i].wanted);
    BH_CHECK_DONE();
}

/* Each entry above, one below that narrows it, and one that would widen it. */
static void
a_policy_below_can_only_narrow(void **state)
{
    static const struct {
        const char *above, *narrower, *wider, *says;
        /* clang-format off */
    } cases[] = {
        { "skus: [small, medium]", "skus: [small]", "skus: [small, large]", "skus: large" },
        { "models: [H100-80GB]", "models: [H100-80GB]", "models: [A100-40GB]", "models: A100-40GB" },
        { "kinds: [batch, service]", "kinds: [batch]", "kinds: [interactive]", "kinds: interactive" },
        { "priorities: [low, normal]", "priorities: [low]", "priorities: [high]", "priorities: high" },
        { "contracts: [requeue]", "contracts: [requeue]", "contracts: [never]", "contracts: never" },
        { "networks: [none, tenant]", "networks: [none]", "networks: [egress]", "networks: egress" },
        { "egress: [10.0.0.0/8 tcp 443]", "egress: [10.1.0.0/16 tcp 443]", "egress: [10.1.0.0/16 tcp]",
          "egress: 10.1.0.0/16 tcp" },
        { "{egress: [10.0.0.0/8], resolvers: [10.0.0.53]}", "egress: [10.0.0.53 udp 53]",
          "{egress: [10.0.0.0/8], resolvers: [10.0.0.54]}", "resolvers: 10.0.0.54" },
        { "images: [\"dir:/srv\"]", "images: [\"dir:/srv/a\"]", "images: [host]", "images: host" },
        { "images: [\"oci:/srv@sha256\"]", "images: [\"oci:/srv/a@sha256\"]", "images: [\"oci:/srv/a\"]", "images: oci:/srv/a" },
        { "mounts: [/data]", "mounts: [/data/a]", "mounts: [\"rw:/data/a\"]", "mounts: rw:/data/a" },
        { "mounts: [none]", "mounts: [none]", "mounts: [/data]", "mounts: /data" },
        { "datasets: [a, b]", "datasets: [b]", "datasets: [b, c]", "datasets: c" },
        { "datasets: [a]", "datasets: [none]", "datasets: [b]", "datasets: b" },
        { "datasets: [none]", "datasets: [none]", "datasets: [a]", "datasets: a" },
        { "mounts: [\"rw:/data\"]", "mounts: [/data, none]", "mounts: [/]", "mounts: /" },
        { "labels: [env=dev|prod]", "labels: [env=dev, team]", "labels: [env=dev|test]", "labels: env=dev|test" },
        { "labels: [env=dev|prod]", "labels: [env=prod]", "labels: [env]", "labels: env" },
        { "max_count: 4", "max_count: 4", "max_count: 5", "max_count: 5" },
        { "max_gang: 4", "max_gang: 1", "max_gang: 5", "max_gang: 5" },
        { "max_partitions: 4", "max_partitions: 0", "max_partitions: 5", "max_partitions: 5" },
        { "max_cpu: 4", "max_cpu: 3.5", "max_cpu: 4.5", "max_cpu: 4.5" },
        { "max_memory: 4Gi", "max_memory: 4096Mi", "max_memory: 5Gi", "max_memory: 5Gi" },
        { "max_time_limit: 1h", "max_time_limit: 60m", "max_time_limit: 61m", "max_time_limit: 61m" },
        { "max_jobs: 4", "max_jobs: 3", "max_jobs: 5", "max_jobs: 5" },
        { "max_pending: 4", "max_pending: 3", "max_pending: 5", "max_pending: 5" },
        { "max_sku_partitions: [{sku: s, partitions: 4}]", "max_sku_partitions: [{sku: s, partitions: 4}, {sku: t, partitions: 9}]",
          "max_sku_partitions: [{sku: s, partitions: 5}]", "max_sku_partitions: s" },
        { "hours: [mon-fri 08:00-18:00]", "hours: [mon-thu 09:00-17:00, fri 08:00-12:00]",
          "hours: [mon-sat 08:00-18:00]", "hours: mon-sat" },
        { "hours: [mon-fri 08:00-18:00]", "hours: [tue 10:00-20:00 +02:00]",
          "hours: [tue 08:00-18:00 +01:00]", "hours: tue" },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_policy_rules above, narrower, wider, nothing;
        struct bh_err err = { 0 };

        assert_int_equal(bh_site_policy_read(policy_of(cases[i].above), &above, &err), BH_OK);
        assert_int_equal(bh_site_policy_read(policy_of(cases[i].narrower), &narrower, &err), BH_OK);
        assert_int_equal(bh_site_policy_read(policy_of(cases[i].wider), &wider, &err), BH_OK);
        assert_int_equal(bh_site_policy_read(policy_of("{}"), &nothing, &err), BH_OK);
        BH_CHECK_EQ(cases[i].narrower, bh_policy_check_narrower(&above, &narrower, &err), BH_OK);
        BH_CHECK_EQ("inherits", bh_policy_check_narrower(&above, &nothing, &err), BH_OK);
        BH_CHECK_EQ("begins", bh_policy_check_narrower(&nothing, &wider, &err), BH_OK);
        BH_CHECK_EQ(cases[i].wider, bh_policy_check_narrower(&above, &wider, &err), BH_INVALID);
        if (!strstr(err.msg, cases[i].says))
            BH_CHECK_STR(cases[i].wider, err.msg, cases[i].says);
    }
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_are_read),
        cmocka_unit_test(numbers_are_read),
        cmocka_unit_test(hours_are_those_of_their_zone),
        cmocka_unit_test(hours_that_are_none_are_refused),
        cmocka_unit_test(entries_allow_what_they_say),
        cmocka_unit_test(a_policy_below_can_only_narrow),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
