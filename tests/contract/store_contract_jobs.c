#include "tests/contract/store_contract.h"

/* The contract of ports/store.h as far as jobs go. */

enum { MANY = 20000 };

struct bh_job_row
bh_contract_job_row(uint64_t job)
{
    static const char *const states[] = { "pending", "running", "ended", "held" };
    bool ended = job % 4 == 2;

    return (struct bh_job_row){
        .job = job,
        .tenant_id = (uint32_t)(job * job % BH_CONTRACT_TENANTS),
        .principal_id = 1 + (uint32_t)(job / 3 % BH_CONTRACT_PRINCIPALS),
        .count = 1,
        .name = "n",
        .tenant = "t",
        .principal = "p",
        .sku = "small",
        .kind = "batch",
        .state = states[job % 4],
        .submitted_ns = job,
        .ended_ns = ended ? job + 5 : 0,
        .exit_status = ended ? 0 : -1,
    };
}

static void
put_many(struct fixture *f, uint64_t count)
{
    begin(f);
    /* Not in order of their numbers. */
    for (uint64_t i = 0; i < count; i++) {
        struct bh_job_row row = bh_contract_job_row(1 + i * 7919 % count);

        row.reason = row.job % 5 == 0 ? "no_capacity" : "behind";
        MUST(f, put_job, &row);
    }
    commit(f);
}

static bool
check_whole_job(void *self, const struct bh_job_row *row)
{
    const struct bh_job_row *want = self;

    BH_CHECK("job", row->job == want->job && row->lease == want->lease);
    BH_CHECK_EQ("tenant_id", row->tenant_id, want->tenant_id);
    BH_CHECK_EQ("principal_id", row->principal_id, want->principal_id);
    BH_CHECK_EQ("count", row->count, want->count);
    BH_CHECK_EQ("priority", row->priority, want->priority);
    BH_CHECK_EQ("restarts", row->restarts, want->restarts);
    BH_CHECK_STR("name", row->name, want->name);
    BH_CHECK_STR("tenant", row->tenant, want->tenant);
    BH_CHECK_STR("principal", row->principal, want->principal);
    BH_CHECK_STR("sku", row->sku, want->sku);
    BH_CHECK_STR("kind", row->kind, want->kind);
    BH_CHECK_STR("state", row->state, want->state);
    BH_CHECK_STR("contract", row->contract, want->contract ? want->contract : "");
    BH_CHECK_STR("reason", row->reason, want->reason ? want->reason : "");
    BH_CHECK_STR("node", row->node, want->node);
    BH_CHECK_STR("pieces", row->partitions, want->partitions);
    BH_CHECK_STR("grade", row->grade, want->grade);
    BH_CHECK("submitted", row->submitted_ns == want->submitted_ns);
    BH_CHECK("started", row->started_ns == want->started_ns);
    BH_CHECK("ended", row->ended_ns == want->ended_ns);
    BH_CHECK("limit", row->time_limit_ns == want->time_limit_ns);
    BH_CHECK("deadline", row->deadline_ns == want->deadline_ns);
    BH_CHECK_EQ("signal", row->checkpoint_signal, want->checkpoint_signal);
    BH_CHECK_EQ("gang", row->gang, want->gang);
    BH_CHECK_EQ("exit", row->exit_status, want->exit_status);
    BH_CHECK("spec", memcmp(&row->spec, &want->spec, sizeof row->spec) == 0);
    return true;
}

void
bh_contract_keeps_a_whole_job(void **state)
{
    struct fixture *f = *state;
    struct bh_job_row row = {
        .job = (UINT64_C(1) << 62) + 1,
        .lease = UINT64_MAX,
        .tenant_id = 4294967295u,
        .principal_id = 3,
        .count = 16,
        .priority = 2,
        .restarts = 1,
        .name = "\xc3\xbc'\";--",
        .tenant = "a/b",
        .principal = "ada",
        .sku = "small",
        .kind = "batch",
        .state = "running",
        .contract = "preemptible",
        .reason = NULL,
        .node = "n1",
        .partitions = "GPU-1:1g.10gb@0",
        .grade = "C",
        .submitted_ns = UINT64_C(1795170000000000001),
        .started_ns = 2,
        .ended_ns = UINT64_MAX,
        .time_limit_ns = 4,
        .deadline_ns = UINT64_MAX - 1,
        .checkpoint_signal = 12,
        .gang = 64,
        .exit_status = -1,
        .spec = { { 5, [31] = 6 } },
    };
    uint64_t count = 7;

    begin(f);
    MUST(f, put_job, &row);
    commit(f);
    MUST(f, get_job, row.job, check_whole_job, &row);
    row.state = "ended";
    row.exit_status = 137;
    begin(f);
    MUST(f, put_job, &row);
    commit(f);
    MUST(f, get_job, row.job, check_whole_job, &row);
    MUST(f, count_rows, BH_STORE_JOBS, &count);
    BH_CHECK_EQ("rows", count, 1);
    BH_CHECK_EQ("unknown", CALL(f, get_job, 1, check_whole_job, &row), BH_NOT_FOUND);
    BH_CHECK_DONE();
}

