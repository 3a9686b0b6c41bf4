#include "policy/explain.h"

#include "base/test.h"
#include "model/geometry.h"
#include "base/time.h"

/* clang-format off */
static const struct bh_dir_tenant tenants[] = {
    { { 1 }, { 0 }, "acme", BH_TENANT_ORGANIZATION, false },
    { { 2 }, { 1 }, "acme/vision", BH_TENANT_DEPARTMENT, false },
    { { 3 }, { 0 }, "secret-customer", BH_TENANT_ORGANIZATION, false },
};
/* clang-format on */
static const struct bh_dir_sku skus[] = { { { 1 }, "small", NULL, NULL, false } };
static const struct bh_dir_gpu gpus[] = { { { 1 }, "GPU-1234" } };
static const struct bh_directory dir = {
    .tenants = tenants, .tenant_count = 3, .skus = skus, .sku_count = 1, .gpus = gpus, .gpu_count = 1
};
static const uint32_t own[] = { 1, 2 };

#define NOW (UINT64_C(1000) * BH_NS_PER_S)
#define IN_4M10S (NOW + 250 * BH_NS_PER_S)

static const char *
explain_send(void (*what)(struct bh_buf *, const struct bh_explain *, const struct bh_reason *),
             const struct bh_reason *reason, uint32_t holder, char memory[512])
{
    struct bh_explain how = {
        .dir = &dir, .visible = own, .visible_count = 2, .holder_tenant = { holder }, .now_ns = NOW
    };
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, 512);
    what(&out, &how, reason);
    return bh_buf_text(&out);
}

