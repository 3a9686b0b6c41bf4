#include "api/metrics/series.h"

#include <string.h>

#include "api/metrics/series_object.h"
#include "api/request/moment.h"
#include "api/request/reply.h"
#include "base/time.h"

/* Fewer intervals than these say nothing about what is usual. */
enum { POINTS_DEFAULT = 400, USUAL_LEAST = 30 };

static const struct {
    const char *name;
    uint64_t span_ns;
} spans[] = {
    { "hour", 3600 * BH_NS_PER_S },
    { "day", 24 * 3600 * BH_NS_PER_S },
    { "month", UINT64_C(31) * 24 * 3600 * BH_NS_PER_S },
};

struct series_call {
    struct bh_call *call;
    struct bh_series_subject subject;
    enum bh_series_row only; /* BH_SERIES_ROWS: all of its kind */
    enum bh_resolution resolution;
    uint64_t now_ns, from_ns, until_ns;
    uint64_t first, last, merged; /* intervals; so many become one point */
    struct bh_reply_series_point *points;
    uint32_t point_max;
};

/* One series, while its row is written. */
struct series_walk {
    const struct series_call *s;
    uint32_t count;
    uint64_t place; /* of the last point, counted from the first interval */
    struct bh_point point;
    uint64_t usual_min, usual_max;
    uint32_t usual_of;
};

/* ---- what is asked ---- */

static void
series_ask_now(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    uint64_t *ret_ns = self;

    *ret_ns = now_ns;
}

static bh_rc
series_read_span(const struct bh_call *call, uint64_t *ret_span_ns, struct bh_err *err)
{
    const char *text = call->query.span ? call->query.span : spans[0].name;

    for (size_t i = 0; i < BH_COUNT(spans); i++)
        if (strcmp(spans[i].name, text) == 0) {
            *ret_span_ns = spans[i].span_ns;
            return BH_OK;
        }
    return bh_err_set(err, BH_INVALID, "span: \"%.40s\" is none of hour, day, month", text);
}

/* Up to now or to its end, and not before it began. */
static bh_rc
series_read_time(struct series_call *s, struct bh_err *err)
{
    struct bh_call *call = s->call;
    uint64_t span_ns = 0;
    bh_rc rc = bh_call_ask(call, series_ask_now, &s->now_ns, err);

    if (rc == BH_OK)
        rc = series_read_span(call, &span_ns, err);
    if (rc != BH_OK)
        return rc;
    if (call->query.since && call->query.span)
        return bh_err_set(err, BH_INVALID, "since and span exclude each other");
    s->until_ns = s->subject.ended_ns && s->subject.ended_ns < s->now_ns ? s->subject.ended_ns : s->now_ns;
    s->from_ns = s->until_ns > span_ns ? s->until_ns - span_ns : 0;
    rc = bh_moment_read(call, "since", call->query.since, &s->from_ns, err);
    if (rc == BH_OK && s->from_ns > s->now_ns)
        rc = bh_err_set(err, BH_INVALID, "since: that moment is yet to come");
    if (s->from_ns < s->subject.since_ns)
        s->from_ns = s->subject.since_ns;
    if (s->from_ns > s->until_ns)
        s->from_ns = s->until_ns;
    return rc;
}

static bh_rc
series_read_quantity(struct series_call *s, struct bh_err *err)
{
    const char *text = s->call->query.quantity;
    enum bh_series_kind kind = s->subject.object.kind;

    s->only = text ? bh_series_find(kind, text) : BH_SERIES_ROWS;
    if (!text || s->only < BH_SERIES_ROWS)
        return BH_OK;
    bh_err_set(err, BH_INVALID, "quantity: no %s has \"%.40s\"", bh_series_kind_names[kind], text);
    return bh_err_hint(err, "leave it out for all that there are");
}

/* As fine as the time allows, and so many intervals to a point that no more come than are asked for. */
static bh_rc
series_choose_points(struct series_call *s, struct bh_err *err)
{
    const struct bh_call *call = s->call;
    uint64_t most = call->query.given.points ? call->query.points : POINTS_DEFAULT, intervals;

    if (most == 0)
        return bh_err_set(err, BH_INVALID, "points: at least 1 is needed");
    s->resolution = bh_series_resolution_for(s->now_ns - s->from_ns);
    s->first = bh_series_interval(s->resolution, s->from_ns);
    s->last = bh_series_interval(s->resolution, s->until_ns);
    intervals = s->last - s->first + 1;
    s->merged = intervals / most + (intervals % most != 0);
    s->first -= s->first % s->merged; /* so that points stay where they are as time passes */
    s->point_max = (uint32_t)((s->last - s->first) / s->merged + 1);
    return bh_call_alloc(call, s->point_max * sizeof *s->points, &s->points, err);
}

static bh_rc
series_read_call(struct series_call *s, struct bh_err *err)
{
    bh_rc rc = bh_series_subject_find(s->call, s->call->query.object, &s->subject, err);

    if (rc == BH_OK)
        rc = series_read_quantity(s, err);
    if (rc == BH_OK)
        rc = series_read_time(s, err);
    return rc == BH_OK ? series_choose_points(s, err) : rc;
}

