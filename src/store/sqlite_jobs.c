#include "store/sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "store/sqlite_internal.h"

/* How jobs are looked up.
 *
 * Each filter is turned into runs: stretches of an index in which all jobs match, and
 * which stand in order of their numbers (this state; this state of this tenant; ...).
 * A page is the smallest numbers of all runs, merged.  No filter therefore reads more
 * than one page of each run, however many jobs there are. */

enum { PAGE_MAX = 1024, STATES_MAX = 64, LIMIT_DEFAULT = 100, COUNT_MAX = 100000 };

/* ---- one job ---- */

static void
jobs_put_columns(struct bh_sql_use *use, const struct bh_job_row *row)
{
    bh_sql_put_u64(use, row->job);
    bh_sql_put_u64(use, row->lease);
    bh_sql_put_u64(use, row->tenant_id);
    bh_sql_put_u64(use, row->principal_id);
    bh_sql_put_u64(use, row->count);
    bh_sql_put_u64(use, row->priority);
    bh_sql_put_u64(use, row->restarts);
    bh_sql_put_text(use, row->name);
    bh_sql_put_text(use, row->tenant);
    bh_sql_put_text(use, row->principal);
    bh_sql_put_text(use, row->sku);
    bh_sql_put_text(use, row->kind);
    bh_sql_put_text(use, row->state);
    bh_sql_put_text(use, row->contract);
    bh_sql_put_text(use, row->reason);
    bh_sql_put_text(use, row->node);
    bh_sql_put_text(use, row->partitions);
    bh_sql_put_text(use, row->grade);
    bh_sql_put_u64(use, row->submitted_ns);
    bh_sql_put_u64(use, row->started_ns);
    bh_sql_put_u64(use, row->ended_ns);
    bh_sql_put_u64(use, row->time_limit_ns);
    bh_sql_put_u64(use, (uint64_t)(int64_t)row->exit_status);
    bh_sql_put_bytes(use, row->spec.bytes, sizeof row->spec.bytes);
    bh_sql_put_u64(use, row->deadline_ns);
    bh_sql_put_u64(use, row->checkpoint_signal);
    bh_sql_put_u64(use, row->gang);
    bh_sql_put_u64(use, row->ended_by);
    bh_sql_put_u64(use, row->ended_ns != 0);
}

bh_rc
bh_sqlite_put_job(void *self, const struct bh_job_row *row, struct bh_err *err)
{
    struct bh_sqlite *store = self;
    struct bh_sql_use use;
    bh_rc rc;

    BH_ASSERT(row->state && row->state[0] && strlen(row->state) < BH_SQLITE_STATE_BYTES);
    rc = bh_sqlite_write(store, BH_SQL_PUT_JOB, &use, err);
    if (rc != BH_OK)
        return rc;
    jobs_put_columns(&use, row);
    return bh_sqlite_written(store, &use, err);
}

bh_rc
bh_sqlite_change_job(void *self, const struct bh_job_change *change, struct bh_err *err)
{
    struct bh_sqlite *store = self;
    struct bh_sql_use use;
    bool whole = change->node != NULL;
    bh_rc rc;

    BH_ASSERT(change->state && change->state[0] && strlen(change->state) < BH_SQLITE_STATE_BYTES);
    rc = bh_sqlite_write(store, whole ? BH_SQL_CHANGE_JOB : BH_SQL_END_JOB, &use, err);
    if (rc != BH_OK)
        return rc;
    bh_sql_put_text(&use, change->state);
    bh_sql_put_text(&use, change->reason);
    bh_sql_put_u64(&use, change->ended_ns);
    bh_sql_put_u64(&use, change->ended_by);
    bh_sql_put_u64(&use, (uint64_t)(int64_t)change->exit_status);
    bh_sql_put_u64(&use, change->ended_ns != 0);
    if (whole) {
        bh_sql_put_u64(&use, change->lease);
        bh_sql_put_u64(&use, change->restarts);
        bh_sql_put_text(&use, change->node);
        bh_sql_put_text(&use, change->partitions);
        bh_sql_put_text(&use, change->grade);
        bh_sql_put_u64(&use, change->started_ns);
    }
    bh_sql_put_u64(&use, change->job);
    rc = bh_sqlite_written(store, &use, err);
    if (rc != BH_OK)
        return rc;
    if (bh_sql_changed(store->writer) == 0)
        return bh_err_set(err, BH_NOT_FOUND, "job %llu has no row", (unsigned long long)change->job);
    return BH_OK;
}