/* A change touches what it names: without a node only the end of the job. */
void
bh_contract_changes_a_job(void **state)
{
    struct fixture *f = *state;
    struct bh_job_row row = bh_contract_job_row(8);
    const struct bh_job_change end = {
        .job = 8, .state = "ended", .reason = "it's over", .ended_ns = 99, .exit_status = -9
    };
    struct bh_job_change start = { .job = 8,
                                   .lease = 5,
                                   .restarts = 2,
                                   .state = "running",
                                   .node = "n1",
                                   .partitions = "GPU-1@0",
                                   .grade = "C",
                                   .started_ns = 77,
                                   .exit_status = -1 };
    const struct bh_job_filter active = { .active_only = true };
    uint64_t count = 7;

    begin(f);
    MUST(f, put_job, &row);
    MUST(f, change_job, &start); /* put in the same transaction */
    commit(f);
    row.lease = 5;
    row.restarts = 2;
    row.state = "running";
    row.node = "n1";
    row.partitions = "GPU-1@0";
    row.grade = "C";
    row.started_ns = 77;
    MUST(f, get_job, 8, check_whole_job, &row);
    begin(f);
    MUST(f, change_job, &end);
    commit(f);
    row.state = "ended";
    row.ended_ns = 99;
    row.exit_status = -9;
    row.reason = "it's over";
    MUST(f, get_job, 8, check_whole_job, &row);
    MUST(f, count_jobs, &active, &count);
    BH_CHECK_EQ("no longer active", count, 0);
    begin(f);
    start.job = 9;
    BH_CHECK_EQ("no such job", CALL(f, change_job, &start), BH_NOT_FOUND);
    f->store.ops->rollback(f->store.self);
    BH_CHECK_DONE();
}

struct job_page {
    uint64_t last;
    uint32_t count;
    bool wrong;
    const struct bh_job_filter *filter;
};

/* What the filter says, said again in the plainest way. */
static bool
matches(const struct bh_job_filter *filter, uint64_t job)
{
    struct bh_job_row row = bh_contract_job_row(job);
    bool tenant = !filter->tenants;

    for (uint32_t i = 0; i < filter->tenant_count; i++)
        tenant |= filter->tenants[i] == row.tenant_id;
    return tenant && (!filter->principal_id || filter->principal_id == row.principal_id)
           && (!filter->active_only || row.ended_ns == 0) && (!filter->ended_only || row.ended_ns != 0)
           && (!filter->state || strcmp(filter->state, row.state) == 0);
}

static bool
see_job(void *self, const struct bh_job_row *row)
{
    struct job_page *page = self;

    page->wrong |= (page->filter->newest ? row->job >= page->last : row->job <= page->last)
                   || !matches(page->filter, row->job);
    page->last = row->job;
    page->count++;
    return true;
}

/* Every filter, in pages: each matching job comes exactly once, in order. */
void
bh_contract_lists_jobs(void **state)
{
    static const uint32_t some[] = { 4, 1, 4 }, none[] = { 77 };
    static const struct {
        const char *name;
        struct bh_job_filter filter;
    } rows[] = {
        { "all", { .limit = 1000 } },
        { "all at once", { .limit = UINT32_MAX } },
        { "odd pages", { .limit = 777 } },
        { "large pages", { .limit = 5000 } },
        { "active", { .active_only = true, .limit = 1000 } },
        { "state", { .state = "held", .limit = 1000 } },
        { "ended", { .state = "ended", .limit = 1000 } },
        { "active but ended", { .state = "ended", .active_only = true, .limit = 1000 } },
        { "all that ended", { .ended_only = true, .limit = 1000 } },
        { "tenants' that ended", { .tenants = some, .tenant_count = 3, .ended_only = true, .limit = 99 } },
        { "no such state", { .state = "it's", .limit = 1000 } },
        { "principal", { .principal_id = 2, .limit = 1000 } },
        { "principal's running", { .principal_id = 2, .state = "running", .limit = 100 } },
        { "no such principal", { .principal_id = 99, .limit = 1000 } },
        { "tenants", { .tenants = some, .tenant_count = 3, .limit = 1000 } },
        { "tenants' active", { .tenants = some, .tenant_count = 3, .active_only = true, .limit = 99 } },
        { "tenants and principal", { .tenants = some, .tenant_count = 3, .principal_id = 5, .limit = 100 } },
        { "everything",
          { .tenants = some,
            .tenant_count = 3,
            .principal_id = 5,
            .active_only = true,
            .state = "pending",
            .limit = 10 } },
        { "no such tenant", { .tenants = none, .tenant_count = 1, .limit = 1000 } },
        { "no tenant", { .tenants = none, .tenant_count = 0, .limit = 1000 } },
    };
    struct fixture *f = *state;

    put_many(f, MANY);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_job_filter filter = rows[i].filter;
        struct job_page page = { .filter = &filter };
        uint32_t before, want = 0;
        uint64_t count = 0;

        for (uint64_t job = 1; job <= MANY; job++)
            want += matches(&filter, job);
        MUST(f, count_jobs, &filter, &count);
        BH_CHECK_EQ(rows[i].name, count, want);
        do {
            before = page.count;
            MUST(f, list_jobs, &filter, see_job, &page);
            BH_CHECK(rows[i].name, page.count - before <= filter.limit);
            filter.after = page.last;
        } while (page.count > before);
        BH_CHECK_EQ(rows[i].name, page.count, want);
        BH_CHECK(rows[i].name, !page.wrong);
        MUST(f, count_jobs, &filter, &count);
        BH_CHECK_EQ("none after the last", count, 0);
    }
    BH_CHECK_DONE();
}