/* ---- one series ---- */

static void
series_end_point(struct series_walk *row)
{
    const struct series_call *s = row->s;

    if (row->point.count == 0 || row->count == s->point_max)
        return;
    s->points[row->count++] = (struct bh_reply_series_point){
        .at_ns = (s->first + row->place * s->merged) * bh_resolutions[s->resolution].step_ns,
        .max = row->point.max,
        .mean = bh_point_mean(&row->point),
        .min = row->point.min,
        .samples = row->point.count,
    };
    row->point.count = 0;
}

static bool
series_add_interval(void *self, uint64_t interval, const struct bh_point *point)
{
    struct series_walk *row = self;
    uint64_t place = (interval - row->s->first) / row->s->merged;

    if (place != row->place)
        series_end_point(row);
    row->place = place;
    bh_point_merge(&row->point, point);
    return true;
}

static bool
series_add_usual(void *self, uint64_t interval, const struct bh_point *point)
{
    struct series_walk *row = self;
    uint32_t mean = bh_point_mean(point);

    row->usual_min = row->usual_of == 0 || mean < row->usual_min ? mean : row->usual_min;
    row->usual_max = row->usual_of == 0 || mean > row->usual_max ? mean : row->usual_max;
    row->usual_of++;
    return true;
}

static bh_rc
series_read(const struct series_walk *row, struct bh_series_query *query, bh_series_sink sink,
            struct bh_err *err)
{
    const struct bh_series_store *store = &row->s->call->api->options.series;
    uint64_t own = bh_series_interval(query->resolution, row->s->subject.since_ns);

    query->object = row->s->subject.object;
    if (query->first < own)
        query->first = own;
    if (query->first > query->last)
        return BH_OK;
    return store->ops->read(store->self, query, sink, (void *)row, err);
}

/* What is usual: the means of the day before what is shown, or of a month where that is a day or longer. */
static bh_rc
series_read_usual(struct series_walk *row, enum bh_series_row which, struct bh_err *err)
{
    const struct series_call *s = row->s;
    enum bh_resolution resolution =
        s->resolution == BH_RESOLUTION_FINE ? BH_RESOLUTION_MEDIUM : BH_RESOLUTION_COARSE;
    uint64_t reach_ns = spans[resolution == BH_RESOLUTION_MEDIUM ? 1 : 2].span_ns;
    struct bh_series_query query = {
        .row = which,
        .resolution = resolution,
        .first = bh_series_interval(resolution, s->until_ns > reach_ns ? s->until_ns - reach_ns : 0),
        .last = bh_series_interval(resolution, s->from_ns),
    };

    if (query.last-- == 0)
        return BH_OK;
    return series_read(row, &query, series_add_usual, err);
}

static bh_rc
series_put_row(const struct series_call *s, struct bh_rows *rows, enum bh_series_row which,
               struct bh_err *err)
{
    const struct bh_series_facts *series = &bh_series_rows[which];
    struct series_walk row = { .s = s };
    struct bh_series_query query = {
        .row = which, .resolution = s->resolution, .first = s->first, .last = s->last
    };
    bh_rc rc = series_read(&row, &query, series_add_interval, err);

    if (rc == BH_OK)
        rc = series_read_usual(&row, which, err);
    if (rc != BH_OK)
        return rc;
    series_end_point(&row);
    (void)bh_rows_put(rows, &(const struct bh_reply_series_shown){
                                .points = { s->points, row.count },
                                .quantity = series->name,
                                .title = series->title,
                                .unit = bh_series_unit_names[series->unit],
                                .usual_max = row.usual_of < USUAL_LEAST ? (uint64_t)BH_UNSET : row.usual_max,
                                .usual_min = row.usual_of < USUAL_LEAST ? (uint64_t)BH_UNSET : row.usual_min,
                            });
    return BH_OK;
}

bh_rc
bh_series_show(struct bh_call *call, struct bh_err *err)
{
    struct series_call s = { .call = call };
    struct bh_rows rows;
    bh_rc rc = series_read_call(&s, err);

    if (rc != BH_OK)
        return rc;
    if (!call->api->options.series.ops) {
        bh_err_set(err, BH_UNAVAILABLE, "samples over time are not kept here");
        return bh_err_hint(err, "bulkheadd's log says why, or series_retention in bulkheadd.conf is 0s");
    }
    rows = bh_rows_begin(call, &bh_reply_series_list_fields);
    for (enum bh_series_row row = 0; row < BH_SERIES_ROWS && rc == BH_OK; row++)
        if (bh_series_rows[row].kind == s.subject.object.kind && (s.only == BH_SERIES_ROWS || s.only == row))
            rc = series_put_row(&s, &rows, row, err);
    if (rc != BH_OK)
        return rc;
    bh_rows_end(&rows, &(struct bh_reply_series_list){
                           .object = call->query.object,
                           .since_ns = s.first * bh_resolutions[s.resolution].step_ns,
                           .step_ns = s.merged * bh_resolutions[s.resolution].step_ns,
                           .until_ns = s.until_ns,
                       });
    return BH_OK;
}