static const struct {
    struct bh_reason reason;
    uint32_t holder;
    const char *sentence, *next;
} cases[] = {
    { { .code = BH_REASON_QUOTA_SKU,
        .tenant = { 2 },
        .sku = { 1 },
        .job = { 12 },
        .limit = 2,
        .used = 2,
        .wanted = 1,
        .frees_at_ns = IN_4M10S },
      2,
      "acme/vision is at its limit of 2 small: 2 in use, this job needs 1 more",
      "frees in 4m10s at the latest, when job 12 reaches its time limit; or have an admin "
      "raise the limit of acme/vision" },
    { { .code = BH_REASON_QUOTA_GPU, .tenant = { 2 }, .limit = 6300, .used = 4800, .wanted = 1800 },
      0,
      "acme/vision would go over its limit of 1.5 GPUs: 8/7 GPUs in use, this job needs "
      "3/7 GPU more",
      "it is unknown when capacity frees: jobs without a time limit hold it; cancel one, or "
      "set time_limit when submitting; or have an admin raise the limit of acme/vision" },
    { { .code = BH_REASON_NO_CAPACITY,
        .sku = { 1 },
        .wanted = 1,
        .job = { 12 },
        .frees_at_ns = IN_4M10S,
        .leaving = true },
      2,
      "all GPUs that could hold 1 small are in use",
      "frees in 4m10s at the latest, when the grace of job 12 is over" },
    { { .code = BH_REASON_NO_CAPACITY, .sku = { 1 }, .wanted = 1, .job = { 12 } },
      2,
      "all GPUs that could hold 1 small are in use",
      "it is unknown when capacity frees: job 12 holds it without a time limit; `bulkhead "
      "cancel 12` frees it" },
    { { .code = BH_REASON_NO_CAPACITY,
        .sku = { 1 },
        .wanted = 1,
        .job = { 12 },
        .guarantee = { BH_GUARANTEE_USED, { 2 }, false, 16800, 4200, 16800, 0 } },
      2,
      "all GPUs that could hold 1 small are in use; of the 4 GPUs that acme/vision is "
      "guaranteed 1 GPU is in use, and this job needs 4 GPUs more",
      "it is unknown when capacity frees: job 12 holds it without a time limit; `bulkhead "
      "cancel 12` frees it; or have an admin raise the guarantee of acme/vision" },
    { { .code = BH_REASON_NO_CAPACITY,
        .sku = { 1 },
        .wanted = 1,
        .job = { 12 },
        .guarantee = { BH_GUARANTEE_USED, { 2 }, false, 4200, 4200, 4200, 0, 4200 } },
      2,
      "all GPUs that could hold 1 small are in use; of the 1 GPU that acme/vision is guaranteed "
      "1 GPU is in use or being freed for its jobs, and this job needs 1 GPU more",
      "it is unknown when capacity frees: job 12 holds it without a time limit; `bulkhead "
      "cancel 12` frees it; or have an admin raise the guarantee of acme/vision" },
    { { .code = BH_REASON_NO_CAPACITY,
        .sku = { 1 },
        .wanted = 1,
        .job = { 12 },
        .guarantee = { BH_GUARANTEE_RESET, { 2 }, false, 16800, 4200, 4200, 0 } },
      2,
      "all GPUs that could hold 1 small are in use; the guarantee of acme/vision covers it, but "
      "what others use beyond their guarantees is on GPUs that must be reset first",
      "it is unknown when capacity frees: job 12 holds it without a time limit; `bulkhead "
      "cancel 12` frees it" },
    { { .code = BH_REASON_NO_CAPACITY,
        .sku = { 1 },
        .wanted = 1,
        .job = { 12 },
        .guarantee = { BH_GUARANTEE_USED, { 2 }, true, 0, 0, 4200, 0 } },
      2,
      "all GPUs that could hold 1 small are in use; its tenant has no guarantee of its own: "
      "that of acme/vision covers all tenants below it, which cannot reclaim from each other with it; the "
      "guarantee of acme/vision has no room for this job",
      "it is unknown when capacity frees: job 12 holds it without a time limit; `bulkhead "
      "cancel 12` frees it; or have an admin give its tenant a guarantee of its own" },
    { { .code = BH_REASON_NO_CAPACITY,
        .sku = { 1 },
        .wanted = 1,
        .job = { 12 },
        .guarantee = { BH_GUARANTEE_YOUNG, { 2 }, false, 16800, 4200, 4200, IN_4M10S } },
      2,
      "all GPUs that could hold 1 small are in use; the guarantee of acme/vision covers it, "
      "but the jobs by which others exceed their guarantees have not reached their minimum run time",
      "it is unknown when capacity frees: job 12 holds it without a time limit; `bulkhead "
      "cancel 12` frees it; borrowed capacity can be reclaimed in 4m10s" },
    { { .code = BH_REASON_BEHIND,
        .job = { 5 },
        .guarantee = { BH_GUARANTEE_SPENT, { 3 }, false, 16800, 4200, 4200, 0 } },
      1,
      "job 5 comes first and waits for the same capacity; the guarantee of a tenant above covers "
      "it, but it has preempted as often as one job may; it may again when another job ends",
      NULL },
    { { .code = BH_REASON_CORDONED, .gpu = { 1 } },
      2,
      "GPU-1234 could hold it, but is cordoned by an operator",
      "an operator can release it with `bulkhead uncordon GPU-1234`" },
    { { .code = BH_REASON_NEEDS_REBOOT, .gpu = { 1 } },
      2,
      "the node of GPU-1234, which could hold it, must be rebooted after a fault",
      "an operator can drain and reboot the node; `bulkhead get nodes` names it" },
    { { .code = BH_REASON_NO_CAPACITY,
        .sku = { 1 },
        .wanted = 1,
        .job = { 12 },
        .frees_at_ns = IN_4M10S,
        .also = BH_REASON_QUARANTINED,
        .also_gpu = { 1 } },
      2,
      "all GPUs that could hold 1 small are in use; and GPU-1234 could hold it, but is in "
      "quarantine after faults",
      "frees in 4m10s at the latest, when job 12 reaches its time limit; or an operator can have it tested "
      "and used again with `bulkhead uncordon GPU-1234 --clear-fault`" },
    { { .code = BH_REASON_BEHIND, .job = { 5 }, .preempted_for = { 9 } },
      1,
      "job 5 comes first and waits for the same capacity; it was stopped before to make room "
      "for a job that came first",
      NULL },
    { { .code = BH_REASON_NO_CAPACITY, .sku = { 1 }, .wanted = 2, .job = { 77 }, .frees_at_ns = IN_4M10S },
      3,
      "all GPUs that could hold 2 small are in use",
      "capacity frees in 4m10s at the latest" },
    { { .code = BH_REASON_NO_CAPACITY,
        .sku = { 1 },
        .wanted = 2,
        .job = { 77 },
        .frees_at_ns = IN_4M10S,
        .assumed = true },
      3,
      "all GPUs that could hold 2 small are in use",
      "capacity is reserved for it, and expected to be free in 4m10s: this is an estimate, since jobs may "
      "hold "
      "it longer" },
    { { .code = BH_REASON_BOUNDARY, .sku = { 1 }, .job = { 5 }, .frees_at_ns = IN_4M10S, .assumed = true },
      1,
      "the free capacity for small is on the node of job 5, and a tenant with dedicated nodes "
      "shares them with no other",
      "capacity is reserved for it, and expected to be free in 4m10s: jobs without a time limit hold it, "
      "so this is an estimate" },
    { { .code = BH_REASON_BOUNDARY, .sku = { 1 }, .gpu = { 1 }, .job = { 77 } },
      3,
      "the free capacity for small is next to a job of another tenant, which the boundary "
      "between the tenants keeps apart",
      NULL },
    { { .code = BH_REASON_BOUNDARY, .sku = { 1 }, .job = { 5 } },
      1,
      "the free capacity for small is on the node of job 5, and a tenant with dedicated nodes "
      "shares them with no other",
      NULL },
    { { .code = BH_REASON_STOPPING, .frees_at_ns = IN_4M10S },
      0,
      "it is stopping, and is killed in 4m10s if it has not ended by then",
      "wait, or kill it at once with `bulkhead cancel --now`" },
    { { .code = BH_REASON_PREEMPTING, .job = { 5 }, .frees_at_ns = IN_4M10S },
      1,
      "job 5 is being suspended or stopped to make room, and is killed at the latest in 4m10s",
      "wait: it continues by itself" },
    { { .code = BH_REASON_RUNNING,
        .form = { BH_GPU_FORM_CALLED, BH_GPU_FORM_MIG, BH_GPU_FORM_MIG, BH_BOUNDARY_HARD, { 2 } } },
      0,
      "it has what it asked for; it has a MIG instance: the boundary hard of acme/vision requires a MIG "
      "instance",
      "nothing to do" },
    { { .code = BH_REASON_NEVER_FORM,
        .sku = { 1 },
        .form = { BH_GPU_FORM_FORBIDDEN,
                  BH_GPU_FORM_SHARE,
                  BH_GPU_FORM_WHOLE,
                  BH_BOUNDARY_FORTRESS,
                  { 77 } } },
      0,
      "the GPUs here could hold small only in a form that is too weak for the tenant's boundary; "
      "the boundary fortress of a tenant above requires a whole GPU, so a share is not given to "
      "it",
      NULL },
    { { .code = BH_REASON_REPARTITION, .sku = { 1 }, .gpu = { 1 }, .job = { 77 } },
      3,
      "its partition could only be carved while a job of another tenant runs on the GPU, and the GPU's "
      "driver lacks the fix for CVE-2026-24197",
      "install a driver with the fix (535.309.01, 580.159.03, 595.71.05); until then it starts "
      "when those jobs have ended, or on a warm partition (`bulkhead layout`)" },
    { { .code = BH_REASON_NOT_SHARED, .sku = { 1 } },
      0,
      "small is a share of a GPU, and no GPU of its models may be shared",
      "choose another SKU, or have an admin set `shared: true` for a GPU in the site file (docs/shares.md)" },
    { { .code = BH_REASON_SHARE_MODE, .gpu = { 1 }, .frees_at_ns = IN_4M10S, .job = { 77 } },
      3,
      "the GPUs that may be shared are carved or used whole now, GPU-1234 among them; this changes only "
      "when a GPU is empty",
      "capacity frees in 4m10s at the latest" },
    { { .code = BH_REASON_SHARE_MEMORY, .sku = { 1 }, .gpu = { 1 }, .wanted = 300, .limit = 85 },
      0,
      "GPU-1234 has the compute for small, but only 85 of the 300 parts of memory that it needs",
      NULL },
    { { .code = BH_REASON_QUOTA_MODEL,
        .tenant = { 2 },
        .model = BH_GPU_H100_80GB,
        .limit = 4200,
        .used = 4200,
        .wanted = 600,
        .frees_at_ns = IN_4M10S },
      3,
      "acme/vision is at its limit of 1 GPU of H100-80GB: 1 GPU of H100-80GB in use, this job needs 1/7 "
      "GPU more",
      NULL },
    { { .code = BH_REASON_QUOTA_USER, .tenant = { 2 }, .limit = 600, .used = 600, .wanted = 1800 },
      0,
      "1/7 GPU of this user in use, this job needs 3/7 GPU more, and acme/vision allows "
      "each user 1/7 GPU",
      NULL },
    { { .code = BH_REASON_KEPT, .tenant = { 2 } },
      0,
      "free capacity is kept for acme/vision, which does not lend all of its guarantee",
      "ask for less than your own guarantee covers, wait until borrowers end, or have an "
      "admin raise the lending limit of acme/vision" },
    { { .code = BH_REASON_KEPT_FORECAST,
        .tenant = { 2 },
        .expected = 6300,
        .limit = 10500,
        .used = 8400,
        .wanted = 4200 },
      0,
      "free capacity is kept for acme/vision, which is expected to need 1.5 GPUs of its "
      "guarantee soon: 2 GPUs of 2.5 GPUs that others may have in use, this job needs 1 GPU "
      "more",
      "ask for less than your own guarantee covers, wait until borrowers end or less is "
      "expected (`bulkhead forecast` shows it), or have an admin set scheduling.lending to "
      "all" },
    { { .code = BH_REASON_KEPT_FORECAST,
        .tenant = { 3 },
        .expected = 6300,
        .limit = 10500,
        .used = 8400,
        .wanted = 4200 },
      0,
      "free capacity is kept for a tenant above, which is expected to need it back soon: "
      "2 GPUs of 2.5 GPUs that others may have in use, this job needs 1 GPU more",
      NULL },
    { { .code = BH_REASON_BUDGET, .tenant = { 2 }, .limit = 36000, .used = 37800, .frees_at_ns = IN_4M10S },
      0,
      "acme/vision has spent its budget of this period: 10.50 of 10.00 GPU-hours",
      "the next period begins in 4m10s; an admin can raise the budget of acme/vision" },
    { { .code = BH_REASON_BUDGET_MONEY, .tenant = { 3 }, .limit = 1500000, .used = 1500000 },
      0,
      "a tenant above has spent its budget of this period: 1.50 of 1.50",
      NULL },
    { { .code = BH_REASON_BEHIND, .job = { 5 } },
      1,
      "job 5 comes first and waits for the same capacity",
      "it is next when job 5 has started; `bulkhead why` on that job says what it "
      "waits for" },
    { { .code = BH_REASON_BEHIND, .job = { 77 } },
      3,
      "a job of another tenant comes first and waits for the same capacity",
      "it is next when that job has started" },
    { { .code = BH_REASON_STARTING, .gpu = { 1 } },
      0,
      "its partitions on GPU-1234 are being prepared (carved, and scrubbed where another tenant had the "
      "memory) and its sandbox is starting",
      "wait: it continues by itself" },
    { { .code = BH_REASON_NO_SHAPE, .sku = { 1 }, .wanted = 1, .free_partitions = 1800 },
      0,
      "3/7 GPU is free, but not as one partition that can hold 1 small",
      NULL },
    { { .code = BH_REASON_CORES, .gpu = { 1 }, .limit = 8000, .used = 7500, .wanted = 1000 },
      0,
      "GPUs are free for it, but of the 8 cores beside GPU-1234 jobs hold 7.500 cores, and "
      "this job needs 1 core",
      NULL },
    { { .code = BH_REASON_MEMORY, .gpu = { 1 }, .limit = 65536, .used = 65000, .wanted = 2048 },
      0,
      "GPUs are free for it, but of the 64 GiB of memory beside GPU-1234 jobs hold 65000 MiB "
      "of memory, and this job needs 2 GiB of memory",
      NULL },
    { { .code = BH_REASON_NEVER_MEMORY, .limit = 65536, .wanted = 131072 },
      0,
      "this job needs 128 GiB of memory beside its GPUs, and no node that could hold it has "
      "more than 64 GiB of memory",
      "ask for less (`cpu`, `memory` of the job, or of its SKU)" },
    { { .code = BH_REASON_NEVER_QUOTA, .tenant = { 1 }, .sku = { 1 }, .limit = 2, .wanted = 3 },
      0,
      "this job needs 3 small, and the limit of acme is 2 small",
      "ask for fewer or smaller partitions, or have an admin raise the limit of acme" },
    { { .code = BH_REASON_QUOTA_GPU, .tenant = { 3 }, .limit = 4200, .used = 4200, .wanted = 4200 },
      0,
      "a tenant above is at its limit of 1 GPU: 1 GPU in use, this job needs 1 GPU more",
      NULL },
    { { .code = BH_REASON_MOVING, .gpu = { 1 }, .job = { 12 } },
      2,
      "it is being moved to GPU-1234 to make room for job 12",
      "wait: it continues by itself" },
    { { .code = BH_REASON_MOVING, .gpu = { 1 } },
      0,
      "it is being moved to GPU-1234 to join free capacity, or to empty a cordoned GPU",
      NULL },
    { { .code = BH_REASON_RUNNING, .moved_ns = NOW - 250 * BH_NS_PER_S },
      0,
      "it has what it asked for; it was moved 4m10s ago to join free capacity, or to empty a cordoned GPU",
      NULL },
    { { .code = BH_REASON_DEFRAG_BUDGET, .limit = 10, .used = 9, .wanted = 2, .frees_at_ns = IN_4M10S },
      0,
      "of this hour's budget for moves 9 of 10 are used, and this would take 2 more",
      "the next hour begins in 4m10s; an admin can raise scheduling.defrag_moves or "
      "defrag_gpu_hours" },
};

