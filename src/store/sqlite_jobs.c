#include "store/sqlite.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "store/sqlite_internal.h"

/* How jobs are looked up.
 *
 * Each filter is turned into runs: stretches of an index in which all jobs match, and
 * which stand in order of their numbers (this state; this state of this tenant; ...).
 * A page is the smallest numbers of all runs, merged.  No filter therefore reads more
 * than one page of each run, however many jobs there are. */

enum { PAGE_MAX = 1024, STATES_MAX = 64, STATE_BYTES = 32, LIMIT_DEFAULT = 100, COUNT_MAX = 100000 };

/* ---- one job ---- */

static void
put_columns(struct bh_sql_use *use, const struct bh_job_row *row)
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
    bh_sql_put_text(use, row->pieces);
    bh_sql_put_text(use, row->grade);
    bh_sql_put_u64(use, row->submitted_ns);
    bh_sql_put_u64(use, row->started_ns);
    bh_sql_put_u64(use, row->ended_ns);
    bh_sql_put_u64(use, row->time_limit_ns);
    bh_sql_put_u64(use, (uint64_t)(int64_t)row->exit_status);
    bh_sql_put_bytes(use, row->spec.bytes, sizeof row->spec.bytes);
    bh_sql_put_u64(use, row->ended_ns != 0);
}

bh_rc
bh_sqlite_put_job(void *self, const struct bh_job_row *row, struct bh_err *err)
{
    struct bh_sqlite *store = self;
    struct bh_sql_use use;
    bh_rc rc;

    BH_ASSERT(row->state && strlen(row->state) < STATE_BYTES);
    rc = bh_sqlite_write(store, BH_SQL_PUT_JOB, &use, err);
    if (rc != BH_OK)
        return rc;
    put_columns(&use, row);
    return bh_sqlite_written(store, &use, err);
}

static void
read_columns(const struct bh_sql_use *use, struct bh_job_row *ret_row)
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
        .pieces = bh_sql_text(use, 16),
        .grade = bh_sql_text(use, 17),
        .submitted_ns = bh_sql_u64(use, 18),
        .started_ns = bh_sql_u64(use, 19),
        .ended_ns = bh_sql_u64(use, 20),
        .time_limit_ns = bh_sql_u64(use, 21),
        .exit_status = (int32_t)bh_sql_u64(use, 22),
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

static bh_rc
walk_begin(struct job_walk *walk, struct bh_err *err)
{
    bh_rc rc = bh_sqlite_take(walk->store, &walk->reader, err);

    return rc == BH_OK ? bh_sql_exec(walk->reader, "BEGIN", err) : rc;
}

static void
walk_end(struct job_walk *walk)
{
    if (!walk->reader)
        return;
    if (!sqlite3_get_autocommit(walk->reader->db))
        sqlite3_exec(walk->reader->db, "COMMIT", NULL, NULL, NULL);
    bh_sqlite_give(walk->store, walk->reader);
}

static bh_rc
walk_show(struct job_walk *walk, uint64_t job, struct bh_err *err)
{
    __attribute__((cleanup(bh_sql_done_auto))) struct bh_sql_use use = { 0 };
    struct bh_job_row row;
    bh_rc rc = bh_sql_use(walk->reader, BH_SQL_GET_JOB, &use, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&use, job);
    rc = bh_sql_step(&use, &walk->shown, err);
    if (rc != BH_OK || !walk->shown)
        return rc;
    read_columns(&use, &row);
    walk->more = walk->sink(walk->self, &row);
    return BH_OK;
}

bh_rc
bh_sqlite_get_job(void *self, uint64_t job, bh_job_sink sink, void *sink_self, struct bh_err *err)
{
    __attribute__((cleanup(walk_end))) struct job_walk walk = { self, NULL, sink, sink_self, 0, 0 };
    bh_rc rc = bh_sqlite_take(walk.store, &walk.reader, err);

    if (rc == BH_OK)
        rc = walk_show(&walk, job, err);
    if (rc == BH_OK && !walk.shown)
        return bh_err_set(err, BH_NOT_FOUND, "no job %llu", (unsigned long long)job);
    return rc;
}

/* ---- runs ---- */

struct state {
    uint64_t ended;
    char name[STATE_BYTES];
};

/* What stays the same for all runs of one filter, and the run at hand. */
struct run {
    struct bh_sql *reader;
    const struct bh_job_filter *filter;
    enum bh_sql_statement statement; /* of ids or of a count, by the index that serves */
    uint64_t after, limit;
    const struct state *state; /* NULL: all jobs are one run */
    uint32_t tenant;
};

/* Called for each run. */
typedef bh_rc (*run_visit)(const struct run *run, void *self, struct bh_err *err);

