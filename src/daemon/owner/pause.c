#include "daemon/owner/pause.h"

#include <stdio.h>

#include "base/log.h"

static const bh_ns first_pause_ns = 1 * BH_NS_PER_S;

enum { DOUBLINGS_MAX = 6 };

static const char go_back[] =
    "move it back, or copy it before bulkheadd ends, which has it open: docs/install.md";

bool
bh_pause_is_on(const struct bh_pause *pause)
{
    return bh_time_monotonic() < pause->until_ns;
}

static void
pause_begin(struct bh_pause *pause, enum bh_pause_why why, uint64_t length_ns)
{
    pause->why = why;
    pause->until_ns = bh_time_monotonic() + length_ns;
}

void
bh_pause_hold(struct bh_pause *pause, uint64_t held_ns)
{
    pause_begin(pause, BH_PAUSE_HELD, held_ns);
}

bool
bh_pause_on_full(struct bh_pause *pause)
{
    bool first = !pause->full;

    pause_begin(pause, BH_PAUSE_FULL, first_pause_ns);
    pause->full = true;
    return first;
}

void
bh_pause_on_failure(struct bh_pause *pause, const struct bh_err *failure, uint64_t commits)
{
    if (commits != pause->failed_at)
        pause->failures = 0;
    pause->failed_at = commits;
    snprintf(pause->failure, sizeof pause->failure, "%s", failure->msg);
    pause_begin(pause, BH_PAUSE_FAILED, first_pause_ns << pause->failures);
    if (pause->failures < DOUBLINGS_MAX)
        pause->failures++;
}

bool
bh_pause_on_gone(struct bh_pause *pause, const struct bh_store *store)
{
    struct bh_err err;

    if (store->ops->check_files(store->self, &err) == BH_OK) {
        if (pause->gone)
            bh_log(STORE_BACK);
        pause->gone = false;
        return false;
    }
    if (!pause->gone)
        bh_log(STORE_GONE, BH_ERRLOG(&err), BH_STR("next", go_back));
    pause->gone = true;
    snprintf(pause->failure, sizeof pause->failure, "%s", err.msg);
    pause_begin(pause, BH_PAUSE_GONE, first_pause_ns);
    return true;
}

void
bh_pause_end(struct bh_pause *pause)
{
    pause->full = false;
}

bh_rc
bh_pause_explain(const struct bh_pause *pause, struct bh_err *err)
{
    if (pause->why == BH_PAUSE_HELD)
        return bh_err_set(
            err, BH_UNAVAILABLE,
            "bulkheadd fails an internal check by itself: reads are served, changes are refused");
    if (pause->why == BH_PAUSE_GONE)
        return bh_err_set(err, BH_UNAVAILABLE, "%.160s: reads are served, changes are refused",
                          pause->failure);
    if (pause->why == BH_PAUSE_FAILED)
        return bh_err_set(err, BH_UNAVAILABLE,
                          "nothing can be written (%.140s): reads are served, changes are refused",
                          pause->failure);
    return bh_err_set(err, BH_FULL, "the disk is full: reads are served, changes are refused");
}