static void
jobs_read_columns(const struct bh_sql_use *use, struct bh_job_row *ret_row)
{
    *ret_row = (struct bh_job_row){
        .job = bh_sql_u64(use, 0),
        .lease = bh_sql_u64(use, 1),
        .tenant_id = (uint32_t)bh_sql_u64(use, 2),
        .principal_id = (uint32_t)bh_sql_u64(use, 3),
        .count = (uint32_t)bh_sql_u64(use, 4),
        .priority = (uint32_t)bh_sql_u64(use, 5),
        .restarts = (uint32_t)bh_sql_u64(use, 6),
        .name = bh_sql_text(use, 7),
        .tenant = bh_sql_text(use, 8),
        .principal = bh_sql_text(use, 9),
        .sku = bh_sql_text(use, 10),
        .kind = bh_sql_text(use, 11),
        .state = bh_sql_text(use, 12),
        .contract = bh_sql_text(use, 13),
        .reason = bh_sql_text(use, 14),
        .node = bh_sql_text(use, 15),
        .partitions = bh_sql_text(use, 16),
        .grade = bh_sql_text(use, 17),
        .submitted_ns = bh_sql_u64(use, 18),
        .started_ns = bh_sql_u64(use, 19),
        .ended_ns = bh_sql_u64(use, 20),
        .time_limit_ns = bh_sql_u64(use, 21),
        .exit_status = (int32_t)bh_sql_u64(use, 22),
        .deadline_ns = bh_sql_u64(use, 24),
        .checkpoint_signal = (uint32_t)bh_sql_u64(use, 25),
        .gang = (uint32_t)bh_sql_u64(use, 26),
        .ended_by = bh_sql_u64(use, 27),
        .misfiled = bh_sql_u64(use, 28) != (bh_sql_u64(use, 20) != 0),
    };
    bh_sql_digest(use, 23, &ret_row->spec);
}

/* A walk over jobs on one reader. */
struct job_walk {
    struct bh_sqlite *store;
    struct bh_sql *reader;
    bh_job_sink sink;
    void *self;
    bool shown, more; /* the last job was there; the sink wants another */
};

/* Take a reader and one view of the store for the whole walk. */
static bh_rc
jobs_walk_begin(struct job_walk *walk, struct bh_err *err)
{
    struct bh_sql_use use;
    bh_rc rc = bh_sqlite_acquire(walk->store, &walk->reader, err);

    if (rc != BH_OK || walk->store->snapshot) /* that is one view already */
        return rc;
    rc = bh_sql_use(walk->reader, BH_SQL_BEGIN_READ, &use, err);
    return rc == BH_OK ? bh_sql_run(&use, err) : rc;
}

static void
jobs_walk_end_auto(struct job_walk *walk)
{
    struct bh_sql_use use;
    struct bh_err err;

    if (!walk->reader)
        return;
    /* A failure to end a view that only read has no consequence. */
    if (!walk->store->snapshot && !sqlite3_get_autocommit(walk->reader->db)
        && bh_sql_use(walk->reader, BH_SQL_COMMIT, &use, &err) == BH_OK)
        (void)!bh_sql_run(&use, &err);
    bh_sqlite_release(walk->store, walk->reader);
}

static bh_rc
jobs_walk_show(struct job_walk *walk, uint64_t job, struct bh_err *err)
{
    BH_AUTO(bh_sql_done) struct bh_sql_use use = { 0 };
    struct bh_job_row row;
    bh_rc rc = bh_sql_use(walk->reader, BH_SQL_GET_JOB, &use, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&use, job);
    rc = bh_sql_step(&use, &walk->shown, err);
    if (rc != BH_OK || !walk->shown)
        return rc;
    jobs_read_columns(&use, &row);
    walk->more = walk->sink(walk->self, &row);
    return BH_OK;
}