/* The same filters from the other end: `before` continues. */
void
bh_contract_lists_newest_jobs(void **state)
{
    static const uint32_t some[] = { 4, 1, 4 };
    static const struct {
        const char *name;
        struct bh_job_filter filter;
    } rows[] = {
        { "all", { .limit = 1000 } },
        { "all at once", { .limit = UINT32_MAX } },
        { "odd pages", { .limit = 777 } },
        { "large pages", { .limit = 5000 } },
        { "active", { .active_only = true, .limit = 1000 } },
        { "ended", { .ended_only = true, .limit = 20 } },
        { "tenants' that ended", { .tenants = some, .tenant_count = 3, .ended_only = true, .limit = 20 } },
        { "tenants and principal", { .tenants = some, .tenant_count = 3, .principal_id = 5, .limit = 100 } },
        { "principal's running", { .principal_id = 2, .state = "running", .limit = 100 } },
    };
    struct fixture *f = *state;

    put_many(f, MANY);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_job_filter filter = rows[i].filter;
        struct job_page page = { .filter = &filter, .last = UINT64_MAX };
        uint32_t before, want = 0;

        for (uint64_t job = 1; job <= MANY; job++)
            want += matches(&filter, job);
        filter.newest = true;
        filter.before = INT64_MAX;
        do {
            before = page.count;
            MUST(f, list_jobs, &filter, see_job, &page);
            BH_CHECK(rows[i].name, page.count - before <= filter.limit);
            filter.before = page.last;
        } while (page.count > before);
        BH_CHECK_EQ(rows[i].name, page.count, want);
        BH_CHECK(rows[i].name, !page.wrong);
    }
    BH_CHECK_DONE();
}

struct reason_sums {
    uint32_t jobs, last_tenant;
    char last_reason[32];
    bool wrong;
};

/* Ascending, each pair once, and as many jobs as the filter of that state lists. */
static bool
sum_reason(void *self, const struct bh_reason_row *row)
{
    struct reason_sums *sums = self;

    sums->wrong |= row->jobs == 0 || row->tenant_id < sums->last_tenant
                   || (row->tenant_id == sums->last_tenant && strcmp(row->reason, sums->last_reason) <= 0);
    sums->jobs += row->jobs;
    sums->last_tenant = row->tenant_id;
    snprintf(sums->last_reason, sizeof sums->last_reason, "%s", row->reason);
    return true;
}

void
bh_contract_counts_reasons(void **state)
{
    static const char *const states[] = { "held", "running", "it's" };
    struct fixture *f = *state;

    put_many(f, 1000);
    for (size_t i = 0; i < BH_COUNT(states); i++) {
        const struct bh_job_filter filter = { .state = states[i], .active_only = true };
        struct reason_sums sums = { .last_reason = "" };
        uint64_t count;

        MUST(f, count_jobs, &filter, &count);
        MUST(f, count_reasons, states[i], sum_reason, &sums);
        BH_CHECK_EQ(states[i], sums.jobs, count);
        BH_CHECK(states[i], !sums.wrong);
    }
    BH_CHECK_DONE();
}

static bool
stop_at_once(void *self, const struct bh_job_row *row)
{
    ++*(uint32_t *)self;
    return false;
}

void
bh_contract_pages_of_100_unless_told(void **state)
{
    struct fixture *f = *state;
    struct bh_job_filter filter = { 0 };
    struct job_page page = { .filter = &filter };
    uint32_t calls = 0;

    put_many(f, 250);
    MUST(f, list_jobs, &filter, see_job, &page);
    BH_CHECK_EQ("default", page.count, 100);
    MUST(f, list_jobs, &filter, stop_at_once, &calls);
    BH_CHECK_EQ("stopped", calls, 1);
    filter.after = UINT64_MAX;
    MUST(f, list_jobs, &filter, stop_at_once, &calls);
    BH_CHECK_EQ("after all", calls, 1);
    BH_CHECK_DONE();
}
