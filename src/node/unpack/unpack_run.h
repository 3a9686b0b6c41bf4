#ifndef BH_NODE_UNPACK_UNPACK_RUN_H
#define BH_NODE_UNPACK_UNPACK_RUN_H

#include "node/unpack/unpack_steps.h"
#include "wire/message.h"

/* Running the steps of bulkhead-unpack in its cell, and saying how far they are: lines
 * "+STAGE DONE TOTAL\n" on standard output, at most one a second, before its report. */

struct bh_unpack_progress {
    uint32_t stage;                   /* enum bh_image_stage */
    uint64_t done_bytes, total_bytes; /* 0: not known */
};

struct bh_unpack_runner {
    uint32_t base;     /* first of the 65536 user ids of the cell */
    uint32_t uid, gid; /* the submitter */
    struct bh_unpack_order *order;
    /* How far the step is; false: it must end.  NULL: not asked. */
    bool (*progress)(void *self, struct bh_unpack_progress *ret_progress);
    void *progress_self;
    struct bh_unpack_progress reported;
};

/* Run one to its end; as_submitter: with the submitter's rights to their files.  When it failed, its report
 * is the error; BH_FULL: it was killed. */
BH_MUST_USE bh_rc bh_unpack_run(struct bh_unpack_runner *runner, int (*step)(void *order), bool as_submitter,
                                struct bh_err *err);

#endif