bh_rc
bh_sqlite_get_job(void *self, uint64_t job, bh_job_sink sink, void *sink_self, struct bh_err *err)
{
    BH_AUTO(jobs_walk_end) struct job_walk walk = { .store = self, .sink = sink, .self = sink_self };
    bh_rc rc = bh_sqlite_acquire(walk.store, &walk.reader, err);

    if (rc != BH_OK)
        return rc;
    rc = jobs_walk_show(&walk, job, err);
    if (rc != BH_OK)
        return rc;
    if (!walk.shown)
        return bh_err_set(err, BH_NOT_FOUND, "no job %llu", (unsigned long long)job);
    return BH_OK;
}

/* ---- runs ---- */

struct state {
    uint64_t ended;
    char name[BH_SQLITE_STATE_BYTES];
};

struct jobs_run {
    enum bh_sql_statement statement; /* its index: one of IDS_... or of COUNT_... */
    const struct state *state;       /* NULL: all jobs are one run */
    uint32_t owner;                  /* tenant or principal, where the index begins with one */
};

/* All runs of one filter. */
struct jobs_runs {
    struct bh_sql *reader;
    const struct bh_job_filter *filter;
    enum bh_sql_statement statement;
    uint64_t bound;    /* numbers behind it, or of the last ones before it */
    uint32_t *tenants; /* the filter's, in order and each once */
    uint32_t tenant_count;
    struct state states[STATES_MAX];
    uint32_t state_count;
    /* Called for each run. */
    bh_rc (*visit)(const struct jobs_runs *runs, const struct jobs_run *run, void *self, struct bh_err *err);
    void *self;
};

/* Which index serves a filter; the statements for ids, for the last ids and for counts stand in the same
 * order, `first` being that for all jobs.  What a user asks about their own jobs is
 * served by the principal's index even when it is narrowed to tenants: these are mostly
 * all tenants that they may see. */
static enum bh_sql_statement
jobs_pick_index(const struct bh_job_filter *filter, enum bh_sql_statement first)
{
    if (filter->principal_id)
        return first + (BH_SQL_IDS_PRINCIPAL - BH_SQL_IDS_ALL);
    if (filter->tenants)
        return first + (BH_SQL_IDS_TENANT - BH_SQL_IDS_ALL);
    if (filter->active_only || filter->ended_only || filter->state)
        return first + (BH_SQL_IDS_STATE - BH_SQL_IDS_ALL);
    return first;
}

static bh_rc
jobs_use_run(const struct jobs_runs *runs, const struct jobs_run *run, struct bh_sql_use *ret_use,
             struct bh_err *err)
{
    bh_rc rc = bh_sql_use(runs->reader, run->statement, ret_use, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(ret_use, runs->bound);
    if (!run->state)
        return BH_OK;
    bh_sql_put_u64(ret_use, run->state->ended);
    bh_sql_put_text(ret_use, run->state->name);
    if (runs->filter->tenants || runs->filter->principal_id)
        bh_sql_put_u64(ret_use, run->owner);
    return BH_OK;
}

/* The state that comes after *state among those that ended, or those that did not; the
 * empty text stands before all.  `ret_found` is false when there is none. */
static bh_rc
jobs_next_state(struct bh_sql *reader, struct state *state, bool *ret_found, struct bh_err *err)
{
    BH_AUTO(bh_sql_done) struct bh_sql_use use = { 0 };
    bh_rc rc = bh_sql_use(reader, BH_SQL_NEXT_STATE, &use, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&use, state->ended);
    bh_sql_put_text(&use, state->name);
    rc = bh_sql_step(&use, ret_found, err);
    if (rc != BH_OK)
        return rc;
    if (*ret_found)
        snprintf(state->name, sizeof state->name, "%s", bh_sql_text(&use, 0));
    return BH_OK;
}

static bh_rc
jobs_find_states_of(struct jobs_runs *runs, uint64_t ended, struct bh_err *err)
{
    struct state state = { ended, "" };

    for (;;) {
        bool found;
        bh_rc rc = jobs_next_state(runs->reader, &state, &found, err);

        if (rc != BH_OK || !found)
            return rc;
        if (runs->filter->state && strcmp(runs->filter->state, state.name) != 0)
            continue;
        if (runs->state_count == STATES_MAX)
            return bh_err_set(err, BH_BUG, "jobs have more than %d states", STATES_MAX);
        runs->states[runs->state_count++] = state;
    }
}

/* The states that occur and that the filter lets pass. */
static bh_rc
jobs_find_states(struct jobs_runs *runs, struct bh_err *err)
{
    bh_rc rc = runs->filter->ended_only ? BH_OK : jobs_find_states_of(runs, 0, err);

    return rc == BH_OK && !runs->filter->active_only ? jobs_find_states_of(runs, 1, err) : rc;
}

static bh_rc
jobs_visit_states(struct jobs_runs *runs, uint32_t owner, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; rc == BH_OK && i < runs->state_count; i++) {
        const struct jobs_run run = { runs->statement, &runs->states[i], owner };

        rc = runs->visit(runs, &run, runs->self, err);
    }
    return rc;
}

