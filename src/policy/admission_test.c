#include "policy/admission.h"

#include "base/num.h"
#include "model/decode_test.h"
#include "model/geometry.h"

#define SITE                                                                                                 \
    "skus: [{name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}, "                       \
    "{name: large, grade: B, models: [{model: H100-80GB, profile: whole}]}]\n"                               \
    "tenants: [{name: acme}, {name: acme/vision, policy: {%s}}, {name: other}]\n"                            \
    "datasets: [{name: imagenet, path: /imagenet, tenant: acme}]\n"

static struct bh_arena *arena;

static int
open_arena(void **state)
{
    arena = bh_arena_new(8 << 20);
    return 0;
}

static int
close_arena(void **state)
{
    bh_arena_free(arena);
    return 0;
}

static void
admission_decode(const char *yaml, const struct bh_fields *fields, void *ret_struct)
{
    struct bh_err err;

    assert_int_equal(bh_test_decode(yaml, fields, ret_struct, arena, &err), BH_OK);
}

/* The policies of a site where acme/vision's says `policy`. */
static struct bh_admission
admission_of(const char *policy)
{
    struct bh_site *site = bh_arena_alloc(arena, sizeof *site);
    struct bh_admission admission;
    struct bh_err err;
    char yaml[1024];

    snprintf(yaml, sizeof yaml, SITE, policy);
    admission_decode(yaml, &bh_site_fields, site);
    assert_int_equal(bh_site_check(site, &err), BH_OK);
    assert_int_equal(bh_admission_compile(site, arena, &admission, &err), BH_OK);
    return admission;
}

/* A job as its submitter writes it, after what the API adds. */
static struct bh_admission_request
request_of(const char *job)
{
    struct bh_job_spec *spec = bh_arena_alloc(arena, sizeof *spec);
    struct bh_job_numbers numbers;
    struct bh_err err;
    uint64_t now_ns;
    char yaml[512];

    snprintf(yaml, sizeof yaml, "args: [\"true\"]\nsku: small\n%s", job);
    admission_decode(yaml, &bh_job_spec_fields, spec);
    assert_int_equal(bh_spec_check(spec, &numbers, &err), BH_OK);
    assert_int_equal(bh_parse_utc("2026-11-20T09:27:00Z", &now_ns, &err), BH_OK);
    return (struct bh_admission_request){ .spec = spec,
                                          .count = numbers.count,
                                          .gang = numbers.gang > 1 ? numbers.gang : 1,
                                          .cpu_milli = numbers.cpu_milli,
                                          .memory_mib = numbers.memory_bytes >> 20,
                                          .time_limit_ns = numbers.time_limit_ns,
                                          .priority = spec->priority ? spec->priority : BH_PRIORITY_NORMAL,
                                          .models = UINT64_C(1) << BH_GPU_H100_80GB,
                                          .now_ns = now_ns };
}

static bh_rc
admission_ask(const char *policy, const char *job, const struct bh_admission_counts *counts,
              enum bh_admission_rule_id *ret_rule, struct bh_err *err)
{
    struct bh_admission admission = admission_of(policy);
    struct bh_admission_request request = request_of(job);
    const struct bh_admission_policy *asked;
    uint32_t cursor = 0;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && (asked = bh_admission_next(&admission, "acme/vision/train", &cursor)))
        rc = bh_admission_check(asked, &request, counts, ret_rule, err);
    return rc;
}

