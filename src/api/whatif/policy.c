#include "api/whatif/policy.h"

#include <inttypes.h>
#include <string.h>

#include "api/documents/job_document.h"
#include "api/documents/revision.h"
#include "api/request/reply.h"
#include "api/state/admit.h"
#include "api/state/submission.h"
#include "model/path.h"
#include "model/spec.h"

enum { JOBS_MAX = 1000, ITEMS_DEFAULT = 1000, PAGE = 200, SCRATCH_BYTES = 4 << 20 };

static const struct bh_field request_fields[] = {
    BH_F(struct bh_policy_test_request, jobs, BH_FIELD_LIST, .of = &bh_job_spec_fields, .max = JOBS_MAX,
         .doc = "submissions to test, as if made now; those recorded when absent"),
    BH_F(struct bh_policy_test_request, site, BH_FIELD_STRUCT, .of = &bh_site_fields,
         .doc = "the site file whose policies are tested; the one in force when absent"),
};
const struct bh_fields bh_policy_test_request_fields =
    BH_FIELDS("policy_test", struct bh_policy_test_request, request_fields);

/* A test under way. */
struct policy_test {
    struct bh_call *call;
    const struct bh_site *site;
    struct bh_admission admission;
    struct bh_datasets datasets;
    struct bh_arena *scratch; /* of one job, and then of the next */
    struct bh_rows rows;
    uint64_t capacity, tested, denied; /* `room`: items that are still written out */
    uint64_t erased;                   /* recorded, and destroyed since: not tested */
};

/* A submission, recorded or given. */
struct submission {
    struct bh_job_spec spec;
    uint64_t job, at_ns;
    const char *tenant, *user;
};

/* ---- one submission ---- */

/* What the grants of the datasets that it mounts say; `ret_rule` is the denial's number.  Jobs of
 * a file have no submitter: only grants that name no principal and no role are for them. */
static bh_rc
policy_judge_datasets(const struct policy_test *test, const struct submission *s, uint32_t *ret_rule,
                      struct bh_err *err)
{
    const struct bh_data_request request = {
        .tenant = s->tenant, .principal = s->user, .labels = &s->spec.labels, .now_ns = s->at_ns
    };
    struct bh_data_denial denial;

    if (bh_datasets_allow(&test->datasets, &s->spec, &request, &denial))
        return BH_OK;
    *ret_rule = bh_data_rule_number(&denial.verdict);
    return bh_datasets_explain(&s->spec, &request, &denial, false, err);
}

/* BH_OK, or why it would be denied; `ret_denial` has no rule where no policy is the reason. */
static bh_rc
policy_judge(const struct policy_test *test, const struct submission *s, struct bh_admit_denial *ret_denial,
             struct bh_err *err)
{
    struct bh_admit admit = {
        .admission = &test->admission, .tenant = s->tenant, .spec = &s->spec, .now_ns = s->at_ns
    };
    struct bh_ev_submit submit = { .count = 0 };
    struct bh_job_numbers numbers;
    const struct bh_site_sku *sku;
    struct bh_dir_sku defaults;
    bh_rc rc = bh_spec_check(&s->spec, &numbers, err);

    if (rc != BH_OK)
        return rc;
    sku = bh_site_sku_named(test->site, s->spec.sku);
    if (!sku)
        return bh_err_set(err, BH_NOT_FOUND, "the site file has no SKU \"%.60s\"", s->spec.sku);
    if (!s->tenant || !bh_site_tenant_named(test->site, s->tenant))
        return bh_err_set(err, BH_NOT_FOUND, "the site file has no tenant \"%.119s\"",
                          s->tenant ? s->tenant : "");
    defaults = (struct bh_dir_sku){ .name = sku->name, .cpu = sku->cpu, .memory = sku->memory };
    bh_submission_fill(&s->spec, &numbers, &defaults, s->at_ns, &submit);
    admit.submit = &submit;
    admit.models = bh_site_sku_models(sku);
    return bh_admit_check(&admit, ret_denial, err);
}

static void
policy_put_denial(struct policy_test *test, const struct submission *s, const struct bh_admit_denial *denial,
                  uint32_t data_rule, const struct bh_err *err)
{
    bool policy = denial->rule != BH_ADMISSION_NONE;

    (void)bh_rows_put(&test->rows, &(struct bh_reply_policy_denial){
                                       .entry = policy      ? bh_admission_entry(denial->rule)
                                                : data_rule ? "datasets"
                                                            : "",
                                       .job = s->job,
                                       .name = s->spec.name,
                                       .next = err->hint,
                                       .policy = policy && *denial->owner ? denial->owner
                                                 : policy                 ? "*"
                                                                          : "",
                                       .rule = policy ? bh_admission_number(denial->rule) : data_rule,
                                       .sentence = err->msg,
                                       .submitted_ns = s->at_ns,
                                       .tenant = s->tenant,
                                       .user = s->user,
                                   });
}