static int
jobs_compare_tenants(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

/* Free runs->tenants when done. */
static void
jobs_sort_tenants(struct jobs_runs *runs)
{
    uint32_t given = runs->filter->tenant_count, count = 0;

    runs->tenants = malloc((given ? given : 1) * sizeof *runs->tenants);
    BH_ASSERT(runs->tenants);
    for (uint32_t i = 0; i < given; i++)
        runs->tenants[i] = runs->filter->tenants[i];
    qsort(runs->tenants, given, sizeof *runs->tenants, jobs_compare_tenants);
    for (uint32_t i = 0; i < given; i++)
        if (count == 0 || runs->tenants[count - 1] != runs->tenants[i])
            runs->tenants[count++] = runs->tenants[i];
    runs->tenant_count = count;
}

static bh_rc
jobs_visit_tenants(struct jobs_runs *runs, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; rc == BH_OK && i < runs->tenant_count; i++)
        rc = jobs_visit_states(runs, runs->tenants[i], err);
    return rc;
}

static bh_rc
jobs_visit_runs(struct jobs_runs *runs, struct bh_err *err)
{
    const struct bh_job_filter *filter = runs->filter;
    const struct jobs_run whole = { runs->statement, NULL, 0 };
    bh_rc rc;

    if (!filter->principal_id && !filter->tenants && !filter->active_only && !filter->ended_only
        && !filter->state)
        return runs->visit(runs, &whole, runs->self, err);
    rc = jobs_find_states(runs, err);
    if (rc != BH_OK)
        return rc;
    if (filter->tenants)
        jobs_sort_tenants(runs);
    if (filter->tenants && !filter->principal_id)
        rc = jobs_visit_tenants(runs, err);
    else
        rc = jobs_visit_states(runs, filter->principal_id, err);
    free(runs->tenants);
    runs->tenants = NULL;
    return rc;
}

/* Whether a job that its run found is of a wanted tenant. */
static bool
sqlite_jobs_is_wanted(const struct jobs_runs *runs, uint32_t tenant)
{
    return !runs->tenants || !runs->filter->principal_id
           || bsearch(&tenant, runs->tenants, runs->tenant_count, sizeof tenant, jobs_compare_tenants);
}

/* ---- a page: the smallest numbers of all runs, or the largest ---- */

struct sqlite_jobs_page {
    uint64_t jobs[PAGE_MAX];
    uint32_t count, limit;
    bool newest;
};

static bool
jobs_page_is_behind(const struct sqlite_jobs_page *page, uint64_t job, uint64_t other)
{
    return page->newest ? job < other : job > other;
}

/* Keep `job` among the first; false when it, and so all after it in its run, come behind them. */
static bool
jobs_page_add(struct sqlite_jobs_page *page, uint64_t job)
{
    uint32_t at = page->count;

    if (page->count == page->limit && !jobs_page_is_behind(page, page->jobs[page->count - 1], job))
        return false;
    while (at > 0 && jobs_page_is_behind(page, page->jobs[at - 1], job))
        at--;
    if (page->count < page->limit)
        page->count++;
    memmove(page->jobs + at + 1, page->jobs + at, (page->count - at - 1) * sizeof page->jobs[0]);
    page->jobs[at] = job;
    return true;
}

static bh_rc
jobs_merge_run(const struct jobs_runs *runs, const struct jobs_run *run, void *self, struct bh_err *err)
{
    BH_AUTO(bh_sql_done) struct bh_sql_use use = { 0 };
    bool row = true;
    bh_rc rc = jobs_use_run(runs, run, &use, err);

    while (rc == BH_OK && row) {
        rc = bh_sql_step(&use, &row, err);
        if (rc == BH_OK && row && sqlite_jobs_is_wanted(runs, (uint32_t)bh_sql_u64(&use, 1)))
            row = jobs_page_add(self, bh_sql_u64(&use, 0));
    }
    return rc;
}