/* Every entry, with a job that it lets pass and one that it does not, and what it says. */
static void
each_entry_admits_and_denies(void **state)
{
    static const struct {
        const char *policy, *good, *bad;
        enum bh_admission_rule_id rule;
        const char *says;
        /* clang-format off */
    } cases[] = {
        { "skus: [small]", "", NULL, 0, "" },
        { "skus: [large]", NULL, "", BH_ADMISSION_SKUS, "policy.skus of acme/vision: small is not allowed, only large" },
        { "models: [A100-40GB]", NULL, "", BH_ADMISSION_MODELS, "policy.models of acme/vision: small may be placed on H100-80GB" },
        { "models: [H100-80GB]", "", NULL, 0, "" },
        { "kinds: [service]", "kind: service", "", BH_ADMISSION_KINDS, "policy.kinds of acme/vision: batch is not allowed, only service" },
        { "priorities: [low, normal]", "", "priority: high", BH_ADMISSION_PRIORITIES,
          "policy.priorities of acme/vision: high is not allowed, only low, normal" },
        { "contracts: [requeue]", "", "on_preempt: never", BH_ADMISSION_CONTRACTS,
          "policy.contracts of acme/vision: never is not allowed, only requeue" },
        { "images: [\"dir:/srv\"]", "image: \"dir:/srv/a\"", "image: \"dir:/home/a\"", BH_ADMISSION_IMAGES,
          "policy.images of acme/vision: dir:/home/a is not allowed, only dir:/srv" },
        { "images: [\"oci:/srv@sha256\"]", "image: \"oci:/srv/a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"",
          "image: \"oci:/srv/a:latest\"", BH_ADMISSION_IMAGES,
          "policy.images of acme/vision: oci:/srv/a:latest is not allowed, only oci:/srv@sha256" },
        { "images: [\"dir:/srv\"]", NULL, "", BH_ADMISSION_IMAGES, "policy.images of acme/vision: host is not allowed, only dir:/srv" },
        { "mounts: [/data]", "mounts: [{source: /data/x}]", "mounts: [{source: /data/x}, {source: /srv}]",
          BH_ADMISSION_MOUNTS, "policy.mounts of acme/vision: /srv is not allowed, only /data" },
        { "mounts: [/data]", "cwd: /data", "mounts: [{source: /data, write: true}]", BH_ADMISSION_MOUNTS,
          "policy.mounts of acme/vision: /data is not allowed for writing" },
        { "mounts: [none]", "mounts: [{dataset: imagenet}]", NULL, 0, "" },
        { "networks: [none, tenant]", "network: tenant", "network: egress", BH_ADMISSION_NETWORKS,
          "policy.networks of acme/vision: egress is not allowed, only none, tenant" },
        { "networks: [tenant]", "network: tenant", "", BH_ADMISSION_NETWORKS,
          "policy.networks of acme/vision: none is not allowed, only tenant" },
        { "datasets: [imagenet]", "mounts: [{dataset: imagenet}, {source: /x}]", "mounts: [{dataset: llama}]",
          BH_ADMISSION_DATASETS, "policy.datasets of acme/vision: llama is not allowed, only imagenet" },
        { "datasets: [none]", "mounts: [{source: /x}]", "mounts: [{dataset: imagenet}]", BH_ADMISSION_DATASETS,
          "policy.datasets of acme/vision: imagenet is not allowed, only none" },
        { "mounts: [none]", "", "cwd: /home/alice", BH_ADMISSION_MOUNTS, "policy.mounts of acme/vision: /home/alice is not allowed, only none" },
        { "labels: [team, env=dev|prod]", "labels: [env=dev, team=a]", "labels: [env=test, team=a]", BH_ADMISSION_LABELS,
          "policy.labels of acme/vision: a job must have the label env=dev|prod" },
        { "max_count: 2", "count: 2", "count: 3", BH_ADMISSION_COUNT, "policy.max_count of acme/vision: 3 partitions of a member are more than 2" },
        { "max_gang: 2", "gang: 2", "gang: 3", BH_ADMISSION_GANG, "policy.max_gang of acme/vision: 3 members are more than 2" },
        { "max_partitions: 6", "gang: 3\ncount: 2", "gang: 4\ncount: 2", BH_ADMISSION_PARTITIONS, "policy.max_partitions of acme/vision: 8 partitions are more than 6" },
        { "max_cpu: 4", "cpu: 2\ngang: 2", "cpu: 2\ngang: 3", BH_ADMISSION_CPU, "policy.max_cpu of acme/vision: 6000 thousandths of a core are more than 4000" },
        { "max_cpu: 4", NULL, "", BH_ADMISSION_CPU, "policy.max_cpu of acme/vision: cores are limited, and the job does not set them" },
        { "max_memory: 4Gi", "memory: 4Gi", "memory: 2Gi\ngang: 3", BH_ADMISSION_MEMORY, "policy.max_memory of acme/vision: 6144 MiB of memory are more than 4096" },
        { "max_memory: 4Gi", NULL, "", BH_ADMISSION_MEMORY, "policy.max_memory of acme/vision: main memory is limited, and the job does not set it" },
        { "require_time_limit: true", "time_limit: 2h", "", BH_ADMISSION_REQUIRE_TIME_LIMIT,
          "policy.require_time_limit of acme/vision: a job must have a time limit" },
        { "max_time_limit: 1h", "time_limit: 60m", "time_limit: 61m", BH_ADMISSION_TIME_LIMIT,
          "policy.max_time_limit of acme/vision: its time limit is longer than 1h" },
        { "max_time_limit: 1h", NULL, "", BH_ADMISSION_TIME_LIMIT, "policy.max_time_limit of acme/vision: without a time limit it may run longer than 1h" },
        { "hours: [fri 09:27-09:28]", "", NULL, 0, "" },
        { "hours: [mon-fri 10:00-18:00]", NULL, "", BH_ADMISSION_HOURS, "policy.hours of acme/vision: jobs are accepted mon-fri 10:00-18:00" },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        enum bh_admission_rule_id rule = BH_ADMISSION_NONE;
        struct bh_err err = { 0 };

        if (cases[i].good)
            BH_CHECK_EQ(cases[i].policy, admission_ask(cases[i].policy, cases[i].good, NULL, &rule, &err),
                        BH_OK);
        if (!cases[i].bad)
            continue;
        BH_CHECK_EQ(cases[i].policy, admission_ask(cases[i].policy, cases[i].bad, NULL, &rule, &err),
                    BH_DENIED);
        BH_CHECK_EQ(cases[i].policy, rule, cases[i].rule);
        BH_CHECK_STR(cases[i].policy, err.msg, cases[i].says);
        BH_CHECK(cases[i].policy, err.hint[0] != '\0');
    }
    BH_CHECK_DONE();
}

