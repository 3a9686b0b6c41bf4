#include "node/unpack_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "node/cell.h"

/* What a step told, as far as it may be believed. */
static bh_rc
take_told(const struct bh_unpack_told *told, struct bh_err *err)
{
    struct bh_err said = told->err;

    said.msg[sizeof said.msg - 1] = said.hint[sizeof said.hint - 1] = '\0';
    if (told->rc <= BH_OK || told->rc >= BH_BUG || !said.msg[0])
        return bh_err_set(err, BH_IO, "unpacking failed and nobody said why");
    bh_err_set(err, told->rc, "%s", said.msg);
    return said.hint[0] ? bh_err_hint(err, "%s", said.hint) : told->rc;
}

static bool
watch(void *self)
{
    struct bh_unpack_runner *runner = self;
    struct bh_unpack_progress now = { 0 };
    bool good = runner->look(runner->look_self, &now);

    if (now.stage != runner->said.stage || now.done_bytes != runner->said.done_bytes) {
        printf("+%" PRIu32 " %" PRIu64 " %" PRIu64 "\n", now.stage, now.done_bytes,
               now.total_bytes);
        fflush(stdout);
        runner->said = now;
    }
    return good;
}

bh_rc
bh_unpack_run(struct bh_unpack_runner *runner, int (*step)(void *order), bool as_guest,
              struct bh_err *err)
{
    struct bh_cell_child child = { .base = runner->base,
                                   .guest_uid = as_guest ? runner->uid : UINT32_MAX,
                                   .guest_gid = as_guest ? runner->gid : UINT32_MAX,
                                   .run = step,
                                   .self = runner->order,
                                   .watch = runner->look ? watch : NULL,
                                   .watch_self = runner };
    int status = 0;
    bh_rc rc;

    memset(&runner->order->told->err, 0, sizeof runner->order->told->err);
    rc = bh_cell_run(&child, &status, err);
    if (rc != BH_OK || status == 0)
        return rc;
    if (!WIFEXITED(status)) {
        bh_err_set(err, BH_FULL, "unpacking was killed, most likely for want of memory");
        return bh_err_hint(err,
                           "the image may be damaged, or image_memory_mib of node.conf too "
                           "little for it");
    }
    return take_told(runner->order->told, err);
}