/* Which index serves a filter; the statements for ids and for counts stand in the same
 * order. */
static enum bh_sql_statement
pick_index(const struct bh_job_filter *filter, enum bh_sql_statement first)
{
    if (filter->principal_id)
        return first + (BH_SQL_IDS_PRINCIPAL - BH_SQL_IDS_ALL);
    if (filter->tenants)
        return first + (BH_SQL_IDS_TENANT - BH_SQL_IDS_ALL);
    if (filter->active_only || filter->state)
        return first + (BH_SQL_IDS_STATE - BH_SQL_IDS_ALL);
    return first;
}

static bh_rc
use_run(const struct run *run, struct bh_sql_use *ret_use, struct bh_err *err)
{
    bh_rc rc = bh_sql_use(run->reader, run->statement, ret_use, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(ret_use, run->after);
    bh_sql_put_u64(ret_use, run->limit);
    if (!run->state)
        return BH_OK;
    bh_sql_put_u64(ret_use, run->state->ended);
    bh_sql_put_text(ret_use, run->state->name);
    if (run->filter->tenants || run->filter->principal_id)
        bh_sql_put_u64(ret_use, run->tenant);
    if (run->filter->principal_id)
        bh_sql_put_u64(ret_use, run->filter->principal_id);
    return BH_OK;
}

/* The state that comes after *state in the index; false in `ret_found`: none. */
static bh_rc
next_state(struct bh_sql *reader, struct state *state, bool *ret_found, struct bh_err *err)
{
    __attribute__((cleanup(bh_sql_done_auto))) struct bh_sql_use use = { 0 };
    bh_rc rc = bh_sql_use(reader, BH_SQL_NEXT_STATE, &use, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&use, state->ended);
    bh_sql_put_text(&use, state->name);
    rc = bh_sql_step(&use, ret_found, err);
    if (rc != BH_OK || !*ret_found)
        return rc;
    state->ended = bh_sql_u64(&use, 0);
    snprintf(state->name, sizeof state->name, "%s", bh_sql_text(&use, 1));
    return BH_OK;
}

/* The states that occur and that the filter lets pass. */
static bh_rc
find_states(struct bh_sql *reader, const struct bh_job_filter *filter,
            struct state ret_states[STATES_MAX], uint32_t *ret_count, struct bh_err *err)
{
    struct state state = { 0, "" };
    uint32_t count = 0;
    bool found = true;

    for (;;) {
        bh_rc rc = next_state(reader, &state, &found, err);

        if (rc != BH_OK)
            return rc;
        if (!found || (filter->active_only && state.ended))
            break;
        if (filter->state && strcmp(filter->state, state.name) != 0)
            continue;
        if (count == STATES_MAX)
            return bh_err_set(err, BH_BUG, "jobs have more than %d states", STATES_MAX);
        ret_states[count++] = state;
    }
    *ret_count = count;
    return BH_OK;
}

struct runs {
    struct run run;
    struct state states[STATES_MAX];
    uint32_t state_count;
    run_visit visit;
    void *self;
};

static bh_rc
visit_states(struct runs *runs, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; rc == BH_OK && i < runs->state_count; i++) {
        runs->run.state = &runs->states[i];
        rc = runs->visit(&runs->run, runs->self, err);
    }
    return rc;
}

/* The tenants in which the filter's principal has jobs, one after the other. */
static bh_rc
visit_own_tenants(struct runs *runs, struct bh_err *err)
{
    uint64_t tenant = 0;
    bool found = true;

    for (;;) {
        struct bh_sql_use use;
        bh_rc rc = bh_sql_use(runs->run.reader, BH_SQL_NEXT_TENANT, &use, err);

        if (rc != BH_OK)
            return rc;
        bh_sql_put_u64(&use, runs->run.filter->principal_id);
        bh_sql_put_u64(&use, tenant);
        rc = bh_sql_step(&use, &found, err);
        if (rc == BH_OK && found)
            tenant = bh_sql_u64(&use, 0);
        bh_sql_done(&use);
        if (rc != BH_OK || !found)
            return rc;
        runs->run.tenant = (uint32_t)tenant;
        rc = visit_states(runs, err);
        if (rc != BH_OK)
            return rc;
    }
}

static bh_rc
visit_tenants(struct runs *runs, struct bh_err *err)
{
    const struct bh_job_filter *filter = runs->run.filter;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; rc == BH_OK && i < filter->tenant_count; i++) {
        runs->run.tenant = filter->tenants[i];
        rc = visit_states(runs, err);
    }
    return rc;
}