static void
policy_test_one(struct policy_test *test, const struct submission *s)
{
    struct bh_admit_denial denial = { .rule = BH_ADMISSION_NONE };
    struct bh_err err = { .hint = "" };
    uint32_t data_rule = 0;

    test->tested++;
    if (policy_judge(test, s, &denial, &err) == BH_OK
        && policy_judge_datasets(test, s, &data_rule, &err) == BH_OK)
        return;
    test->denied++;
    if (test->capacity == 0)
        return;
    test->capacity--;
    policy_put_denial(test, s, &denial, data_rule, &err);
}

/* ---- those recorded ---- */

struct recorded {
    uint64_t job, submitted_ns;
    char tenant[BH_TENANT_PATH_MAX + 1], user[BH_NAME_MAX + 1];
    struct bh_digest spec;
};

struct policy_page {
    struct recorded rows[PAGE];
    uint32_t count;
};

static void
policy_copy_text(char *ret_text, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);

    memcpy(ret_text, text, length);
    ret_text[length] = '\0';
}

static bool
policy_add_row(void *self, const struct bh_job_row *row)
{
    struct policy_page *page = self;
    struct recorded *kept = &page->rows[page->count++];

    *kept = (struct recorded){ .job = row->job, .submitted_ns = row->submitted_ns, .spec = row->spec };
    policy_copy_text(kept->tenant, sizeof kept->tenant, row->tenant);
    policy_copy_text(kept->user, sizeof kept->user, row->principal);
    return page->count < PAGE;
}

static bh_rc
policy_test_recorded(struct policy_test *test, const struct recorded *row, struct bh_err *err)
{
    struct submission s = {
        .job = row->job, .at_ns = row->submitted_ns, .tenant = row->tenant, .user = row->user
    };
    bh_rc rc;

    bh_arena_reset(test->scratch);
    rc = bh_job_document_spec(test->call->api->options.keys, &row->spec, test->scratch, &s.spec, err);
    if (rc == BH_NOT_FOUND) {
        test->erased++;
        return BH_OK;
    }
    if (rc != BH_OK)
        return bh_err_wrap(err, "job %" PRIu64, row->job);
    policy_test_one(test, &s);
    return BH_OK;
}

static bh_rc
policy_test_all_recorded(struct policy_test *test, struct bh_err *err)
{
    const struct bh_store *store = &test->call->api->options.store;
    struct bh_job_filter filter = { .limit = PAGE };
    struct policy_page *page;
    bh_rc rc = bh_call_alloc(test->call, sizeof *page, &page, err);

    while (rc == BH_OK) {
        page->count = 0;
        rc = store->ops->list_jobs(store->self, &filter, policy_add_row, page, err);
        for (uint32_t i = 0; i < page->count && rc == BH_OK; i++)
            rc = policy_test_recorded(test, &page->rows[i], err);
        if (page->count < PAGE)
            break;
        filter.after = page->rows[PAGE - 1].job;
    }
    return rc;
}

/* ---- the request ---- */

static void
policy_test_given(struct policy_test *test, const struct bh_list *jobs)
{
    const struct bh_job_spec *specs = jobs->items;

    for (uint32_t i = 0; i < jobs->count; i++)
        policy_test_one(test, &(struct submission){ .spec = specs[i],
                                                    .job = i + 1,
                                                    .at_ns = bh_call_now(test->call),
                                                    .tenant = specs[i].tenant,
                                                    .user = "" });
}

/* Whether a site file came with the request. */
static bool
policy_is_given(const struct bh_site *site)
{
    return site->tenants.items || site->skus.items || !bh_site_policy_empty(&site->policy);
}

static bh_rc
policy_write_answer(struct policy_test *test, const struct bh_policy_test_request *request,
                    struct bh_err *err)
{
    bh_rc rc = BH_OK;

    test->rows = bh_rows_begin(test->call, &bh_reply_policy_test_result_fields);
    if (request->jobs.count > 0)
        policy_test_given(test, &request->jobs);
    else
        rc = policy_test_all_recorded(test, err);
    bh_rows_end(&test->rows, &(struct bh_reply_policy_test_result){
                                 .denied = test->denied, .erased = test->erased, .tested = test->tested });
    return rc;
}

bh_rc
bh_policy_test(struct bh_call *call, struct bh_err *err)
{
    struct bh_policy_test_request request = { .jobs = { NULL, 0 } };
    BH_AUTO(bh_arena_free) struct bh_arena *scratch = bh_arena_new(SCRATCH_BYTES);
    struct policy_test test = { .call = call,
                                .site = &request.site,
                                .scratch = scratch,
                                .capacity = call->query.given.limit ? call->query.limit : ITEMS_DEFAULT };
    bh_rc rc = bh_call_body(call, &bh_policy_test_request_fields, &request, err);

    if (rc == BH_OK && !policy_is_given(&request.site))
        rc = bh_revision_present_site(&call->api->options.store, call->arena, &request.site, err);
    else if (rc == BH_OK)
        rc = bh_site_check(&request.site, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_admission_compile(&request.site, call->arena, &test.admission, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_datasets_compile(&request.site, call->arena, &test.datasets, err);
    if (rc != BH_OK)
        return rc;
    return policy_write_answer(&test, &request, err);
}