static void
caps_are_judged_by_what_there_is(void **state)
{
    static const struct {
        const char *policy, *job;
        struct bh_admission_counts counts;
        const char *says;
        /* clang-format off */
    } cases[] = {
        { "max_jobs: 5", "", { 3, 1, 0 }, "" },
        { "max_jobs: 5", "", { 3, 2, 0 }, "policy.max_jobs of acme/vision: 5 jobs exist, 1 more would "
                                          "exceed 5" },
        { "max_jobs: 0", "", { 0, 0, 0 }, "policy.max_jobs of acme/vision: 0 jobs exist, 1 more would "
                                          "exceed 0" },
        { "max_pending: 2", "", { 9, 1, 0 }, "" },
        { "max_pending: 2", "", { 0, 2, 0 }, "policy.max_pending of acme/vision: 2 pending jobs exist, 1 more would exceed 2" },
        { "max_sku_partitions: [{sku: small, partitions: 6}]", "gang: 2\ncount: 2", { 0, 0, 2 }, "" },
        { "max_sku_partitions: [{sku: small, partitions: 6}]", "gang: 2\ncount: 2", { 0, 0, 3 },
          "policy.max_sku_partitions of acme/vision: 3 small exist, 4 more would exceed 6" },
        { "max_sku_partitions: [{sku: large, partitions: 0}]", "", { 9, 9, 9 }, "" },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        enum bh_admission_rule_id rule;
        struct bh_err err = { 0 };

        BH_CHECK_EQ(cases[i].policy,
                    admission_ask(cases[i].policy, cases[i].job, &cases[i].counts, &rule, &err),
                    cases[i].says[0] ? BH_DENIED : BH_OK);
        BH_CHECK_STR(cases[i].policy, err.msg, cases[i].says);
        BH_CHECK_EQ(cases[i].policy, admission_ask(cases[i].policy, cases[i].job, NULL, &rule, &err), BH_OK);
    }
    BH_CHECK_DONE();
}

/* A SKU that two models keep is admitted where both are allowed: either may be taken. */
static void
every_model_that_keeps_the_sku_must_be_allowed(void **state)
{
    struct bh_admission admission = admission_of("models: [H100-80GB]");
    struct bh_admission_request request = request_of("");
    enum bh_admission_rule_id rule;
    struct bh_err err;

    request.models |= UINT64_C(1) << BH_GPU_A100_40GB;
    BH_CHECK_EQ("two", bh_admission_check(&admission.policies[0], &request, NULL, &rule, &err), BH_DENIED);
    BH_CHECK_STR("names the other", err.msg,
                 "policy.models of acme/vision: small may be placed on A100-40GB");
    request.models = 0;
    BH_CHECK_EQ("none", bh_admission_check(&admission.policies[0], &request, NULL, &rule, &err), BH_DENIED);
    BH_CHECK_DONE();
}

static void
policies_of_others_do_not_hold(void **state)
{
    struct bh_admission admission = admission_of("max_jobs: 0");
    uint32_t cursor = 0;

    BH_CHECK("below", bh_admission_next(&admission, "acme/vision/train", &cursor));
    BH_CHECK("once", !bh_admission_next(&admission, "acme/vision/train", &cursor));
    cursor = 0;
    BH_CHECK("above", !bh_admission_next(&admission, "acme", &cursor));
    cursor = 0;
    BH_CHECK("a name that begins so", !bh_admission_next(&admission, "acme/vision2", &cursor));
    BH_CHECK_DONE();
}

static void
numbers_in_records_never_change(void **state)
{
    BH_CHECK_EQ("first", bh_admission_number(BH_ADMISSION_SKUS), 2001);
    BH_CHECK_EQ("last", bh_admission_number(BH_ADMISSION_SKU_PARTITIONS), 2019);
    for (int rule = 1; rule < BH_ADMISSIONS; rule++)
        BH_CHECK_EQ(bh_admission_entry((enum bh_admission_rule_id)rule),
                    bh_admission_number((enum bh_admission_rule_id)rule), 2000 + rule);
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_entry_admits_and_denies),
        cmocka_unit_test(caps_are_judged_by_what_there_is),
        cmocka_unit_test(every_model_that_keeps_the_sku_must_be_allowed),
        cmocka_unit_test(policies_of_others_do_not_hold),
        cmocka_unit_test(numbers_in_records_never_change),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