static bh_rc
visit_runs(struct runs *runs, struct bh_err *err)
{
    const struct bh_job_filter *filter = runs->run.filter;
    bh_rc rc;

    if (!filter->principal_id && !filter->tenants && !filter->active_only && !filter->state)
        return runs->visit(&runs->run, runs->self, err);
    rc = find_states(runs->run.reader, filter, runs->states, &runs->state_count, err);
    if (rc != BH_OK)
        return rc;
    if (filter->tenants)
        return visit_tenants(runs, err);
    return filter->principal_id ? visit_own_tenants(runs, err) : visit_states(runs, err);
}

/* ---- a page: the smallest numbers of all runs ---- */

struct page {
    uint64_t jobs[PAGE_MAX];
    uint32_t count, limit;
};

/* Keep `job` among the smallest; false when it, and so all after it, are too large. */
static bool
page_add(struct page *page, uint64_t job)
{
    uint32_t at = page->count;

    if (page->count == page->limit && job >= page->jobs[page->count - 1])
        return false;
    while (at > 0 && page->jobs[at - 1] > job)
        at--;
    /* The filter may name a tenant twice. */
    if (at > 0 && page->jobs[at - 1] == job)
        return true;
    if (page->count < page->limit)
        page->count++;
    memmove(page->jobs + at + 1, page->jobs + at,
            (page->count - at - 1) * sizeof page->jobs[0]);
    page->jobs[at] = job;
    return true;
}

static bh_rc
merge_run(const struct run *run, void *self, struct bh_err *err)
{
    __attribute__((cleanup(bh_sql_done_auto))) struct bh_sql_use use = { 0 };
    bool row = true;
    bh_rc rc = use_run(run, &use, err);

    while (rc == BH_OK && row) {
        rc = bh_sql_step(&use, &row, err);
        if (rc == BH_OK && row)
            row = page_add(self, bh_sql_u64(&use, 0));
    }
    return rc;
}

static bh_rc
find_page(struct bh_sql *reader, const struct bh_job_filter *filter, uint64_t after,
          struct page *page, struct bh_err *err)
{
    struct runs runs = {
        .run = { reader, filter, pick_index(filter, BH_SQL_IDS_ALL), after, page->limit, NULL, 0 },
        .visit = merge_run,
        .self = page,
    };

    page->count = 0;
    return visit_runs(&runs, err);
}

bh_rc
bh_sqlite_list_jobs(void *self, const struct bh_job_filter *filter, bh_job_sink sink,
                    void *sink_self, struct bh_err *err)
{
    __attribute__((cleanup(walk_end))) struct job_walk walk = { self, NULL, sink, sink_self, 0, true };
    uint32_t left = filter->limit ? filter->limit : LIMIT_DEFAULT;
    uint64_t after = filter->after;
    bh_rc rc = walk_begin(&walk, err);

    while (rc == BH_OK && walk.more && left > 0 && after < INT64_MAX) {
        struct page page = { .limit = left < PAGE_MAX ? left : PAGE_MAX };

        rc = find_page(walk.reader, filter, after, &page, err);
        for (uint32_t i = 0; rc == BH_OK && walk.more && i < page.count; i++)
            rc = walk_show(&walk, page.jobs[i], err);
        if (rc != BH_OK || page.count < page.limit)
            return rc;
        left -= page.count;
        after = page.jobs[page.count - 1];
    }
    return rc;
}

static bh_rc
count_run(const struct run *run, void *self, struct bh_err *err)
{
    __attribute__((cleanup(bh_sql_done_auto))) struct bh_sql_use use = { 0 };
    uint64_t *count = self;
    bool row;
    bh_rc rc;

    if (*count >= COUNT_MAX)
        return BH_OK;
    rc = use_run(run, &use, err);
    if (rc == BH_OK)
        rc = bh_sql_step(&use, &row, err);
    if (rc == BH_OK)
        *count += bh_sql_u64(&use, 0);
    return rc;
}

bh_rc
bh_sqlite_count_jobs(void *self, const struct bh_job_filter *filter, uint64_t *ret_count,
                     struct bh_err *err)
{
    __attribute__((cleanup(walk_end))) struct job_walk walk = { self, NULL, NULL, NULL, 0, 0 };
    uint64_t count = 0;
    struct runs runs = { .visit = count_run, .self = &count };
    bh_rc rc = walk_begin(&walk, err);

    runs.run = (struct run){ walk.reader, filter, pick_index(filter, BH_SQL_COUNT_ALL),
                             filter->after, COUNT_MAX, NULL, 0 };
    if (rc == BH_OK && filter->after < INT64_MAX)
        rc = visit_runs(&runs, err);
    if (rc == BH_OK)
        *ret_count = count < COUNT_MAX ? count : COUNT_MAX;
    return rc;
}