static void
sentences_read_as_written(void **state)
{
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        char memory[512];

        BH_CHECK_STR(cases[i].sentence,
                     explain_send(bh_explain_sentence, &cases[i].reason, cases[i].holder, memory),
                     cases[i].sentence);
        if (cases[i].next)
            BH_CHECK_STR(cases[i].sentence,
                         explain_send(bh_explain_next, &cases[i].reason, cases[i].holder, memory),
                         cases[i].next);
    }
    BH_CHECK_DONE();
}

/* Whatever the code, with every operand another tenant's: nothing of it is said. */
static void
no_reason_names_what_its_reader_may_not_see(void **state)
{
    for (int code = 0; code < BH_REASONS; code++) {
        struct bh_reason reason = { .code = (enum bh_reason_code)code,
                                    .tenant = { 3 },
                                    .sku = { 1 },
                                    .job = { 7777 },
                                    .limit = 4200,
                                    .used = 4200,
                                    .wanted = 4200,
                                    .free_partitions = 4200,
                                    .preempted_for = { 7777 },
                                    .moved_for = { 7777 },
                                    .moved_ns = NOW - 60 * BH_NS_PER_S,
                                    .frees_at_ns = IN_4M10S };
        char memory[512];
        const char *text = explain_send(bh_explain_sentence, &reason, 3, memory);

        BH_CHECK("says something", text && text[0]);
        BH_CHECK("no tenant", text && !strstr(text, "secret-customer"));
        BH_CHECK("no job", text && !strstr(text, "7777"));
        text = explain_send(bh_explain_next, &reason, 3, memory);
        BH_CHECK("says what is next", text && text[0]);
        BH_CHECK("no tenant next", text && !strstr(text, "secret-customer"));
        BH_CHECK("no job next", text && !strstr(text, "7777"));
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sentences_read_as_written),
    cmocka_unit_test(no_reason_names_what_its_reader_may_not_see),
};
BH_TEST_MAIN(tests)
