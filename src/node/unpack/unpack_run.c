#include "node/unpack/unpack_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "node/unpack/unpack_sandbox.h"

/* What a step reported, as far as it may be believed. */
static bh_rc
copy_shared(const struct bh_unpack_shared *shared, struct bh_err *err)
{
    struct bh_err reported = shared->err;

    reported.msg[sizeof reported.msg - 1] = reported.hint[sizeof reported.hint - 1] = '\0';
    if (shared->rc <= BH_OK || shared->rc >= BH_BUG || !reported.msg[0])
        return bh_err_set(err, BH_IO, "unpacking failed without a message");
    bh_err_set(err, shared->rc, "%s", reported.msg);
    return reported.hint[0] ? bh_err_hint(err, "%s", reported.hint) : shared->rc;
}

static bool
unpack_run_watch(void *self)
{
    struct bh_unpack_runner *runner = self;
    struct bh_unpack_progress now = { 0 };
    bool good = runner->progress(runner->progress_self, &now);

    if (now.stage != runner->reported.stage || now.done_bytes != runner->reported.done_bytes) {
        printf("+%" PRIu32 " %" PRIu64 " %" PRIu64 "\n", now.stage, now.done_bytes, now.total_bytes);
        fflush(stdout);
        runner->reported = now;
    }
    return good;
}

bh_rc
bh_unpack_run(struct bh_unpack_runner *runner, int (*step)(void *order), bool as_submitter,
              struct bh_err *err)
{
    struct bh_unpack_sandbox_child child = { .base = runner->base,
                                             .submitter_uid = as_submitter ? runner->uid : UINT32_MAX,
                                             .submitter_gid = as_submitter ? runner->gid : UINT32_MAX,
                                             .run = step,
                                             .self = runner->order,
                                             .watch = runner->progress ? unpack_run_watch : NULL,
                                             .watch_self = runner };
    int status = 0;
    bh_rc rc;

    memset(&runner->order->shared->err, 0, sizeof runner->order->shared->err);
    rc = bh_unpack_sandbox_run(&child, &status, err);
    if (rc != BH_OK || status == 0)
        return rc;
    if (!WIFEXITED(status)) {
        bh_err_set(err, BH_FULL, "unpacking was killed, most likely because it ran out of memory");
        return bh_err_hint(err,
                           "the image may be damaged, or image_memory_mib in node.conf too small for it");
    }
    return copy_shared(runner->order->shared, err);
}