static bh_rc
jobs_find_page(struct bh_sql *reader, const struct bh_job_filter *filter, uint64_t bound,
               struct sqlite_jobs_page *page, struct bh_err *err)
{
    struct jobs_runs runs = {
        .reader = reader,
        .filter = filter,
        .statement = jobs_pick_index(filter, filter->newest ? BH_SQL_LAST_ALL : BH_SQL_IDS_ALL),
        .bound = bound,
        .visit = jobs_merge_run,
        .self = page,
    };

    page->count = 0;
    return jobs_visit_runs(&runs, err);
}

bh_rc
bh_sqlite_list_jobs(void *self, const struct bh_job_filter *filter, bh_job_sink sink, void *sink_self,
                    struct bh_err *err)
{
    BH_AUTO(jobs_walk_end)
    struct job_walk walk = { .store = self, .sink = sink, .self = sink_self, .more = true };
    uint32_t left = filter->limit ? filter->limit : LIMIT_DEFAULT;
    uint64_t bound = filter->newest ? filter->before : filter->after;
    bh_rc rc = jobs_walk_begin(&walk, err);

    while (rc == BH_OK && walk.more && left > 0 && (filter->newest || bound < INT64_MAX)) {
        struct sqlite_jobs_page page = { .limit = left < PAGE_MAX ? left : PAGE_MAX,
                                         .newest = filter->newest };

        rc = jobs_find_page(walk.reader, filter, bound, &page, err);
        for (uint32_t i = 0; rc == BH_OK && walk.more && i < page.count; i++)
            rc = jobs_walk_show(&walk, page.jobs[i], err);
        if (rc != BH_OK || page.count < page.limit)
            return rc;
        left -= page.count;
        bound = page.jobs[page.count - 1];
    }
    return rc;
}

static bh_rc
jobs_count_run(const struct jobs_runs *runs, const struct jobs_run *run, void *self, struct bh_err *err)
{
    BH_AUTO(bh_sql_done) struct bh_sql_use use = { 0 };
    uint64_t *count = self;
    bool row;
    bh_rc rc;

    if (*count >= COUNT_MAX)
        return BH_OK;
    rc = jobs_use_run(runs, run, &use, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_sql_step(&use, &row, err);
    if (rc != BH_OK)
        return rc;
    *count += bh_sql_u64(&use, 0);
    return BH_OK;
}

/* As jobs_count_run, where each job must be looked at. */
static bh_rc
jobs_count_wanted(const struct jobs_runs *runs, const struct jobs_run *run, void *self, struct bh_err *err)
{
    BH_AUTO(bh_sql_done) struct bh_sql_use use = { 0 };
    uint64_t *count = self;
    bool row = true;
    bh_rc rc = jobs_use_run(runs, run, &use, err);

    while (rc == BH_OK && row && *count < COUNT_MAX) {
        rc = bh_sql_step(&use, &row, err);
        if (rc == BH_OK && row)
            *count += sqlite_jobs_is_wanted(runs, (uint32_t)bh_sql_u64(&use, 1));
    }
    return rc;
}

bh_rc
bh_sqlite_count_jobs(void *self, const struct bh_job_filter *filter, uint64_t *ret_count, struct bh_err *err)
{
    BH_AUTO(jobs_walk_end) struct job_walk walk = { .store = self };
    bool filtered = filter->tenants && filter->principal_id;
    uint64_t count = 0;
    struct jobs_runs runs = {
        .filter = filter,
        .statement = jobs_pick_index(filter, filtered ? BH_SQL_IDS_ALL : BH_SQL_COUNT_ALL),
        .bound = filter->after,
        .visit = filtered ? jobs_count_wanted : jobs_count_run,
        .self = &count,
    };
    bh_rc rc = jobs_walk_begin(&walk, err);

    runs.reader = walk.reader;
    if (rc != BH_OK)
        return rc;
    if (filter->after < INT64_MAX)
        rc = jobs_visit_runs(&runs, err);
    if (rc != BH_OK)
        return rc;
    *ret_count = count < COUNT_MAX ? count : COUNT_MAX;
    return BH_OK;
}
